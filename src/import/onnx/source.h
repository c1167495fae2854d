// An open model, and the name lookups that every reading needs.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "import/common/options.h"
#include "import/onnx/file/model.h"
#include "import/onnx/file/tensor.h"

namespace hone::onnx {

// The opset of a domain; 0 when it is not imported.
std::int64_t opset_of(const std::vector<Opset>&, std::string_view domain);
// "" for "ai.onnx".
std::string_view normal_domain(std::string_view domain);
// The node's name, or that of its first output if it has none.
std::string_view node_name(const Node&);

// The name of a size as spelled in options and Dims: other characters become '_'.
std::string fit_size_name(std::string_view);

// The maximum nesting of calls to the model's functions.
inline constexpr int most_calls = 64;

// Called for each node before its operator's import function, including nodes of branches, bodies
// and called functions. An omitted operand is an invalid Value.
using Observer =
    std::function<void(const Node&, const std::vector<Opset>&, const Values& operands)>;

// An open model: its contents and the files with its tensors. All referenced objects must outlive
// it. Throws UserError when two functions of the model have one name.
struct Source {
  Source(const Model&, TensorFiles&, const ImportOptions&, Observer = {});
  // Null when the node's operator is not a function of the model itself.
  const LocalFunction* local_function(const Node&) const;

  const Model& model;
  TensorFiles& files;
  const ImportOptions& options;
  Observer observer;
  using FunctionKey = std::tuple<std::string_view, std::string_view, std::string_view>;
  std::map<FunctionKey, const LocalFunction*> functions;  // by name, domain and overload
  // The minimum number of nodes read by a call, including nested calls but not graph attributes.
  std::unordered_map<const LocalFunction*, std::int64_t> nodes_of_call;
};

}  // namespace hone::onnx
