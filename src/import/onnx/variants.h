// Reads a model under every answer to the questions about its sizes, and collects all problems.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "import/common/options.h"
#include "import/onnx/file/model.h"
#include "import/onnx/file/tensor.h"
#include "import/onnx/source.h"

namespace hone::onnx {

// One line for each problem that prevents the import of a model.
struct Problems {
  std::vector<std::string> wrong, unsupported;
  std::vector<std::string> data_dependent;  // sizes or axes known only at run time
  std::int64_t left_out = 0;                // nodes skipped because they depend on a problem

  bool empty() const;
  std::string text() const;  // as one message
};

struct Refused : UserError {
  explicit Refused(Problems p) : UserError(p.text()), problems(std::move(p)) {}
  Problems problems;
};

// Fills out's variants and warnings. Throws Refused with all problems found, and UserError when a
// limit is exceeded.
void read_variants(Model&, TensorFiles&, const ImportOptions&, Imported& out, const Observer& = {});
// The whole import except for the file and the name. Sorts the model's nodes if necessary.
void read_model(Model&, TensorFiles&, const ImportOptions&, Imported& out, const Observer& = {});

}  // namespace hone::onnx
