// Runs the self-tests in a plan: they check that it computes the same here as when it was verified.
// Needs no compiler and no reference.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "runtime/session.h"

namespace hone {

// The message has the result and element, the actual and expected value, and the input sizes.
struct SelfTestFailure : UserError {
  using UserError::UserError;
};

struct SelfTestOptions {
  std::vector<int> threads = {1, 2, 4};  // all must give equal bits
  std::int64_t max_memory = -1;          // as for a session
  // The machine, including its libraries, is the one that verified the plan: nothing is skipped,
  // and every bit must be equal.
  bool is_same_machine = false;
  bool checks_content = true;  // also checks that the plan is byte for byte the verified one
};

// Outcome of one self-test: it was run, or why it was skipped.
struct SelfTestOutcome {
  std::string entry;  // of the plan
  std::uint32_t variant = 0;
  std::string target, guards;           // of the variant
  std::string inputs;                   // "x f32[1,3], y i64[2]"
  std::string skipped;                  // empty: it was run
  std::vector<std::string> sizes_only;  // results whose sizes alone were compared
};

// The inputs of a self-test with their sizes, as text: the first `most`, and the number of others.
std::string inputs_text(const PlanEntry&, const SelfTest&, std::size_t most = ~std::size_t{0});

// Those of all entries; states are inputs of a test, and what is stored to them are results. Throws
// SelfTestFailure at the first difference. Empty when the plan has no self-tests.
std::vector<SelfTestOutcome> run_self_tests(const std::shared_ptr<const Plan>&,
                                            const Executable::Devices&,
                                            const SelfTestOptions& = {});

// The results of one variant for the inputs of the test, with one thread. Works also for a variant
// that this machine would replace by a better one.
std::vector<Array> self_test_run(const Plan&, const PlanEntry&, const SelfTest&,
                                 const Executable::Devices&);

}  // namespace hone
