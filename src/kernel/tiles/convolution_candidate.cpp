#include <algorithm>

#include "kernel/problem/anchored.h"
#include "kernel/tiles/convolution.h"
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
  c.packed_dtype = packed_dtype(w, c.accumulate);
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

// Weights [window..., i, o] in the kernel's layout.
Value packed(Value w, const Convolution& c, const ConvolutionTuning& t) {
  const std::size_t space = c.window.size();
  const std::int64_t groups = c.is_depthwise() ? 1 : c.groups;
  const std::int64_t depth = c.in_channels / c.groups, width = c.out_channels / groups;
  const std::int64_t panels = panel_count(c, t) / groups;
  Dims dims = dims_of(c.window), low(space + 3, 0), high(space + 3, 0);
  for (std::int64_t n : {depth, groups, width}) dims.push_back(n);
  high.back() = panels * t.columns - width;
  Value x = cast_to(reshape_to(w, dims), c.packed_dtype);
  x = pad_with(x, scalar(x.graph(), 0, c.packed_dtype), low, high);
  dims.back() = panels;
  dims.push_back(t.columns);
  x = reshape_to(x, dims);  // [window..., depth, group, panel, block]
  const int n = static_cast<int>(space);
  Axes order = {n + 1, n + 2};
  for (int i = 0; i <= n; ++i) order.push_back(i);
  order.push_back(n + 3);
  return reshape_to(transpose_by(x, order), packed_type(c, t).shape.dims);
}

// True if pixels are contiguous along the last axis, and channels within them.
bool lies_dense(const Convolution& c, const Splice& input, DType dtype) {
  const Dims& vars = input.vars;
  auto load = plain_load(input, dtype);
  const Dim &pixel = vars[vars.size() - 2], &channel = vars.back();
  return load && (c.in_channels == 1 || stride_along(*load, channel) == 1) &&
         (c.in_size.back() == Dim(1) || stride_along(*load, pixel) == c.in_channels);
}

// Empty if the input cannot be read in place.
std::vector<std::int64_t> strides_in_place(const Convolution& c, const Splice& input) {
  const std::span<const Dim> vars(input.vars.begin(), input.vars.size());
  auto load = plain_load(input, c.accumulate);
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

struct FoundConvolution {
  AnchoredGroup group;
  Convolution shape;
};

std::optional<FoundConvolution> find_convolution(const GroupSpec& spec) {
  std::optional<AnchoredGroup> group = AnchoredGroup::find(spec);
  if (!group || !group->anchor().is(ops::conv)) return std::nullopt;
  const Value anchor = group->anchor(), input = anchor.operand(0);
  if (anchor.attrs().integer_or("channels_last", 0) == 0) return std::nullopt;
  // Without weights there is nothing to divide into panels.
  if (!accumulator(anchor.dtype()) || anchor.operand(1).shape().count() == Dim(0))
    return std::nullopt;
  Convolution c = shape_of(anchor);
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
  auto element = group->element(input, at(in), in, c.accumulate);
  auto epilogue = group->epilogue(at(out), out);
  if (!element || !epilogue) return std::nullopt;
  c.input = std::move(*element);
  c.epilogue = std::move(*epilogue);
  c.input_is_dense = lies_dense(c, c.input, input.dtype());
  c.in_place_strides = strides_in_place(c, c.input);
  return FoundConvolution{std::move(*group), std::move(c)};
}

}  // namespace

std::optional<Candidate> convolution_candidate(const GroupSpec& spec, const TargetInfo& target,
                                               const Tuning& tuning) {
  std::optional<FoundConvolution> found = find_convolution(spec);
  if (!found) return std::nullopt;
  auto& [group, c] = *found;
  const ConvolutionTuning t = tuned(c, target, tuning);
  const Value weights = group.anchor().operand(1);
  const Type type = packed_type(c, t);
  const bool is_weight = group.is_weight(weights);
  c.packed_weights = group.set_temporary(0, type);
  Candidate candidate;
  candidate.name = "generated";
  candidate.temporaries.push_back({type, is_weight});
  auto make = [&](Value w) { return packed(w, c, t); };
  candidate.steps.push_back(group.packing_step(weights, make, 0, is_weight));
  Kernel kernel = group.kernel();
  write_convolution(kernel, group.lowering(), c, t, target);
  candidate.steps.push_back({std::move(kernel), group.operands(), {}, false});
  return candidate;
}

std::vector<Tuning> convolution_space(const GroupSpec& spec, const TargetInfo& target) {
  const std::optional<FoundConvolution> found = find_convolution(spec);
  return found ? space_of(found->shape, target) : std::vector<Tuning>();
}

}  // namespace hone
