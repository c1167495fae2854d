// Operand types shared by the samples of several operations: ordinary, rank 0, zero-size, narrow
// floats, a symbolic size.
#pragma once

#include "ir/op.h"

namespace hone {

inline Dim sample_symbol() { return Dim::symbol("n", 1, 8); }

inline std::vector<Type> sample_real_types() {
  return {f32({2, 3}),
          f32({}),
          f32({0, 3}),
          f32({sample_symbol(), 5}),
          f16({7}),
          {DType::bf16, {7}},
          {DType::f64, {2, 2}}};
}
inline std::vector<Type> sample_integer_types() {
  return {i64({2, 3}), i32({5}), {DType::u8, {4}}, {DType::i8, {9}}, {DType::u64, {3}}, i64({})};
}

inline constexpr DType small_dtypes[] = {
    DType::i2,       DType::u2,         DType::i4,     DType::u4,         DType::f4e2m1,
    DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz, DType::f8e8m0};

inline std::vector<Type> sample_types() {
  std::vector<Type> all = sample_real_types();
  for (const Type& t : sample_integer_types()) all.push_back(t);
  all.push_back(b1({3}));
  return all;
}

// For each type, a sample with that type for all operands.
inline Samples samples_of(const std::vector<Type>& types, std::size_t operands) {
  Samples out;
  for (const Type& t : types) out.push_back({std::vector<Type>(operands, t), {}});
  return out;
}
inline Samples joined(Samples a, const Samples& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
inline Samples real_unary_samples() { return samples_of(sample_real_types(), 1); }
inline Samples integer_unary_samples() { return samples_of(sample_integer_types(), 1); }
inline Samples numeric_unary_samples() {
  return joined(real_unary_samples(), integer_unary_samples());
}
inline Samples real_binary_samples() { return samples_of(sample_real_types(), 2); }
inline Samples numeric_binary_samples() {
  return joined(real_binary_samples(), samples_of(sample_integer_types(), 2));
}

}  // namespace hone
