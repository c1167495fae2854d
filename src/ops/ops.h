// The list of operations. Adding one takes its file and one word here. The meaning of each is in
// its `doc`; the three leaves (param, constant, dims) are in ir/op.h.
#pragma once

#include <span>
#include <string_view>

#include "ir/op.h"

namespace hone {

// clang-format off
#define HONE_OPS(X) \
  /* core, elementwise */ \
  X(add) X(sub) X(mul) X(div) X(rem) X(pow) X(maximum) X(minimum) \
  X(neg) X(abs) X(sign) X(exp) X(log) X(sqrt) X(tanh) X(erf) X(sin) X(cos) \
  X(floor) X(ceil) X(round) X(trunc) \
  X(bit_not) X(bit_and) X(bit_or) X(bit_xor) X(shift_left) X(shift_right) \
  X(eq) X(ne) X(lt) X(le) X(select) X(cast) X(bitcast) X(iota) X(random_bits) \
  /* core, movement */ \
  X(reshape) X(transpose) X(broadcast) X(slice) X(pad) X(concat) X(reverse) \
  X(gather) X(scatter) X(dynamic_slice) X(dynamic_update) \
  /* core, reduction */ \
  X(reduce_sum) X(reduce_max) X(reduce_min) X(reduce_prod) X(reduce_and) X(reduce_or) \
  X(argmax) X(argmin) X(reduce_window) X(cumulative) X(sort) \
  /* core, contraction */ \
  X(dot) X(conv) \
  /* core, control */ \
  X(if_else) X(while_loop) X(refuse) X(require) X(replay) \
  /* made of the above: elementwise */ \
  X(recip) X(rsqrt) X(square) X(mod) X(relu) X(leaky_relu) X(sigmoid) X(silu) X(gelu) \
  X(gelu_tanh) X(softplus) X(clip) \
  /* movement */ \
  X(tile) X(pad_edge) X(pad_reflect) X(one_hot) X(gather_elements) X(gather_nd) \
  X(scatter_elements) X(scatter_nd) \
  /* rows, norms, pooling, contraction, recurrence */ \
  X(mean) X(variance) X(softmax) X(log_softmax) X(layer_norm) X(rms_norm) X(batch_norm) \
  X(avg_pool) X(matmul) X(attention) X(attention_gradient) X(lstm_cell) X(lstm)
// clang-format on

namespace ops {
#define HONE_DECLARE(name) extern const Op name;
HONE_OPS(HONE_DECLARE)
#undef HONE_DECLARE
}  // namespace ops

std::span<const Op* const> all_ops();
// Whether element i of each result depends only on element i of each operand.
bool maps_elements(const Op&);
// Null when there is no such operation. Is an OpLookup.
const Op* find_op(std::string_view name);

}  // namespace hone
