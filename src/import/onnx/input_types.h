// Types of a model's inputs: what the file declares, and what the options say of open ranks and
// sizes.
#pragma once

#include <map>
#include <set>
#include <string>

#include "import/onnx/model.h"
#include "import/onnx/options.h"

namespace hone::onnx {

// `name`, or NAME_2, NAME_3, ... where that is taken; then it is.
std::string unused_name(const std::string& name, std::set<std::string>& taken);

// The types of tensors. Sizes that are open become symbols, whose names are the file's, made fit
// for a Dim and kept apart where that makes them equal.
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

// Inputs of which the model gives no rank get that of ImportOptions::shapes or ranks.
void give_ranks(Model&, const ImportOptions&);

// Throws UserError when sizes are given of an input that the model does not have: they would be
// lost silently.
void check_shapes(const Graph&, const ImportOptions&);

}  // namespace hone::onnx
