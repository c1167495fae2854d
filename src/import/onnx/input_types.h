// Types of a model's inputs: the file's declarations, plus the options for open ranks and sizes.
#pragma once

#include <map>
#include <set>
#include <string>

#include "import/common/options.h"
#include "import/onnx/file/model.h"

namespace hone::onnx {

// `name`, or NAME_2, NAME_3, ... if that is taken. Marks the result as taken.
std::string unused_name(const std::string& name, std::set<std::string>& taken);

// Types of tensors. Open sizes become symbols with the file's names, changed to be valid in a Dim
// and made unique if that makes them equal.
class InputTypes {
 public:
  InputTypes(const ImportOptions& options, std::set<std::string>& taken)
      : options_(options), taken_(taken) {}

  Type of(const ValueInfo&);

 private:
  Dim open_size(std::string_view name);

  const ImportOptions& options_;
  std::map<std::string, std::string, std::less<>> names_;
  std::set<std::string>& taken_;
};

// Inputs whose rank the model does not give get that of ImportOptions::shapes or ranks.
void give_ranks(Model&, const ImportOptions&);

// Throws UserError when sizes are given for an input that the model does not have: they would be
// lost silently.
void check_shapes(const Graph&, const ImportOptions&);

}  // namespace hone::onnx
