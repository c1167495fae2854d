#include "import/onnx/node/open_outputs.h"

#include <algorithm>

#include "import/common/build.h"
#include "import/onnx/node/open.h"
#include "ops/require.h"

namespace hone::onnx {

namespace {

// The data-dependent sizes in this graph; empty when there are none.
std::vector<bool> open_axes(Value v) {
  std::vector<bool> out;
  for (const Dim& d : v.shape().dims) out.push_back(room_of(v.graph(), d) != d);
  if (std::ranges::count(out, true) == 0) out.clear();
  return out;
}

// The sizes of all iterations, one row each, which must be equal; zeros without rows.
Value common_sizes(Value rows) {
  const Value zero = integer(rows.graph(), 0);
  const Value most = reduce_axes(ops::reduce_max, rows, {0}),
              least = reduce_axes(ops::reduce_min, rows, {0});
  const Value sizes = ops::maximum(most, broadcast_to(zero, most.shape()));
  require_within(sizes - ops::minimum(least, sizes), 0, 0,
                 "Loop: how much a size of a stacked output changes between iterations");
  return sizes;
}

}  // namespace

Body OpenOutputs::with_rooms(const Body& body) {
  open_.clear();
  const Function& inner = *body.function;
  for (std::size_t r = first_output_; r < inner.results().size(); ++r)
    open_.push_back(open_axes(inner.result(r)));
  if (std::ranges::all_of(open_, &std::vector<bool>::empty)) return body;
  Body out{std::make_shared<Function>(), body.captures};
  Function& f = *out.function;
  Values given, sizes;
  for (const Function::Param& p : inner.params())
    given.push_back(f.add_param(p.value.type(), p.name));
  const Values made = inline_call(f.graph(), inner, given);
  for (std::size_t r = 0; r < made.size(); ++r) {
    Value v = made[r];
    if (r >= first_output_ && !open_[r - first_output_].empty()) {
      Dims room;
      for (const Dim& d : v.shape().dims) room.push_back(room_of(f.graph(), d));
      sizes.push_back(dims_value(f.graph(), v.shape().dims, DType::i64, {v.rank()}));
      v = in_room(v, room);
    }
    f.add_result(v, inner.results()[r].name);
  }
  for (const Value& v : sizes) f.add_result(v, "");
  return out;
}

void OpenOutputs::finish(Values& outputs) const {
  const auto added = open_.size() - static_cast<std::size_t>(
                                        std::ranges::count_if(open_, &std::vector<bool>::empty));
  Values sizes(outputs.end() - static_cast<std::ptrdiff_t>(added), outputs.end());
  outputs.resize(outputs.size() - added);
  for (std::size_t i = 0, next = 0; i < open_.size(); ++i) {
    if (open_[i].empty()) continue;
    std::vector<bool> open = open_[i];
    open.insert(open.begin(), false);  // the axis of iterations
    const Value found = concat_values(
        Values{integer_list(outputs[i].graph(), {0}), common_sizes(sizes[next++])}, 0);
    outputs[i] = from_room(c_, outputs[i], found, open);
  }
}

}  // namespace hone::onnx
