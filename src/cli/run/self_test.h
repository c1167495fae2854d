// Runs the self-tests of a plan file and prints the outcome. Used by `hone selftest`, `hone-run
// --selftest` and the check after `hone optimize`.
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
// Returns the exit code: exit_differs when results differ from the verified ones, or when no
// self-test of the plan can run here.
int self_test(const SelfTestRequest&);

// One object for each self-test: what was run, or why not.
Json outcomes_json(const std::vector<SelfTestOutcome>&);
// One line for each self-test.
std::string outcomes_text(const std::vector<SelfTestOutcome>&, const std::vector<int>& threads);

}  // namespace hone::cli
