#include "ir/evaluation.h"

#include <cstring>

#include "base/checked.h"

namespace hone {

Wide::Wide(DType t, std::vector<std::int64_t> d) : dtype(t), dims(std::move(d)) {
  const std::size_t n = static_cast<std::size_t>(count());
  try {
    if (is_real())
      reals.resize(n);
    else
      integers.resize(n);
  } catch (const std::exception&) {  // bad_alloc, or length_error
    throw OutOfMemory("out of memory: the reference needs 8 bytes for each element of ",
                      Type(dtype, Shape(dims_of(dims))),
                      "; use smaller sizes, or leave the reference out");
  }
}

std::int64_t Wide::count() const {
  std::int64_t n = 1;
  for (std::int64_t d : dims) n = checked_mul(n, d);
  return n;
}

Wide widen(const Array& a) {
  if (a.dtype() == DType::f32) {
    Wide w(a.dtype(), a.dims());
    const std::byte* from = a.bytes().data();  // may come from a file: unaligned
    for (std::size_t i = 0; i < w.reals.size(); ++i) {
      float x;
      std::memcpy(&x, from + i * sizeof x, sizeof x);
      w.reals[i] = x;
    }
    return w;
  }
  Wide w(a.dtype(), a.dims());
  std::int64_t n = a.count();
  if (w.is_real())
    for (std::int64_t i = 0; i < n; ++i) w.reals[static_cast<std::size_t>(i)] = a.real(i);
  else
    for (std::int64_t i = 0; i < n; ++i) w.integers[static_cast<std::size_t>(i)] = a.integer(i);
  return w;
}

Array narrow(const Wide& w) {
  Array a = Array::zeros(w.dtype, w.dims);
  std::int64_t n = w.count();
  if (w.is_real())
    for (std::int64_t i = 0; i < n; ++i) a.set_real(i, w.reals[static_cast<std::size_t>(i)]);
  else
    for (std::int64_t i = 0; i < n; ++i) a.set_integer(i, w.integers[static_cast<std::size_t>(i)]);
  return a;
}

void round_to_dtype(Wide& w) {
  switch (w.dtype) {
    case DType::f64:
      return;
    case DType::f32:
      for (double& x : w.reals) x = static_cast<float>(x);
      return;
    case DType::f16:
      for (double& x : w.reals) x = f16_to_f32(f64_to_f16(x));
      return;
    case DType::bf16:
      for (double& x : w.reals) x = bf16_to_f32(f64_to_bf16(x));
      return;
    default: {
      if (w.is_real()) {
        for (double& x : w.reals) x = small_to_f64(w.dtype, f64_to_small(w.dtype, x));
        return;
      }
      Array a = narrow(w);
      for (std::int64_t i = 0; i < w.count(); ++i)
        w.integers[static_cast<std::size_t>(i)] = a.integer(i);
    }
  }
}

std::vector<std::int64_t> Evaluation::result_dims(std::size_t i) const {
  return sizes(result_types[i].shape.dims);
}

std::vector<std::int64_t> Evaluation::sizes(const Dims& dims) const {
  std::vector<std::int64_t> out;
  out.reserve(dims.size());
  for (const Dim& d : dims) out.push_back(size(d));
  return out;
}

}  // namespace hone
