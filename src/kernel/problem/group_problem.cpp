#include "kernel/problem/group_problem.h"

#include "ops/common.h"
#include "ops/ops.h"

namespace hone {

namespace {

Dims sizes_at(const Value& v, const Axes& axes) {
  Dims out;
  for (int a : axes) out.push_back(v.shape()[a]);
  return out;
}

void put(Dims& to, const Axes& axes, const Dims& at) {
  for (std::size_t i = 0; i < axes.size(); ++i) to[static_cast<std::size_t>(axes[i])] = at[i];
}

GroupProblem of_dot(Value v, const Positions& positions) {
  GroupProblem p{v.operand(0), v.operand(1)};
  const DotAxes x = dot_axes(v.attrs(), p.a.rank(), p.b.rank());
  const Dims batch = sizes_at(p.a, x.batch_a), rows = sizes_at(p.a, x.free_a),
             columns = sizes_at(p.b, x.free_b), contract = sizes_at(p.a, x.contract_a);
  p.batch = product(batch), p.m = product(rows), p.n = product(columns), p.k = product(contract);
  auto in = [&positions, batch, contract](const Axes& b_axes, const Axes& free_axes,
                                          const Axes& k_axes, Dims free) {
    return [&positions, batch, contract, b_axes, free_axes, k_axes, free](
               const Dim& b, const Dim& f, const Dim& k) {
      Dims out(b_axes.size() + free_axes.size() + k_axes.size(), 0);
      put(out, b_axes, positions.split(b, batch));
      put(out, free_axes, positions.split(f, free));
      put(out, k_axes, positions.split(k, contract));
      return out;
    };
  };
  p.a_at = in(x.batch_a, x.free_a, x.contract_a, rows);
  p.b_at = in(x.batch_b, x.free_b, x.contract_b, columns);
  p.c_at = [&positions, batch, rows, columns](const Dim& b, const Dim& m, const Dim& n) {
    Dims out = positions.split(b, batch);
    for (const Dim& d : positions.split(m, rows)) out.push_back(d);
    for (const Dim& d : positions.split(n, columns)) out.push_back(d);
    return out;
  };
  return p;
}

// Pixels are the rows; the sum runs over window positions times channels.
GroupProblem of_conv(Value v, const Positions& positions) {
  const ConvAxes axes = conv_axes(v.attrs(), v.rank());
  const bool channels_last = v.attrs().integer_or("channels_last", 0) != 0;
  const Dim groups = v.attrs().integer("groups");
  const Dims strides = v.attrs().dims("strides"), dilations = v.attrs().dims("dilations");
  Value x = v.operand(0), w = v.operand(1);
  Dims low(static_cast<std::size_t>(x.rank()), 0), high = low;
  put(low, axes.space, v.attrs().dims("pads_low"));
  put(high, axes.space, v.attrs().dims("pads_high"));
  const Dims none(low.size(), 0);
  if (low != none || high != none) x = pad_with(x, scalar(x.graph(), 0, x.dtype()), low, high);
  GroupProblem p{x, w};
  p.is_convolution = true;
  const Dim in = w.shape()[axes.in], out = floor_div(w.shape()[axes.out], groups);
  Dims rows = {v.shape()[axes.batch]};
  for (const Dim& d : sizes_at(v, axes.space)) rows.push_back(d);
  // In the order of the input's layout.
  Dims steps = sizes_at(w, axes.weight_space);
  steps.insert(channels_last ? steps.end() : steps.begin(), in);
  p.batch = groups, p.m = product(rows), p.n = out, p.k = product(steps);
  auto split_k = [&positions, steps, channels_last](const Dim& k) {
    Dims at = positions.split(k, steps);
    const auto channel = channels_last ? at.end() - 1 : at.begin();
    const Dim c = *channel;
    at.erase(channel);
    return std::pair(c, at);
  };
  p.a_at = [=, &positions](const Dim& b, const Dim& m, const Dim& k) {
    const Dims pixel = positions.split(m, rows);
    const auto [channel, tap] = split_k(k);
    Dims at(low.size(), 0);
    at[static_cast<std::size_t>(axes.batch)] = pixel[0];
    at[static_cast<std::size_t>(axes.channel)] = b * in + channel;
    for (std::size_t i = 0; i < axes.space.size(); ++i)
      at[static_cast<std::size_t>(axes.space[i])] =
          pixel[i + 1] * strides[i] + tap[i] * dilations[i];
    return at;
  };
  p.b_at = [=](const Dim& b, const Dim& n, const Dim& k) {
    const auto [channel, tap] = split_k(k);
    Dims at(low.size(), 0);
    at[static_cast<std::size_t>(axes.out)] = b * out + n;
    at[static_cast<std::size_t>(axes.in)] = channel;
    put(at, axes.weight_space, tap);
    return at;
  };
  p.c_at = [=, &positions](const Dim& b, const Dim& m, const Dim& n) {
    const Dims pixel = positions.split(m, rows);
    Dims at(low.size(), 0);
    at[static_cast<std::size_t>(axes.batch)] = pixel[0];
    at[static_cast<std::size_t>(axes.channel)] = b * out + n;
    for (std::size_t i = 0; i < axes.space.size(); ++i)
      at[static_cast<std::size_t>(axes.space[i])] = pixel[i + 1];
    return at;
  };
  return p;
}

}  // namespace

std::optional<FoundGroupContraction> find_group_contraction(const GroupSpec& spec,
                                                            const TargetInfo& target) {
  if (target.group_threads == 0) return std::nullopt;
  std::optional<AnchoredGroup> group = AnchoredGroup::find(spec);
  if (!group) return std::nullopt;
  const std::optional<DType> accumulate = accumulator(group->anchor().dtype());
  // Tiles multiply operands that are cast to the accumulator dtype.
  if (!accumulate) return std::nullopt;
  return FoundGroupContraction{std::move(*group), *accumulate};
}

GroupProblem problem_of(AnchoredGroup& group) {
  const Positions& positions = group.lowering().positions();
  const Value anchor = group.anchor();
  return anchor.is(ops::conv) ? of_conv(anchor, positions) : of_dot(anchor, positions);
}

}  // namespace hone
