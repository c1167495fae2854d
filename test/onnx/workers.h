// Jobs run in forked processes, so that one that crashes or hangs costs only itself.
#pragma once

#include <functional>
#include <vector>

#include "test/onnx/outcome.h"

namespace hone::conformance {

struct WorkerOptions {
  int workers = 2;
  double most_seconds = 120;  // of one job; then its process is killed
};

// work(i) for each i below `jobs`, each in one of a few processes forked from this one; it must not
// have started threads. The outcomes in order; `done` is called as they come in.
std::vector<Outcome> run_forked(std::size_t jobs, const std::function<Outcome(std::size_t)>& work,
                                const WorkerOptions&,
                                const std::function<void(std::size_t, const Outcome&)>& done);

}  // namespace hone::conformance
