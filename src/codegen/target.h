// How to compile kernels for one kind of machine. Needs no machine.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "kernel/kernel.h"
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

class Target {
 public:
  virtual ~Target() = default;
  virtual const TargetInfo& info() const = 0;
  // Part of every cache key: changes when the same kernel may be compiled to other code.
  virtual std::string_view version() const = 0;
  // One Binary for each job, in order; the jobs are divided between the pool's threads. What is
  // returned depends on the job alone. Throws UserError for a kernel it cannot render.
  virtual std::vector<Binary> compile(std::span<const CompileJob>, ThreadPool&) const = 0;
  // What compile() makes of the kernel.
  virtual Listing list(const CompileJob&) const = 0;
};

}  // namespace hone
