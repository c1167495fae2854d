// How to compute groups and compile kernels for one kind of machine. Does not need that machine.
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

// Code as human-readable text.
struct Listing {
  std::string ir, assembly;  // empty if the target has none
};

// One way to compute a group, as a target proposes it.
struct Proposal {
  Candidate candidate;
  std::string library;  // that its steps call; empty: kernels only
  std::string refused;  // why this target cannot do it; empty: it can be checked and timed
  // The group with the library's additional roundings made explicit.
  std::optional<Function> rounded = std::nullopt;
};

class Target {
 public:
  virtual ~Target() = default;
  virtual const TargetInfo& info() const = 0;
  // Part of every cache key, beside the build's id: everything else that affects the generated
  // code.
  virtual std::string_view version() const = 0;
  // Ways to compute a group. Those with kernels only come first, starting with the one predicted to
  // be fastest. By default what the builders of kernel/ offer for info(). When a proposal is
  // refused, here or by compile(), the compiler tries the next one; it adds plain loop nests, which
  // every target renders, itself. Throws UserError for an operation that no kernel can compute.
  virtual std::vector<Proposal> candidates(const GroupSpec&) const;
  // Forms of the named candidate that are worth timing, as the numbers that its builder takes;
  // empty: it has one form. By default what the builders of kernel/ offer.
  virtual std::vector<Tuning> space(const GroupSpec&, std::string_view candidate) const;
  // The named candidate in that form; nullopt when the group does not allow it.
  virtual std::optional<Candidate> tuned(const GroupSpec&, std::string_view candidate,
                                         const Tuning&) const;
  // Replaces typical rates by rates measured on this machine, for predictions.
  virtual void calibrate(const MachineRates&) {}
  // One Binary for each job, in order; the jobs are divided between the pool's threads. The result
  // depends only on the job. Throws UserError for a kernel it cannot render, which makes the
  // compiler use another candidate.
  virtual std::vector<Binary> compile(std::span<const CompileJob>, ThreadPool&) const = 0;
  // The code that compile() generates for the kernel.
  virtual Listing list(const CompileJob&) const = 0;
};

}  // namespace hone
