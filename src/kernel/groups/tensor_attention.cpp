#include "kernel/groups/tensor_attention.h"

#include <algorithm>
#include <array>

#include "kernel/groups/tensor_attention_writer.h"
#include "ops/common.h"
#include "ops/ops.h"

namespace hone {

namespace {

// ---- tuning

// Of a group.
std::int64_t memory_bytes(const AttentionTiling& t, const AttentionProblem& p, bool is_opaque) {
  const std::int64_t depth = round_up(p.depth, 16) + TensorRows::gap,
                     width = round_up(p.width, 16) + TensorRows::gap,
                     of_keys = 2 * t.keys * (depth + width);
  if (!is_opaque) return 2 * t.queries() * depth + AttentionTiling::stages * of_keys;
  const std::int64_t hidden = p.mask || p.last_key ? t.threads() * AttentionRows::vector_width : 0;
  return of_keys + 4 * (t.queries() * t.shown_pitch() + hidden);
}

// That a thread holds: scores, sums and, if tiles are opaque, queries in pairs.
std::int64_t registers(const AttentionTiling& t, const AttentionProblem& p, bool is_opaque) {
  return t.rows * (round_up(p.width, 16) + t.keys + (is_opaque ? round_up(p.depth, 16) / 2 : 0)) /
         AttentionTiling::subgroup;
}

bool fits(const AttentionTiling& t, const AttentionProblem& p, const TargetInfo& target) {
  const bool is_opaque = target.has_opaque_tiles;
  const std::int64_t most_registers = is_opaque ? 208 : 192;
  const bool is_known = (t.rows == 32 || (t.rows == 16 && !is_opaque)) && t.subgroups >= 1 &&
                        t.subgroups <= 16 && t.keys >= 16 && t.keys % 16 == 0;
  return is_known && t.threads() <= target.group_threads &&
         memory_bytes(t, p, is_opaque) <= target.group_bytes &&
         registers(t, p, is_opaque) <= most_registers;
}

// All that fit: large blocks first if they keep the machine busy, else small ones first.
std::vector<AttentionTiling> tilings(const AttentionProblem& p, const TargetInfo& target) {
  constexpr std::int64_t enough_groups = 132;
  const std::int64_t matrices = tiling_size(product(p.leading)), queries = tiling_size(p.queries),
                     usual_keys = target.has_opaque_tiles ? 16 : 64;
  std::vector<AttentionTiling> busy, idle;
  for (const std::int64_t rows : {32, 16})
    for (const std::int64_t subgroups : {4, 8, 2, 1})
      for (const std::int64_t keys : {usual_keys, 2 * usual_keys, usual_keys / 2}) {
        const AttentionTiling t{rows, subgroups, keys};
        if (!fits(t, p, target)) continue;
        const bool is_busy = matrices * ceil_ratio(queries, t.queries()) >= enough_groups;
        if (is_busy)
          busy.push_back(t);
        else
          idle.insert(idle.begin(), t);
      }
  const auto is_usual = [&](const AttentionTiling& t) { return t.keys == usual_keys; };
  std::ranges::stable_partition(idle, is_usual);
  if (target.has_opaque_tiles) std::ranges::stable_partition(busy, is_usual);
  busy.insert(busy.end(), idle.begin(), idle.end());
  return busy;
}

// ---- candidates

std::optional<FoundAttention> find_tensor_attention(const GroupSpec& spec,
                                                    const TargetInfo& target) {
  if (!target.multiplies_halves) return std::nullopt;
  std::optional<FoundAttention> found = find_attention(spec);
  if (!found) return std::nullopt;
  const AttentionProblem& p = found->problem;
  const DType t = p.q.dtype();
  const bool is_multiplied = t == DType::f16 || (t == DType::bf16 && !target.has_opaque_tiles),
             fits = is_multiplied && has_many_queries(p) &&
                    std::min(p.depth, p.width) >= AttentionRows::vector_width;
  if (!fits || tilings(p, target).empty()) return std::nullopt;
  return found;
}

std::optional<TensorAttention> spliced_into(AnchoredGroup& group, const AttentionProblem& p,
                                            const std::optional<Type>& finite) {
  Values read = {p.q, p.k, p.v};
  if (p.mask) read.push_back(p.mask);
  group.set_operands(read, finite ? 1 : 0);
  const AttentionPlaces at(p, group.lowering().positions());
  std::optional<AttentionRows> query = attention_rows(group, p.q, at, at.lead, at.m),
                               key = attention_rows(group, p.k, at, at.shared, at.s),
                               value = attention_rows(group, p.v, at, at.shared, at.s);
  std::optional<Splice> epilogue =
      group.epilogue(at(at.lead, at.m, at.e), std::array{at.b, at.m, at.e});
  if (!query || !key || !value || !epilogue) return std::nullopt;
  TensorAttention a{.problem = p,
                    .b = at.b,
                    .query = TensorRows(std::move(*query)),
                    .key = TensorRows(std::move(*key)),
                    .value = TensorRows(std::move(*value)),
                    .epilogue = std::move(*epilogue)};
  if (p.mask) {
    a.mask = mask_element(group, p, at);
    if (!a.mask) return std::nullopt;
  }
  a.range = key_range(p, a.mask);
  if (a.range.is_all) a.mask.reset();
  if (finite) a.finite = {group.set_temporary(0, *finite), finite->shape[1], at.matrix};
  return a;
}

// Nullopt if few keys can be skipped: groups then check their values themselves.
std::optional<Type> finite_type(const AttentionProblem& p) {
  constexpr std::int64_t many_keys = 1024;
  if (!p.v.is(ops::param) || tiling_size(p.keys) <= many_keys) return std::nullopt;
  return Type(DType::f32, Shape{product(p.shared), ceil_div(p.keys, FiniteParts::keys)});
}

// The step that writes temporary 0.
std::optional<Candidate::Step> finite_step(const GroupSpec& spec, const AttentionProblem& p,
                                           const Type& type, const NestMaker& make_nest) {
  using Kind = Candidate::Operand::Kind;
  const auto param = static_cast<int>(p.v.attrs().integer("index"));
  GroupSpec step;
  Value v = cast_to(step.function.add_param(p.v.type(), "v"), DType::f32) * 0.0;
  const Dims& parts = type.shape.dims;
  v = reshape_to(v, {parts[0], p.keys, Dim(p.width)});
  const Dim missing = parts[1] * Dim(FiniteParts::keys) - p.keys;
  if (!(missing == Dim(0)))
    v = pad_with(v, scalar(v.graph(), 0, DType::f32), {0, 0, 0}, {0, missing, 0});
  v = reshape_to(v, {parts[0], parts[1], Dim(FiniteParts::keys * p.width)});
  step.function.add_result(reduce_axes(ops::reduce_sum, v, {2}), "finite");
  step.param_strides = {spec.param_strides[static_cast<std::size_t>(param)]};
  step.result_strides = {dense_strides(type.shape)};
  step.param_is_weight = {false};
  Candidate nest = make_nest(step);
  if (nest.steps.size() != 1 || !nest.temporaries.empty()) return std::nullopt;
  Candidate::Step out = std::move(nest.steps[0]);
  for (Candidate::Operand& o : out.operands)
    o = o.kind == Kind::param ? Candidate::Operand{Kind::param, param}
                              : Candidate::Operand{Kind::temporary, 0};
  return out;
}

AttentionTiling tiling_of(const AttentionProblem& p, const TargetInfo& target,
                          const Tuning& given) {
  const AttentionTiling best = tilings(p, target).front();
  const AttentionTiling wanted{value_or(given, "rows", best.rows),
                               value_or(given, "subgroups", best.subgroups),
                               value_or(given, "keys", best.keys)};
  return fits(wanted, p, target) ? wanted : best;
}

}  // namespace

std::optional<Candidate> tensor_attention_candidate(const GroupSpec& spec, const TargetInfo& target,
                                                    const Tuning& tuning,
                                                    const NestMaker& make_nest) {
  const std::optional<FoundAttention> found = find_tensor_attention(spec, target);
  if (!found) return std::nullopt;
  const AttentionProblem& p = found->problem;
  Candidate out;
  out.name = "attention";
  AnchoredGroup group = found->group;
  std::optional<TensorAttention> a = spliced_into(group, p, std::nullopt);
  if (!a) return std::nullopt;
  const bool hides = a->range.first || a->range.last;
  if (const std::optional<Type> finite = hides ? finite_type(p) : std::nullopt)
    if (std::optional<Candidate::Step> step = finite_step(spec, p, *finite, make_nest)) {
      group = found->group;
      a = spliced_into(group, p, finite);
      out.steps.push_back(std::move(*step));
      out.temporaries.push_back({*finite, false});
    }
  Kernel kernel = group.kernel();
  write_tensor_attention(kernel, group.lowering(), *a, tiling_of(p, target, tuning),
                         target.has_opaque_tiles);
  out.steps.push_back({std::move(kernel), group.operands(), {}, false});
  return out;
}

std::vector<Tuning> tensor_attention_space(const GroupSpec& spec, const TargetInfo& target) {
  const std::optional<FoundAttention> found = find_tensor_attention(spec, target);
  return found ? named(tilings(found->problem, target)) : std::vector<Tuning>();
}

}  // namespace hone
