#include "kernel/groups/attention_rows.h"

#include <array>

#include "base/checked.h"
#include "kernel/nest/blocking.h"
#include "kernel/walk.h"
#include "ops/ops.h"

namespace hone {

namespace {

constexpr std::int64_t width = AttentionRows::vector_width;

// True if everything it loads is in vectors of 16 bytes.
bool reads_vectors(Value element, const Dim& lane) {
  bool any = false;
  for (NodeId n : nodes_below(std::span(&element, 1))) {
    const Value load(&element.graph(), n);
    if (!load.is(ops::load)) continue;
    const Dim offset = load.attrs().dims("offset").at(0);
    const std::optional<Dim> stride = stride_of(offset, lane);
    if (stride == Dim(0)) continue;
    const Replacement none[] = {{lane, 0}};
    if (!(stride == Dim(1)) || !(mod(replace(offset, none), width) == Dim(0))) return false;
    if (load.operand_count() > 0 && dependences(load.operand(0)).loops.contains(*loop_of(lane)))
      return false;
    any = true;
  }
  return any;
}

}  // namespace

std::optional<AttentionRows> attention_rows(AnchoredGroup& group, Value v,
                                            const AttentionPlaces& at, const Dims& matrix,
                                            const Dim& row) {
  Positions& positions = group.lowering().positions();
  AttentionRows out;
  out.columns = v.shape()[-1].number();
  out.extent = v.shape()[-2];
  const Dim vector = positions.add_loop(ceil_ratio(out.columns, width)),
            lane = positions.add_loop(width);
  std::optional<Splice> element = group.element(v, at(matrix, row, vector * Dim(width) + lane),
                                                std::array{at.b, row, vector, lane}, DType::f32);
  if (!element) return std::nullopt;
  if (element->value.dtype() != v.dtype())
    element->value = group.lowering().convert(element->value, v.dtype());
  out.are_vectors = out.columns % width == 0 && reads_vectors(element->value, lane);
  out.are_copied = out.are_vectors && element->value.is(ops::load);
  out.element = std::move(*element);
  return out;
}

}  // namespace hone
