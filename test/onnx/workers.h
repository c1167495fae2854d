// Runs jobs in forked processes, so that a job that crashes or hangs does not affect the others.
#pragma once

#include <functional>
#include <vector>

#include "test/onnx/outcome.h"

namespace hone::conformance {

struct WorkerOptions {
  int workers = 2;
  double most_seconds = 120;  // limit for one job; then its process is killed
};

// Calls work(i) for each i below `jobs` in a few processes forked from this one, which must not
// have started threads. Returns the outcomes in order; `done` is called as each one arrives.
std::vector<Outcome> run_forked(std::size_t jobs, const std::function<Outcome(std::size_t)>& work,
                                const WorkerOptions&,
                                const std::function<void(std::size_t, const Outcome&)>& done);

}  // namespace hone::conformance
