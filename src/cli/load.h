// From what the command line names to something that can be compiled or run.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/run/run.h"
#include "cli/run/tensors.h"
#include "compile/compile.h"

namespace hone::cli {

// A directory stands for the model.onnx or model.hone in it.
std::filesystem::path model_path(const ModelOptions&);
bool is_plan(const std::filesystem::path&);

struct Loaded {
  Source source;
  std::vector<std::string> warnings;
  double import_ms = 0;
};
Loaded load_source(const ModelOptions&, const std::vector<std::string>& dump = {});
CompileOptions compile_options(const ModelOptions&);

// Compiles, or opens a plan file. `report` is filled when something was compiled.
std::unique_ptr<Runner> open_runner(const ModelOptions&, const std::string& strategy,
                                    const std::vector<std::string>& dump = {},
                                    CompileReport* report = nullptr);

// Inputs as given, else those of the first data set beside the model, else made up.
std::vector<Array> inputs_or_samples(const std::vector<std::string>& given, const ModelOptions&,
                                     const Runner&);

// To stderr, unless quiet or JSON is asked for.
void tell(const ModelOptions&, const std::string& line);

}  // namespace hone::cli
