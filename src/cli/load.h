// From what the command line names to something that can be compiled or run.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/model_file.h"
#include "cli/run/deadline.h"
#include "cli/run/run.h"
#include "cli/run/tensors.h"
#include "compile/compile.h"
#include "compile/precision.h"
#include "import/import.h"

namespace hone::cli {

struct ModelOptions : Printing {
  std::string model;
  std::string strategy = "auto";
  bool has_strategy = false;         // the command has that option
  std::vector<std::string> targets;  // empty: native
  std::vector<std::string> devices;  // of multi; empty: the fastest
  ImportOptions import;
  std::string weights;  // a file of tensors; empty: the model's own
  std::vector<std::string> passes_off;
  std::string verify = "kernels";  // none, kernels, model
  std::string precision;           // a name of precision_names(); empty: as the model is
  int threads = 0;
  std::int64_t max_memory = 0;  // bytes; 0: the default of sessions
  Deadline deadline;
  bool one_op_groups = false;
  bool no_cache = false;
};

// The model and what every command that compiles takes. Options below `compiling` are refused for
// a plan, which is compiled already.
inline constexpr std::string_view compiling = "compiling (models only, not plans)";
void add_model(Arguments&, ModelOptions&);
void add_source(Arguments&, ModelOptions&);    // MODEL, which may not be a plan
void add_budget(Arguments&, double& seconds);  // of comparisons; as it stands, the default
void add_sizes(Arguments&, ImportOptions&);    // --dim and --shapes
void add_links(Arguments&, ImportOptions&);    // --allow-links
void add_weights(Arguments&, ModelOptions&);   // --weights
void add_compiling(Arguments&, ModelOptions&, bool with_strategy = true);

struct Loaded {
  ModelFile file;
  Source source;                // empty for a plan; in the precision that was asked for
  std::optional<Source> given;  // as the model is, when a precision was asked for
  std::vector<PlanParam> params;
  std::vector<std::string> warnings;
  std::vector<std::string> contradictions;  // of the file's declared outputs; warnings, too
  ImportOptions import;                     // with which it was imported
  double import_ms = 0;
};
// Imports a model, with its sample inputs; of a plan only the file is known. `args` tell which
// options were given. Sizes that the model leaves open serve `inputs` (--input as typed) and the
// sets beside the model too (import_fitting).
Loaded load(const ModelOptions&, const Arguments& args,
            const std::vector<std::string>& inputs = {});
// For commands that need the graph: throws UserError for a plan.
Loaded load_model(const ModelOptions&, const Arguments& args,
                  const std::vector<std::string>& inputs = {});
CompileOptions compile_options(const ModelOptions&);

// Compiles, or reads a plan file; needs no device of the plan. `report` is filled, with all that a
// report page shows, when something was compiled.
Plan made_plan(const Loaded&, const ModelOptions&, const std::string& strategy,
               CompileReport* report = nullptr);
// The same, ready to run.
std::unique_ptr<Runner> open_runner(const Loaded&, const ModelOptions&, const std::string& strategy,
                                    CompileReport* report = nullptr);

// Inputs as given, else those of the first data set beside the model, else made up.
struct ChosenInputs {
  std::vector<Array> arrays;
  std::vector<std::string> assumptions;  // of made-up ones, a line for each
};
ChosenInputs inputs_or_samples(const std::vector<std::string>& given, const Loaded&, const Runner&);

// What is assumed of made-up inputs: a few lines, or all where the caller asks for them. `options`:
// those that give others.
void print_assumptions(const std::vector<std::string>& lines, std::string_view options,
                       const Printing&);

// As it was typed, quoted where a shell would need it.
std::string command_line(std::string_view program, Words);

// Throws when a report cannot be written there, or its name ends in neither .html nor .json.
void check_report(const std::filesystem::path&);

// "1.2 MB"
std::string file_size_text(const std::filesystem::path&);

Json texts_json(const std::vector<std::string>&);

// To stderr. Warnings, unless quiet or JSON is asked for; progress only where somebody watches.
void warn(const Printing&, const std::string& line);
void progress(const Printing&, const std::string& line);

}  // namespace hone::cli
