// A model read under every answer to the questions about its sizes, and all that stands against it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "import/onnx/model.h"
#include "import/onnx/options.h"
#include "import/onnx/source.h"
#include "import/onnx/tensor.h"

namespace hone::onnx {

// One line for each thing that keeps a model from being imported.
struct Problems {
  std::vector<std::string> wrong, unsupported;
  std::vector<std::string> data_dependent;  // sizes or axes that only a run would tell
  std::int64_t left_out =
      0;  // nodes not looked at, since they need what a problem leaves undefined

  bool empty() const;
  std::string text() const;  // as one message
};

struct Refused : UserError {
  explicit Refused(Problems p) : UserError(p.text()), problems(std::move(p)) {}
  Problems problems;
};

// Fills out's variants and warnings. Throws Refused with everything that was found, and UserError
// when a limit is passed.
void read_variants(Model&, TensorFiles&, const ImportOptions&, Imported& out, const Observer& = {});
// The whole of an import but for the file and the name. Sorts the model's nodes if it must.
void read_model(Model&, TensorFiles&, const ImportOptions&, Imported& out, const Observer& = {});

}  // namespace hone::onnx
