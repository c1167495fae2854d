// Sorting and selection along an axis.
#include <algorithm>

#include "import/common/build.h"
#include "import/onnx/node/context.h"
#include "import/onnx/operators/list.h"
#include "ops/require.h"

namespace hone::onnx {

namespace {

// Equal elements keep their order, so that the first of them is taken first.
Values top_k(NodeContext& c) {
  Value x = c.in(0);
  const std::int64_t axis = c.axis(c.integer("axis", -1), x.rank());
  c.ignore("sorted");  // if 0, any order is valid
  const Dim most = x.shape()[static_cast<int>(axis)];
  const Dim k = c.opset() < 10 ? Dim(c.integer("k", 0)) : c.open_size(1, most);
  if (k.low() < 0 || (k - most).low() > 0)
    c.fail(cat("K is ", k, ", expected 0 to ", most, ", the size of axis ", axis));
  Attrs attrs = {{"axis", axis}, {"descending", std::int64_t{c.flag("largest", true)}}};
  if (k != most) attrs.set("count", Dims{k});
  Value sorted = ops::sort(x, attrs);
  return {sorted.result(0), sorted.result(1)};
}

// Reverses the first lengths[b] elements of each sequence.
Values reverse_sequence(NodeContext& c) {
  Value x = c.in(0), lengths = cast_to(c.in(1), DType::i64);
  const int batch = c.axis(c.integer("batch_axis", 1), x.rank()),
            time = c.axis(c.integer("time_axis", 0), x.rank());
  if (batch == time)
    c.fail(cat("batch_axis and time_axis are both ", batch, ", expected different axes"));
  require_within(lengths, 0, x.shape()[time], "a length");
  Value t = along(counted(c.graph(), DType::i64, x.shape()[time]), time, x.rank());
  Value length = along(lengths, batch, x.rank());
  Value back = minus(minus(length, integer_like(length, 1)), t);
  Value index = where(joined(ops::lt, t, length), back, t);
  return {take_along(x, index, time)};
}

constexpr ImportEntry order_table[] = {
    {"TopK", top_k},
    {"ReverseSequence", reverse_sequence, 10},
};

}  // namespace

std::span<const ImportEntry> order_imports() { return order_table; }

}  // namespace hone::onnx
