// Everything known about a value before it exists: element type and sizes. No layout, stride,
// device or buffer.
#pragma once

#include <initializer_list>
#include <iosfwd>
#include <vector>

#include "type/dim.h"
#include "type/dtype.h"

namespace hone {

struct Shape {
  Dims dims;

  Shape() = default;
  Shape(std::initializer_list<Dim> d) : dims(d) {}
  explicit Shape(Dims d) : dims(std::move(d)) {}

  int rank() const { return static_cast<int>(dims.size()); }
  // Counts from the back when i is negative.
  Dim& operator[](int i) { return dims.at(static_cast<std::size_t>(i < 0 ? i + rank() : i)); }
  const Dim& operator[](int i) const {
    return dims.at(static_cast<std::size_t>(i < 0 ? i + rank() : i));
  }
  Dim count() const { return product(dims); }
  bool is_static() const;
  // All sizes as numbers; asserts is_static().
  std::vector<std::int64_t> numbers() const;
  bool operator==(const Shape&) const = default;
};

std::ostream& operator<<(std::ostream&, const Shape&);

struct Type {
  enum class Kind : std::uint8_t { tensor, sequence, optional, token };

  Kind kind = Kind::tensor;
  DType dtype = DType::f32;
  Shape shape;
  std::vector<Type> element;  // sequence and optional: one element type

  Type() = default;
  Type(DType d, Shape s) : dtype(d), shape(std::move(s)) {}
  static Type token() {
    Type t;
    t.kind = Kind::token;
    return t;
  }

  bool is_tensor() const { return kind == Kind::tensor; }
  int rank() const { return shape.rank(); }
  std::uint64_t hash() const;
  bool operator==(const Type&) const = default;
};

// "f32[2,n]", "token", "sequence<f32[2]>".
std::ostream& operator<<(std::ostream&, const Type&);

inline Type f32(Shape s) { return {DType::f32, std::move(s)}; }
inline Type f16(Shape s) { return {DType::f16, std::move(s)}; }
inline Type i64(Shape s) { return {DType::i64, std::move(s)}; }
inline Type i32(Shape s) { return {DType::i32, std::move(s)}; }
inline Type b1(Shape s) { return {DType::b1, std::move(s)}; }

// Dense row-major strides, in elements.
Dims dense_strides(const Dims& sizes);
inline Dims dense_strides(const Shape& s) { return dense_strides(s.dims); }
// Elements times element size.
Dim byte_count(const Type&);

}  // namespace hone
