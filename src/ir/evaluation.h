// What the reference interpreter gives an operation, and the tensors that it computes with. Not the
// interpreter, which is in ref/.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ir/attr.h"
#include "type/array.h"

namespace hone {

// The reference evaluator's tensor: floats as doubles, integers and bools exactly in 64 bits.
struct Wide {
  DType dtype = DType::f32;
  std::vector<std::int64_t> dims;
  std::vector<double> reals;           // float dtypes
  std::vector<std::int64_t> integers;  // all others; u64 as its bits

  Wide() = default;
  Wide(DType t, std::vector<std::int64_t> d);  // zeros
  std::int64_t count() const;
  bool is_real() const { return is_float(dtype); }
};

Wide widen(const Array&);
Array narrow(const Wide&);   // rounds once to the dtype, integers wrap
void round_to_dtype(Wide&);  // in place: what narrow() would keep

// One evaluation of a node by the reference interpreter.
struct Evaluation {
  const Attrs& attrs;
  std::span<const Wide* const> inputs;
  std::span<const Type> result_types;
  const std::function<std::int64_t(const Dim&)>& size;  // value of a Dim in this run
  // Evaluates a closed Function (bodies of if and while).
  const std::function<std::vector<Wide>(const Function&, std::vector<Wide>)>& call;
  // Sums of narrow floats and f32 are rounded to f32 after every term, as in a kernel; those of a
  // scatter, which accumulate in memory, are rounded to the dtype.
  bool round_sums = false;

  std::vector<std::int64_t> result_dims(std::size_t i = 0) const;
  std::vector<std::int64_t> sizes(const Dims&) const;
};

}  // namespace hone
