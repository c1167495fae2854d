// One reading of a model into a Function, under given assumptions. What fails is noted and what
// depends on it left out, so that one message can name everything that is wrong.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "import/onnx/branch.h"
#include "import/onnx/context.h"
#include "import/onnx/source.h"
#include "import/onnx/unsupported.h"
#include "ir/function.h"

namespace hone::onnx {

struct Failure {
  std::string what;  // with the node
  bool unsupported = false;
  bool depends_on_data = false;  // then it is unsupported
};

// The state of one reading.
struct Reading {
  const Source& source;
  Assumptions assumptions;
  std::set<std::string, std::less<>> read_inputs = {};  // whose given contents are read
  std::vector<Failure> failures = {};
  std::size_t missing_operators = 0;  // nodes met that have no import function
  Undefined undefined = {};
  std::vector<std::string> warnings = {};
  std::int64_t nodes = 0, turns = 0;    // turns: of loops that were unrolled
  std::int64_t left_out = 0;            // nodes that need what a failure leaves undefined
  std::set<std::string> sizes = {};     // names that are taken
  std::set<std::string> measured = {};  // those of them that data decides
  // Of branches that data chooses: how sizes are read that may be equal and may differ, and whether
  // there are such.
  bool branches_may_differ = true, has_unproven_branches = false;
  std::vector<std::optional<Dumped>> dumped = {};  // of options.dump; nothing: not in this reading

  bool is_unsupported() const;
};

// Reads the whole model. When the reading has failures the Function is not to be used. Throws
// OpenQuestion, and UserError when a limit is passed.
Function read_function(Reading&);

// Results for `dump`, in every variant the same ones: what a variant lacks is zero there. Throws
// UserError with near names when no reading has a name.
struct DumpedVariant {
  Function& function;
  std::vector<std::optional<Dumped>> dumped;
};
void add_dumped_results(const Source&, std::span<DumpedVariant>);

}  // namespace hone::onnx
