// Collects everything that can be checked in a model file before compilation, in one report.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "import/onnx/import.h"

namespace hone {

struct ModelCheck {
  // A size known only at run time. `given`: the options bound it. `required`: the model supports no
  // other sizes, for example because it adds a table with that many rows.
  struct OpenSize {
    std::string name;
    std::int64_t low = 0, high = 0;
    bool given = false, required = false;
    std::vector<std::string> inputs;  // "image axis 0"
  };
  // One line for each problem that prevents the import. When all are empty, import_onnx() accepts
  // the file with the same options; it also accepts files with errors only in parts that are never
  // read, such as a function that is not called.
  std::vector<std::string> wrong, unsupported, data_dependent;
  std::int64_t left_out = 0;  // nodes that depend on the errors above and were skipped

  // An output of the model. Types as strings, "f32[batch,10]", one per variant that differs.
  struct Output {
    std::string name;
    std::vector<std::string> types;
  };
  std::vector<Output> outputs;  // empty when there are problems

  std::vector<OpenSize> open_sizes;
  std::vector<std::string> decided_by_data;  // nodes whose behaviour depends on input contents
  std::vector<std::string> warnings;
  std::vector<std::string> opsets;  // "ai.onnx 21"
  std::int64_t nodes = 0;           // of the main graph

  bool ok() const { return wrong.empty() && unsupported.empty() && data_dependent.empty(); }
};

// Throws UserError only when the file cannot be opened.
ModelCheck check_onnx(const std::filesystem::path&, const ImportOptions& = {});

}  // namespace hone
