// Runs a model by a strategy, or a plan. Opening a plan needs no compiler.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/session.h"

namespace hone::cli {

// Runs a model by a strategy: `ref` interprets, the others run a plan.
class Runner {
 public:
  virtual ~Runner() = default;
  virtual std::vector<Array> run(std::span<const Array> inputs) = 0;
  // The caller's inputs and outputs.
  virtual const std::vector<PlanParam>& params() const = 0;
  virtual const std::vector<PlanParam>& results() const = 0;
  // Null for the interpreter.
  virtual Session* session() { return nullptr; }
  virtual const Plan* plan() const { return nullptr; }
  // The values of the plan's states; null: it uses none.
  virtual State* state() { return nullptr; }
};

inline constexpr int most_threads = 1024;  // limit of make_thread_pool()

struct PlanLimits {
  int threads = 0;              // 0: as many as the machine has
  std::int64_t max_memory = 0;  // bytes; 0: the default of sessions
  std::optional<std::chrono::steady_clock::time_point> deadline = {};  // for all runs
  std::string entry = {};                                              // empty: the plan's only one
  std::filesystem::path state = {};  // values of the states; empty: their start values
};
std::unique_ptr<Runner> plan_runner(std::shared_ptr<const Plan>, const PlanLimits&);

}  // namespace hone::cli
