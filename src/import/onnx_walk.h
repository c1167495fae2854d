// One reading of a model into a Function, under given assumptions. What fails is noted and what
// depends on it left out, so that one message can name everything that is wrong.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "import/onnx_check.h"
#include "import/onnx_context.h"
#include "ir/function.h"

namespace hone::onnx {

// The opset of a domain; 0 when it is not imported.
std::int64_t opset_of(const std::vector<Opset>&, std::string_view domain);
// "" for "ai.onnx".
std::string_view normal_domain(std::string_view domain);
// The name, or the first output's where there is none.
std::string_view node_name(const Node&);

// The name of a size as options and Dims spell it: other characters become '_'.
std::string fit_size_name(std::string_view);

// An open model: what it says, and the files its tensors lie in. All outlive it. Throws UserError
// when two functions of the model have one name.
struct Source {
  Source(const Model&, TensorFiles&, const ImportOptions&);
  // Null when the node's operator is not a function of the model itself.
  const LocalFunction* local_function(const Node&) const;

  const Model& model;
  TensorFiles& files;
  const ImportOptions& options;
  using FunctionKey = std::tuple<std::string_view, std::string_view, std::string_view>;
  std::map<FunctionKey, const LocalFunction*> functions;  // by name, domain and overload
};

struct Failure {
  std::string what;  // with the node
  bool unsupported = false;
  bool depends_on_data = false;  // then it is unsupported
};

// A value asked for by name, and a bool[] that says whether this run computed it; invalid: always.
struct Dumped {
  Value value, computed;
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
