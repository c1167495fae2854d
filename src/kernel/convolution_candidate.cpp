#include <algorithm>

#include "kernel/anchored.h"
#include "kernel/convolution.h"
#include "ops/common.h"
#include "ops/contraction.h"
#include "ops/ops.h"

namespace hone {

namespace {

// Window, channels and sizes of a channels-last convolution.
Convolution shape_of(Value v) {
  const Value x = v.operand(0), w = v.operand(1);
  const Attrs& attrs = v.attrs();
  const ConvAxes axes = conv_axes(attrs, v.rank());
  Convolution c;
  c.accumulate = *accumulator(v.dtype());
  c.images = x.shape()[axes.batch];
  for (std::size_t i = 0; i < axes.space.size(); ++i) {
    c.in_size.push_back(x.shape()[axes.space[i]]);
    c.out_size.push_back(v.shape()[axes.space[i]]);
    c.window.push_back(w.shape()[axes.weight_space[i]].number());
  }
  c.strides = attrs.integers("strides");
  c.dilations = attrs.integers("dilations");
  c.pads_low = attrs.dims("pads_low");
  c.groups = attrs.integer("groups");
  c.out_channels = w.shape()[axes.out].number();
  c.in_channels = w.shape()[axes.in].number() * c.groups;
  return c;
}

// Weights [window..., i, o] as the skeleton reads them.
Value packed(Value w, const Convolution& c) {
  const std::size_t space = c.window.size();
  const std::int64_t groups = c.is_depthwise() ? 1 : c.groups;
  const std::int64_t depth = c.in_channels / c.groups, width = c.out_channels / groups;
  const std::int64_t panels = panel_count(c) / groups;
  Dims dims = dims_of(c.window), low(space + 3, 0), high(space + 3, 0);
  for (std::int64_t n : {depth, groups, width}) dims.push_back(n);
  high.back() = panels * c.block - width;
  Value x = cast_to(reshape_to(w, dims), c.accumulate);
  x = pad_with(x, scalar(x.graph(), 0, c.accumulate), low, high);
  dims.back() = panels;
  dims.push_back(c.block);
  x = reshape_to(x, dims);  // [window..., depth, group, panel, block]
  const int n = static_cast<int>(space);
  Axes order = {n + 1, n + 2};
  for (int i = 0; i <= n; ++i) order.push_back(i);
  order.push_back(n + 3);
  return reshape_to(transpose_by(x, order), packed_type(c).shape.dims);
}

// Pixels follow each other along the last axis, channels within them.
bool lies_dense(const Convolution& c, std::span<const Dim> vars, DType dtype) {
  auto load = plain_load(c.input, dtype);
  const Dim &pixel = vars[vars.size() - 2], &channel = vars.back();
  return load && (c.in_channels == 1 || stride_along(*load, channel) == 1) &&
         (c.in_size.back() == Dim(1) || stride_along(*load, pixel) == c.in_channels);
}

// Nothing when the input cannot be read where it lies.
std::vector<std::int64_t> strides_in_place(const Convolution& c, std::span<const Dim> vars) {
  auto load = plain_load(c.input, c.accumulate);
  if (!load || !c.input_is_dense) return {};
  std::vector<std::int64_t> out;
  for (const Dim& v : vars.subspan(1, vars.size() - 2)) {
    std::optional<std::int64_t> stride = stride_along(*load, v);
    if (!stride) return {};
    out.push_back(*stride);
  }
  out.back() = c.in_channels;  // also of a single pixel
  return out;
}

}  // namespace

std::optional<Candidate> convolution_candidate(const GroupSpec& spec, const TargetInfo& target) {
  std::optional<AnchoredGroup> group = AnchoredGroup::find(spec);
  if (!group || !group->anchor().is(ops::conv)) return std::nullopt;
  const Value anchor = group->anchor(), input = anchor.operand(0), weights = anchor.operand(1);
  if (anchor.attrs().integer_or("channels_last", 0) == 0) return std::nullopt;
  if (!accumulator(anchor.dtype())) return std::nullopt;
  Convolution c = shape_of(anchor);
  c.graph = group->graph();
  group->set_operands(std::span(&input, 1), 1);
  Positions& positions = group->lowering().positions();
  auto variables = [&](const Dims& space, const Dim& channels) {
    Dims vars = {positions.add_loop(c.images)};
    for (const Dim& d : space) vars.push_back(positions.add_loop(d));
    vars.push_back(positions.add_loop(channels));
    return vars;
  };
  const Dims in = variables(c.in_size, c.in_channels), out = variables(c.out_size, c.out_channels);
  // The only position of an axis of size 1 is 0, also where it comes from a reshape.
  auto at = [&](Dims vars) {
    for (Dim& v : vars)
      if (positions.extent(v) == Dim(1)) v = 0;
    return vars;
  };
  auto input_hole = group->load_hole(input, at(in), in, c.accumulate);
  auto epilogue = group->epilogue(at(out), out);
  if (!input_hole || !epilogue) return std::nullopt;
  c.input = std::move(*input_hole);
  c.epilogue = std::move(*epilogue);
  c.input_is_dense = lies_dense(c, in, input.dtype());
  c.in_place_strides = strides_in_place(c, in);
  choose_blocking(c, target);
  const Type type = packed_type(c);
  const bool is_weight = group->is_weight(weights);
  c.packed_weights = group->set_temporary(0, type);
  Candidate candidate;
  candidate.name = "generated";
  candidate.temporaries.push_back({type, is_weight});
  candidate.steps.push_back(
      group->packing_step(weights, [&](Value w) { return packed(w, c); }, 0, is_weight));
  Kernel kernel = group->kernel();
  kernel.chunks = chunks_of(c);
  kernel.scratch_bytes = scratch_bytes(c);
  kernel.body = std::move(c);
  candidate.steps.push_back({std::move(kernel), group->operands(), {}, false});
  return candidate;
}

}  // namespace hone
