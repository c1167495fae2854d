// Everything that can be said about a model file before it is compiled, in one report.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "import/onnx/import.h"

namespace hone {

struct ModelCheck {
  // A size that a run decides. `given` is true when the options bound it, `required` when the model
  // can run no other sizes, as when it adds a table of as many rows.
  struct OpenSize {
    std::string name;
    std::int64_t low = 0, high = 0;
    bool given = false, required = false;
    std::vector<std::string> inputs;  // "image axis 0"
  };
  // One line for each thing that keeps the model from being imported. When all are empty,
  // import_onnx() accepts the file with the same options; it also accepts files that are wrong only
  // where no reading gets to, as in a function that nothing calls.
  std::vector<std::string> wrong, unsupported, data_dependent;
  std::int64_t left_out = 0;  // nodes that follow from those and were not looked at

  // What the model gives. Types as text, "f32[batch,10]", of each variant that has another one.
  struct Output {
    std::string name;
    std::vector<std::string> types;
  };
  std::vector<Output> outputs;  // empty when there are problems

  std::vector<OpenSize> open_sizes;
  std::vector<std::string> decided_by_data;  // nodes that run differently for other contents
  std::vector<std::string> warnings;
  std::vector<std::string> opsets;  // "ai.onnx 21"
  std::int64_t nodes = 0;           // of the graph itself

  bool ok() const { return wrong.empty() && unsupported.empty() && data_dependent.empty(); }
};

// Throws UserError only when the file cannot be opened.
ModelCheck check_onnx(const std::filesystem::path&, const ImportOptions& = {});

}  // namespace hone
