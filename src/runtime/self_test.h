// Runs the self-tests that a plan carries: whether it still computes here what it computed when it
// was verified. Compiles nothing and knows no reference.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "runtime/session.h"

namespace hone {

// Says which result and element, what it is, what it was, and the sizes of the inputs.
struct SelfTestFailure : UserError {
  using UserError::UserError;
};

struct SelfTestOptions {
  std::vector<int> threads = {1, 2, 4};  // equal bits are demanded of all
  std::int64_t max_memory = -1;          // as of a session
  // The machine, libraries included, is the one that the plan was verified on: nothing is skipped,
  // and every bit must be as it was.
  bool is_same_machine = false;
  bool checks_content = true;  // that the plan is, byte for byte, the one that was verified
};

// One self-test: that it was run, or why not.
struct SelfTestOutcome {
  std::uint32_t variant = 0;
  std::string target, guards;           // of the variant
  std::string inputs;                   // "x f32[1,3], y i64[2]"
  std::string skipped;                  // empty: it was run
  std::vector<std::string> sizes_only;  // results of which only sizes were compared
};

// The inputs of a self-test with their sizes, as text: the first `most`, and how many more there
// are.
std::string inputs_text(const Plan&, const SelfTest&, std::size_t most = ~std::size_t{0});

// Throws SelfTestFailure at the first difference. Empty when the plan has none.
std::vector<SelfTestOutcome> run_self_tests(const std::shared_ptr<const Plan>&,
                                            const Executable::Devices&,
                                            const SelfTestOptions& = {});

// The results of one variant for the inputs of the test, with one thread. Also of a variant that
// the machine would leave for a better one.
std::vector<Array> self_test_run(const Plan&, const SelfTest&, const Executable::Devices&);

}  // namespace hone
