#include "verify/masks.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/ops.h"
#include "type/array.h"

namespace hone {

namespace {

// Whether the result holds the numbers of its operand, or sums of them and others.
bool passes_on(const Op& op) {
  return op.kind == OpKind::movement || &op == &ops::add || &op == &ops::cast;
}

bool takes_mask(const Graph& graph, NodeId n, std::size_t operand) {
  const Op& op = graph.op(n);
  return (&op == &ops::attention && operand == 3) ||
         (operand == 0 && (&op == &ops::softmax || &op == &ops::log_softmax));
}

}  // namespace

void hide_rows(std::span<std::byte> to, DType t, std::span<const std::int64_t> dims,
               std::uint64_t seed) {
  constexpr std::int64_t kinds = 4;
  if (dims.empty() || dims.back() < 2 || to.empty()) return;
  const std::int64_t width = dims.back(), size = byte_size(t),
                     rows = static_cast<std::int64_t>(to.size()) / (width * size);
  Array hidden = Array::zeros(t, {width}), shown = Array::zeros(t, {1});
  if (is_float(t))
    for (std::int64_t i = 0; i < width; ++i) hidden.set_real(i, -INFINITY);
  else
    shown.set_integer(0, 1);
  const auto hide = [&](std::byte* row, std::int64_t most) {
    std::ranges::copy(hidden.bytes().first(static_cast<std::size_t>(most * size)), row);
    std::ranges::copy(shown.bytes(), row + (width - 1) * size);
  };
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto kind = static_cast<std::int64_t>((seed + static_cast<std::uint64_t>(row)) % kinds);
    std::byte* at = to.data() + row * width * size;
    if (kind == 0) hide(at, width - 1 - width / 8);
    if (kind == 2) hide(at, width / 2);
    // Bools that hide nothing: a row may have lost them.
    if (kind == 3 && t == DType::b1 && row / kinds % kinds == 0)
      std::memset(at, 1, static_cast<std::size_t>(width));
  }
}

std::vector<bool> masks_of_params(const Function& f) {
  const Graph& graph = f.graph();
  const std::vector<NodeId> order = live_nodes(f);
  // From the results on: the operands of what takes a mask, and what these consist of.
  std::vector<bool> is_mask(graph.node_count(), false);
  for (std::size_t k = order.size(); k-- > 0;) {
    const NodeId n = order[k];
    const std::span<const Value> operands = graph.operands(n);
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (takes_mask(graph, n, i) || (is_mask[n] && passes_on(graph.op(n))))
        is_mask[operands[i].node()] = true;
  }
  std::vector<bool> out;
  for (std::size_t i = 0; i < f.params().size(); ++i)
    out.push_back(is_float(f.param(i).dtype()) && is_mask[f.param(i).node()]);
  return out;
}

}  // namespace hone
