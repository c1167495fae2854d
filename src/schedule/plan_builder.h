// Combines schedules and the candidates chosen for their groups into the variants of one plan:
// steps, buffers, offsets. Compiles nothing.
#pragma once

#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "kernel/kernel.h"
#include "plan/plan.h"
#include "schedule/schedule.h"

namespace hone {

class PlanBuilder {
 public:
  // Adds weights, prepared buffers and kernels to the plan as variants need them.
  explicit PlanBuilder(Plan& plan) : plan_(plan) {}

  // Takes one candidate for each spec of the schedule, in order. The caller fills in target, guards
  // and what is known about the candidates. Plan::result_alias holds what all variants allow.
  Variant add(Schedule, std::span<const Candidate> chosen);

  // Variants added from now on are for another target: they share no kernels with earlier ones.
  void start_target() { kernel_index_.clear(); }

  // Kernels to compile: kernel i is Plan::kernels[i], whose binary and entry the caller fills in.
  const std::vector<Kernel>& kernels() const { return kernels_; }

 private:
  friend class VariantBuilder;
  std::uint32_t kernel_index(const Kernel&);
  std::uint32_t weight_index(const PlanWeight&);
  void join_alias(const std::vector<std::int32_t>&);

  Plan& plan_;
  bool has_variant_ = false;
  std::vector<Kernel> kernels_;
  std::map<Hash128, std::uint32_t> kernel_index_;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> weights_;  // by storage hash
};

// Call after the prepare steps ran: removes those whose results are there, and every weight and
// prepared buffer that no other step reads. Those of other machines' variants remain.
void drop_unread(Plan&);

}  // namespace hone
