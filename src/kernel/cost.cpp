#include "kernel/cost.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernel/blocking.h"
#include "kernel/convolution.h"
#include "kernel/lower.h"
#include "kernel/walk.h"
#include "ops/ops.h"

namespace hone {

double weight_of(const Op& op) {
  struct Entry {
    const Op* op;
    double weight;
  };
  static const Entry entries[] = {{&ops::exp, 12},  {&ops::log, 15},      {&ops::tanh, 18},
                                  {&ops::erf, 20},  {&ops::pow, 40},      {&ops::sin, 25},
                                  {&ops::cos, 25},  {&ops::div, 8},       {&ops::rem, 12},
                                  {&ops::sqrt, 8},  {&ops::gelu, 16},     {&ops::sigmoid, 16},
                                  {&ops::silu, 17}, {&ops::softplus, 17}, {&ops::gelu_tanh, 16}};
  for (const Entry& e : entries)
    if (e.op == &op) return e.weight;
  return op.kind == OpKind::leaf ? 0 : 1;
}

namespace {

// Costs are counted in vector instructions, one of which a core of this target starts per cycle; a
// multiply-add is one.
double instructions_per_ms(const TargetInfo& t) { return t.fma_gflops * 1e6 / (2 * t.lanes(4)); }

// What runs once for each turn of the loops around it, and how many elements at once.
struct Context {
  double times = 1;
  std::optional<VarId> lane_var;
  int lanes = 1;
};

// Elements that are not next to each other are fetched one by one.
double access_cost(const Dim& place, const Context& c) {
  if (!c.lane_var) return 1;
  for (const Dim& s : place.symbols())
    if (loop_of(s) == c.lane_var) return stride_of(place, s) == Dim(1) ? 1 : c.lanes;
  return 1;
}

double expression_cost(std::span<const Value> roots, const Context& c) {
  double cost = 0;
  for (NodeId n : nodes_below(roots)) {
    const Graph& graph = roots[0].graph();
    if (&graph.op(n) == &ops::load)
      cost += access_cost(graph.attrs(n).dims("offset").at(0), c);
    else
      cost += weight_of(graph.op(n));
  }
  return cost;
}

double statement_cost(const Stmt&, const Context&, const TargetInfo&);

double block_cost(const Block& block, const Context& c, const TargetInfo& target) {
  double cost = 0;
  for (const Stmt& s : block) cost += statement_cost(s, c, target);
  return cost;
}

double statement_cost(const Stmt& s, const Context& c, const TargetInfo& target) {
  if (s.kind != Stmt::Kind::loop) {
    std::vector<Value> values = values_of(s);
    double cost = values.empty() ? 0 : expression_cost(values, c);
    if (s.kind == Stmt::Kind::store) cost += access_cost(s.offset, c);
    return c.times * (cost + 1) + block_cost(s.body, c, target);
  }
  Context inner = c;
  inner.times *= typical(s.extent);
  if (s.loop == LoopKind::lanes) {
    inner.lane_var = s.var;
    inner.lanes = target.lanes(4);
    inner.times = c.times * std::ceil(typical(s.extent) / inner.lanes);
  }
  // Loops cost an instruction or two a turn.
  return 2 * inner.times + block_cost(s.body, inner, target);
}

// The epilogue of a skeleton for `elements` elements, of which lanes lie along the last variable.
double hole_cost(const Hole& hole, double elements, const TargetInfo& target) {
  if (hole.vars.empty()) return 0;
  Context c{elements / target.lanes(4), hole.vars.back(), target.lanes(4)};
  if (hole.value) return c.times * (expression_cost(std::span(&hole.value, 1), c) + 1);
  return block_cost(hole.stores, c, target);
}

double body_cost(const Nest& nest, const TargetInfo& target) {
  return block_cost(nest.body, {}, target);
}

double body_cost(const Contraction& c, const TargetInfo& target) {
  const double batch = typical(c.batch), m = typical(c.m), n = typical(c.n), k = typical(c.k);
  const TileShape tile{c.rows, c.block / target.lanes(byte_size(c.accumulate))};
  double cost = batch * std::ceil(m / c.rows) * std::ceil(n / c.block) * k * tile.cycles();
  cost += hole_cost(c.epilogue, batch * m * n, target);
  const double copies = std::ceil(n / static_cast<double>(c.chunk_columns));
  if (c.read_a != Contraction::ReadA::in_place)
    cost += copies * hole_cost(c.a, batch * m * k, target);
  return cost;
}

double body_cost(const Convolution& c, const TargetInfo& target) {
  double inputs = typical(c.images) * static_cast<double>(c.in_channels), outputs = inputs;
  outputs = typical(c.images) * static_cast<double>(c.out_channels);
  double tiles = typical(c.images), rows = 1, taps = 1;
  for (std::size_t i = 0; i < c.tile.size(); ++i) {
    inputs *= typical(c.in_size[i]);
    outputs *= typical(c.out_size[i]);
    tiles *= std::ceil(typical(c.out_size[i]) / static_cast<double>(c.tile[i]));
    rows *= static_cast<double>(c.tile[i]);
    taps *= static_cast<double>(c.window[i]);
  }
  const TileShape tile{static_cast<std::int64_t>(rows),
                       c.block / target.lanes(byte_size(c.accumulate))};
  const double depth = static_cast<double>(c.in_channels / c.groups);
  double cost = tiles * static_cast<double>(panel_count(c)) * taps * depth * tile.cycles();
  const double copies = static_cast<double>(ceil_ratio(panel_count(c), c.chunk_panels));
  return cost + copies * hole_cost(c.input, inputs, target) +
         hole_cost(c.epilogue, outputs, target);
}

double bytes_of(const Kernel& k) {
  double bytes = 0;
  for (const KernelParam& p : k.params) {
    double n = static_cast<double>(byte_size(p.dtype));
    for (std::size_t i = 0; i < p.dims.size(); ++i)
      if (!(p.strides[i] == Dim(0))) n *= typical(p.dims[i]);
    bytes += n;
  }
  return bytes;
}

}  // namespace

double predicted_ms(const Kernel& k, const TargetInfo& target) {
  const double instructions =
      std::visit([&](const auto& body) { return body_cost(body, target); }, k.body);
  const double bytes = bytes_of(k);
  const double rate =
      bytes < static_cast<double>(target.l2_bytes) ? target.cache_gbytes : target.memory_gbytes;
  return std::max(instructions / instructions_per_ms(target), bytes / (rate * 1e6));
}

double predicted_ms(const Candidate& c, const TargetInfo& target) {
  double ms = 0;
  for (const Candidate::Step& s : c.steps) {
    if (s.prepare) continue;
    const auto* kernel = std::get_if<Kernel>(&s.what);
    HONE_ASSERT(kernel, "a library call has no predicted time");
    ms += predicted_ms(*kernel, target) + target.launch_us * 1e-3;
  }
  return ms;
}

}  // namespace hone
