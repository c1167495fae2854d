#include "kernel/forms/forms.h"
#include "kernel/nest/loops.h"
#include "test/extending/extending.h"

namespace hone::extending {

namespace {

std::int64_t part_of(const Tuning& tuning) { return value_or(tuning, "part", 1024); }

// A group without reductions in parts of so many elements, each of which is a loop over lanes.
std::optional<Candidate> build(const GroupSpec& spec, const TargetInfo&, const Tuning& tuning) {
  const Function f = expand_for_kernels(spec.function);
  const Value y = f.result(0);
  const Dim count = y.shape().count(), part = part_of(tuning);
  if (f.results().size() != 1 || !count.is_number() || mod(count, part) != Dim(0))
    return std::nullopt;

  Candidate out{.name = "parts"};
  Candidate::Step& step = out.steps.emplace_back();
  Kernel k{.name = "parts"};
  Lowering lowering(std::make_shared<Graph>());
  for (int i = 0; i < static_cast<int>(f.params().size()); ++i) {
    const Value x = f.param(static_cast<std::size_t>(i));
    const Dims& strides = spec.param_strides[static_cast<std::size_t>(i)];
    k.params.push_back({x.dtype(), x.shape().dims, strides});
    lowering.set_memory(x, {i, strides});
    step.operands.push_back({Candidate::Operand::Kind::param, i});
  }
  const Memory result{static_cast<int>(k.params.size()), spec.result_strides[0]};
  k.params.push_back({y.dtype(), y.shape().dims, result.strides, true});
  step.operands.push_back({Candidate::Operand::Kind::result, 0});

  const Dim outer = lowering.open_loop(floor_div(count, part)), inner = lowering.open_loop(part);
  lowering.store(y, lowering.positions().split(outer * part + inner, y.shape().dims), result);
  lowering.close_loop();
  lowering.close_loop();
  Block body = lowering.take();
  // A reduction would have put a loop beside these two.
  if (body.size() != 1 || body[0].body.size() != 1) return std::nullopt;
  body[0].loop = LoopKind::grid;
  body[0].body[0].loop = LoopKind::lanes;
  k.chunks = body[0].extent;
  find_sizes(k, body);
  k.graph = lowering.shared_graph();
  k.body = std::move(body);
  step.what = std::move(k);
  return out;
}

std::vector<Tuning> space(const GroupSpec& spec, const TargetInfo& target) {
  std::vector<Tuning> out;
  for (std::int64_t part : {1024, 256, 4096})
    if (const Tuning t = {{"part", part}}; build(spec, target, t)) out.push_back(t);
  return out;
}

}  // namespace

constinit const KernelForm parts_builder = {"parts", build, space};

}  // namespace hone::extending
