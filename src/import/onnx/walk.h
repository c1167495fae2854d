// One reading of a model into a Function, under given assumptions. Failures are recorded and the
// nodes that depend on them skipped, so that one message can list every problem.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "import/onnx/node/context.h"
#include "import/onnx/operators/branch.h"
#include "import/onnx/source.h"
#include "import/onnx/unsupported.h"
#include "ir/function.h"

namespace hone::onnx {

struct Failure {
  std::string what;  // includes the node
  bool unsupported = false;
  bool depends_on_data = false;  // implies `unsupported`
};

// The state of one reading.
struct Reading {
  const Source& source;
  Assumptions assumptions;
  std::set<std::string, std::less<>> read_inputs = {};  // inputs whose given contents are read
  std::vector<Failure> failures = {};
  std::size_t missing_operators = 0;  // nodes without an import function
  Undefined undefined = {};
  std::vector<std::string> warnings = {};
  std::int64_t nodes = 0, turns = 0;    // turns: iterations of unrolled loops
  std::int64_t left_out = 0;            // nodes that depend on a failure
  std::set<std::string> sizes = {};     // names in use
  std::set<std::string> measured = {};  // the data-dependent ones among them
  // For data-dependent branches: whether sizes that may be equal are read as different, and whether
  // such sizes exist.
  bool branches_may_differ = true, has_unproven_branches = false;
  std::vector<std::optional<Dumped>> dumped = {};  // of options.dump; empty: not in this reading

  bool is_unsupported() const;
};

// Reads the whole model. Do not use the Function if the reading has failures. Throws OpenQuestion,
// and UserError when a limit is exceeded.
Function read_function(Reading&);

// Results for `dump`, the same ones in every variant: values that a variant lacks are zero. Throws
// UserError with similar names when no reading has a name.
struct DumpedVariant {
  Function& function;
  std::vector<std::optional<Dumped>> dumped;
};
void add_dumped_results(const Source&, std::span<DumpedVariant>);

}  // namespace hone::onnx
