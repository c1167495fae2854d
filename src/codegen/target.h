// How to compute groups and compile kernels for one kind of machine. Needs no machine.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "kernel/kernel.h"
#include "kernel/tuning.h"
#include "plan/binary.h"
#include "target/target_info.h"

namespace hone {

// A kernel to compile and the name of its entry, which must be unique in a plan.
struct CompileJob {
  const Kernel* kernel = nullptr;
  std::string entry;
};

// Code as text, for people.
struct Listing {
  std::string ir, assembly;  // empty where the target has no such thing
};

// One way to compute a group, as a target proposes it.
struct Proposal {
  Candidate candidate;
  std::string library;  // that its steps call; empty: kernels alone
  std::string refused;  // why this target cannot do it; empty: it can be checked and timed
  // The group with what the library rounds more often than the group does, as it states.
  std::optional<Function> rounded = std::nullopt;
};

class Target {
 public:
  virtual ~Target() = default;
  virtual const TargetInfo& info() const = 0;
  // Part of every cache key, beside the build's id: what else decides which code a kernel becomes.
  virtual std::string_view version() const = 0;
  // Ways to compute a group, those of kernels alone first and of them the one predicted to be the
  // fastest. By default what the builders of kernel/ offer for info(). The compiler asks the next
  // one when a proposal is refused, here or by compile(); plain loop nests, which every target
  // renders, it knows itself. Throws UserError for an operation that no kernel can compute.
  virtual std::vector<Proposal> candidates(const GroupSpec&) const;
  // Forms of the candidate of that name that are worth timing, as the numbers that its builder
  // takes; empty: it has one form. By default what the builders of kernel/ offer.
  virtual std::vector<Tuning> space(const GroupSpec&, std::string_view candidate) const;
  // The candidate of that name in such a form; nothing when the group does not allow it.
  virtual std::optional<Candidate> tuned(const GroupSpec&, std::string_view candidate,
                                         const Tuning&) const;
  // Puts rates that were measured on this machine in place of typical ones, for predictions.
  virtual void calibrate(const MachineRates&) {}
  // One Binary for each job, in order; the jobs are divided between the pool's threads. What is
  // returned depends on the job alone. Throws UserError for a kernel it cannot render, which makes
  // the compiler use another candidate.
  virtual std::vector<Binary> compile(std::span<const CompileJob>, ThreadPool&) const = 0;
  // What compile() makes of the kernel.
  virtual Listing list(const CompileJob&) const = 0;
};

}  // namespace hone
