// From what the command line names to something that can be compiled or run.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/commands.h"
#include "compile/compile.h"
#include "runtime/session.h"

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

// The directories test_data_set_K below `root`, in order.
std::vector<std::filesystem::path> data_sets(const std::filesystem::path& root);
// input_K.pb or output_K.pb of one of them.
std::vector<Array> read_set(const std::filesystem::path& set, std::string_view kind);
// "NAME=FILE" or "FILE" in the order of the parameters; types are checked.
std::vector<Array> read_inputs(const std::vector<std::string>& specs,
                               const std::vector<PlanParam>& params);

// Runs a model by a strategy: `ref` interprets, the others run a plan.
class Runner {
 public:
  virtual ~Runner() = default;
  virtual std::vector<Array> run(std::span<const Array> inputs) = 0;
  virtual const std::vector<PlanParam>& params() const = 0;
  virtual const std::vector<PlanParam>& results() const = 0;
  // Null for the interpreter.
  virtual Session* session() { return nullptr; }
  virtual const Plan* plan() const { return nullptr; }
};
// Compiles, or opens a plan file. `report` is filled when something was compiled.
std::unique_ptr<Runner> open_runner(const ModelOptions&, const std::string& strategy,
                                    const std::vector<std::string>& dump = {},
                                    CompileReport* report = nullptr);
std::unique_ptr<Runner> plan_runner(std::shared_ptr<const Plan>, const ModelOptions&);

// To stderr, unless quiet or JSON is asked for.
void tell(const ModelOptions&, const std::string& line);

}  // namespace hone::cli
