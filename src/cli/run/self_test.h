// The self-tests of a plan file, run and told: what `hone selftest`, `hone-run --selftest` and the
// check after `hone optimize` do.
#pragma once

#include <filesystem>
#include <memory>

#include "base/json.h"
#include "runtime/self_test.h"

namespace hone::cli {

struct SelfTestRequest {
  std::filesystem::path plan;
  std::int64_t max_memory = 0;  // bytes; 0: the default of sessions
  // Nothing may be skipped and every bit must be as verified.
  bool is_same_machine = false;
  bool json = false, quiet = false;
};
// Returns the exit code: exit_differs when the plan computes something else than was verified, and
// when it has no self-test that runs here.
int self_test(const SelfTestRequest&);

// What was run, or why not, one object for each self-test.
Json outcomes_json(const std::vector<SelfTestOutcome>&);
// One line each.
std::string outcomes_text(const std::vector<SelfTestOutcome>&, const std::vector<int>& threads);

}  // namespace hone::cli
