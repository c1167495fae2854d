// The user's value: what an operation of a program gives while one of its entries is recorded. It
// owns what it belongs to, so it never dangles, and copies are cheap. It holds no numbers: those
// exist when the compiled program runs.
//
// Broadcasting is NumPy's: trailing axes are aligned, axes of size 1 are repeated. Tensors that
// meet in an operation must have the same dtype; nothing is converted unasked, see cast(). A C++
// number takes the dtype of the tensor that it meets, and must be representable in it. Axes may be
// negative, counted from the back. Every error is a UserError that begins with the caller's file
// and line.
#pragma once

#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <source_location>
#include <string>
#include <type_traits>
#include <vector>

#include "type/array.h"

namespace hone {

class Trace;
class Variable;

// The caller's place in the source. Every function takes it as its last argument, by default.
using Where = std::source_location;

class Tensor {
 public:
  Tensor() = default;  // empty: may only be assigned to
  bool is_empty() const { return !trace_; }

  DType dtype() const { return type().dtype; }
  const Shape& shape() const { return type().shape; }
  int rank() const { return type().rank(); }
  const Type& type() const;  // throws UserError for an empty tensor
  // The size of an axis: a number, or an expression over the entry's dim()s.
  const Dim& size(int axis, Where = Where::current()) const;

 private:
  friend class Trace;
  std::shared_ptr<Trace> trace_;
  std::uint32_t node_ = 0, index_ = 0;
};

using Tensors = std::vector<Tensor>;
using Axes = std::vector<int>;

// "f32[2,n]".
std::ostream& operator<<(std::ostream&, const Tensor&);

// A size that is open until a run: from `low` to `high`. In one entry, equal names are equal sizes.
Dim dim(std::string name, std::int64_t low, std::int64_t high, Where = Where::current());

// A tensor or a C++ number, and the line that gave it: what operators take. Not for variables of
// one's own.
class Operand {
 public:
  Operand(const Tensor& t, Where at = Where::current()) : tensor(t), at(at) {}  // NOLINT
  Operand(const Variable&, Where at = Where::current());                        // NOLINT
  template <class T>
    requires std::is_arithmetic_v<T>
  Operand(T x, Where at = Where::current())  // NOLINT
      : kind(std::is_floating_point_v<T> ? Kind::real
             : std::same_as<T, bool>     ? Kind::boolean
                                         : Kind::integer),
        real(static_cast<double>(x)),
        integer(std::is_floating_point_v<T> ? 0 : static_cast<std::int64_t>(x)),
        at(at) {}

  enum class Kind : std::uint8_t { tensor, real, integer, boolean };
  Kind kind = Kind::tensor;
  Tensor tensor;
  double real = 0;
  std::int64_t integer = 0;
  Where at;
};

// Arithmetic on numbers of any dtype but bool. Integers wrap; they divide towards zero.
Tensor operator+(const Operand&, const Operand&);
Tensor operator-(const Operand&, const Operand&);
Tensor operator*(const Operand&, const Operand&);
Tensor operator/(const Operand&, const Operand&);
Tensor operator-(const Operand&);
// Give bool tensors. Comparisons with NaN are false, != is true.
Tensor operator==(const Operand&, const Operand&);
Tensor operator!=(const Operand&, const Operand&);
Tensor operator<(const Operand&, const Operand&);
Tensor operator<=(const Operand&, const Operand&);
Tensor operator>(const Operand&, const Operand&);
Tensor operator>=(const Operand&, const Operand&);
// Bit by bit on integers; on bool: and, or, exclusive or, not.
Tensor operator&(const Operand&, const Operand&);
Tensor operator|(const Operand&, const Operand&);
Tensor operator^(const Operand&, const Operand&);
Tensor operator~(const Operand&);
// x = x op y: the name refers to the new value, other copies of x keep the old one.
inline Tensor& operator+=(Tensor& x, const Operand& y) { return x = Operand(x, y.at) + y; }
inline Tensor& operator-=(Tensor& x, const Operand& y) { return x = Operand(x, y.at) - y; }
inline Tensor& operator*=(Tensor& x, const Operand& y) { return x = Operand(x, y.at) * y; }
inline Tensor& operator/=(Tensor& x, const Operand& y) { return x = Operand(x, y.at) / y; }

}  // namespace hone
