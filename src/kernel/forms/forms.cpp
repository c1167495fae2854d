#include "kernel/forms/forms.h"

#include <algorithm>

#include "kernel/groups/attention.h"
#include "kernel/groups/contraction.h"
#include "kernel/groups/few_query_attention.h"
#include "kernel/groups/few_row_product.h"
#include "kernel/groups/made_row.h"
#include "kernel/groups/read_weights.h"
#include "kernel/groups/tensor.h"
#include "kernel/groups/tensor_attention.h"
#include "kernel/nest/arrange.h"
#include "kernel/nest/cost.h"
#include "kernel/nest/nest_candidate.h"
#include "kernel/problem/parts.h"
#include "kernel/tiles/attention.h"
#include "kernel/tiles/contraction.h"
#include "kernel/tiles/convolution.h"

namespace hone {

namespace {

using Space = std::vector<Tuning>;

std::optional<Candidate> build_nest(const GroupSpec& spec, const TargetInfo& target,
                                    const Tuning& tuning) {
  return nest_candidate(spec, target, tuning);
}

std::optional<Candidate> build_tensor(const GroupSpec& spec, const TargetInfo& target,
                                      const Tuning& tuning) {
  return group_tensor_candidate(spec, target, tuning, [&](const GroupSpec& packing) {
    return nest_candidate(packing, target);
  });
}

std::optional<Candidate> build_tensor_attention(const GroupSpec& spec, const TargetInfo& target,
                                                const Tuning& tuning) {
  return tensor_attention_candidate(
      spec, target, tuning, [&](const GroupSpec& step) { return nest_candidate(step, target); });
}

std::optional<Candidate> build_few_queries(const GroupSpec& spec, const TargetInfo& target,
                                           const Tuning& tuning) {
  return few_query_attention_candidate(
      spec, target, tuning, [&](const GroupSpec& rest) { return nest_candidate(rest, target); });
}

std::optional<Candidate> build_made_row(const GroupSpec& spec, const TargetInfo& target,
                                        const Tuning& tuning) {
  return made_row_candidate(spec, target, tuning, [&](const GroupSpec& row, const Tuning& t) {
    return nest_candidate(row, target, t);
  });
}

Space space_of_nest(const GroupSpec&, const TargetInfo& target) { return nest_space(target); }

// True if the group of a kernel spans more than one block.
bool is_cluster(const Kernel& kernel, const TargetInfo& target) {
  const int threads = group_threads(kernel);
  return spreads(kernel) ? blocks_of_spread(threads) > 1 : threads > target.group_threads;
}

// Where the nest shares a row among the blocks of a cluster, a second candidate gives it to one
// block, which rereads what it cannot hold. Such clusters may not run on shared parts of a device.
std::optional<Candidate> build_one_block(const GroupSpec& spec, const TargetInfo& target,
                                         const Tuning& tuning) {
  constexpr std::int64_t least_of_cluster = 16384;
  const auto is_long = [](const Dim& d) { return d.is_number() && d.number() > least_of_cluster; };
  if (target.row_blocks <= 1 ||
      std::ranges::none_of(spec.function.params(), [&](const Function::Param& p) {
        return std::ranges::any_of(p.value.shape().dims, is_long);
      }))
    return std::nullopt;
  const Candidate usual = nest_candidate(spec, target, tuning);
  if (std::ranges::none_of(usual.steps, [&](const Candidate::Step& s) {
        const auto* kernel = std::get_if<Kernel>(&s.what);
        return kernel && is_cluster(*kernel, target);
      }))
    return std::nullopt;
  TargetInfo alone = target;
  alone.row_threads = 0;
  alone.row_blocks = 1;
  Candidate out = nest_candidate(spec, alone, tuning);
  out.name = "nest-one-block";
  return out;
}

// Each part has a form of its own.
std::optional<Candidate> build_parts(const GroupSpec& spec, const TargetInfo& target,
                                     const Tuning&) {
  const auto best = [&](const GroupSpec& part) {
    return std::move(generated_candidates(part, target).front());
  };
  std::optional<Candidate> out = attention_in_parts(spec, best);
  return out ? std::move(out) : row_in_parts(spec, best);
}

Space space_of_parts(const GroupSpec&, const TargetInfo&) { return {}; }

constexpr KernelForm parts = {"parts", build_parts, space_of_parts};
constexpr KernelForm nest = {"nest", build_nest, space_of_nest};
constexpr KernelForm one_block = {"nest-one-block", build_one_block, space_of_parts};

constexpr KernelForm for_register_tiles[] = {
    {"generated", contraction_candidate, contraction_space},
    {"generated", convolution_candidate, convolution_space},
    {"split", split_candidate, space_of_nest},
    {"sort", sort_candidate, sort_space},
    {"attention", attention_candidate, attention_space},
    parts,
    nest,
};

constexpr KernelForm for_groups[] = {
    {"attention", build_tensor_attention, tensor_attention_space},
    {"attention-few", build_few_queries, few_query_attention_space},
    {"attention-f32", group_attention_candidate, group_attention_space},
    {"rows", few_row_product_candidate, few_row_product_space},
    {"rows-made", build_made_row, space_of_parts},
    {"tensor", build_tensor, group_tensor_space},
    {"generated", group_contraction_candidate, group_contraction_space},
    parts,
    nest,
    one_block,
};

// Of each operand, whether it is known before the run.
std::vector<bool> weights_of(const Candidate::Step& step, const Candidate& candidate,
                             const GroupSpec& spec) {
  using Operand = Candidate::Operand;
  std::vector<bool> out;
  for (const Operand& o : step.operands) {
    const auto i = static_cast<std::size_t>(o.index);
    out.push_back(o.kind == Operand::Kind::param       ? spec.param_is_weight.at(i)
                  : o.kind == Operand::Kind::temporary ? candidate.temporaries.at(i).prepared
                                                       : false);
  }
  return out;
}

}  // namespace

std::span<const KernelForm> kernel_forms(const TargetInfo& target) {
  if (target.group_threads > 0) return for_groups;
  return for_register_tiles;
}

std::optional<Candidate> built(const KernelForm& form, const GroupSpec& spec,
                               const TargetInfo& target, const Tuning& tuning) {
  std::optional<Candidate> out = form.build(spec, target, tuning);
  if (out && target.group_threads > 0)
    for (Candidate::Step& s : out->steps)
      // Memory that is not the group's is placed by the plan, which aligns it.
      if (auto* kernel = std::get_if<Kernel>(&s.what)) {
        kernel->is_aligned = spec.is_aligned;
        if (target.overlaps_launches && !s.prepare && !spec.prepares)
          read_weights_first(*kernel, weights_of(s, *out, spec));
      }
  return out;
}

std::vector<Candidate> generated_candidates(const GroupSpec& spec, const TargetInfo& target) {
  std::vector<Candidate> out;
  for (const KernelForm& b : kernel_forms(target))
    if (auto candidate = built(b, spec, target, {})) out.push_back(std::move(*candidate));
  if (out.size() > 1 && target.group_threads == 0)
    std::ranges::stable_sort(out, {}, [&](const Candidate& c) { return predicted_ms(c, target); });
  return out;
}

}  // namespace hone
