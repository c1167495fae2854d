// Turns the model or plan that the command line names into something that can be compiled or run.
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

// The targets that a command can use.
enum class Targets : std::uint8_t {
  all,   // it runs nothing, or can do without
  here,  // it runs what it compiles
  host   // the same, on the processor
};

struct ModelOptions : Printing {
  std::string model;
  std::string strategy = "auto";
  bool has_strategy = false;         // the command has --strategy
  std::vector<std::string> targets;  // empty: native
  Targets usable = Targets::all;
  std::vector<std::string> devices;  // for multi; empty: the fastest
  ImportOptions import;
  std::int64_t batch = 0;  // rows of the inputs; 0: as the model says
  std::string weights;     // a file with tensors; empty: the model's own
  std::vector<std::string> passes_off;
  std::string verify = "kernels";  // none, kernels, model
  std::string precision;           // a name of precision_names(); empty: the model's own
  int threads = 0;
  std::int64_t max_memory = 0;  // bytes; 0: the default of sessions
  Deadline deadline;
  bool one_op_groups = false;
  bool no_cache = false;
  std::string entry;            // of a plan; empty: its only one
  bool keeps_states = false;    // else states of a plan's entry are inputs and outputs
  std::filesystem::path state;  // values of kept states; empty: their start values
};

// Options for the model and for compiling. Options below the heading `compiling` are refused for a
// plan, which is already compiled.
inline constexpr std::string_view compiling = "compiling (models only, not plans)";
void add_model(Arguments&, ModelOptions&);
void add_source(Arguments&, ModelOptions&);    // MODEL; plans are not allowed
void add_budget(Arguments&, double& seconds);  // for comparisons; the current value is the default
void add_sizes(Arguments&, ImportOptions&);    // --dim and --shapes
void add_batch(Arguments&, std::int64_t& batch);  // --batch; 0: not given
void add_links(Arguments&, ImportOptions&);       // --allow-links
void add_weights(Arguments&, ModelOptions&);      // --weights
void add_compiling(Arguments&, ModelOptions&, bool with_strategy, Targets);

struct Loaded {
  ModelFile file;
  Source source;                  // empty for a plan; in the requested precision
  std::optional<Source> as_read;  // without --batch, where that changed the functions
  std::optional<Source> given;    // in the model's own precision, if another was requested
  std::vector<PlanParam> params;
  std::vector<std::string> warnings;
  std::vector<std::string> contradictions;  // in the file's declared outputs; also in `warnings`
  ImportOptions import;                     // used for the import
  double import_ms = 0;
};
// Imports a model with its sample inputs; for a plan, fills in only the file. `args` tells which
// options were given. Open sizes are chosen to fit `inputs` (--input as typed) and the data sets
// beside the model (import_fitting); both are samples of the source, `inputs` first.
Loaded load(const ModelOptions&, const Arguments& args,
            const std::vector<std::string>& inputs = {});
// For commands that need the graph: throws UserError for a plan.
Loaded load_model(const ModelOptions&, const Arguments& args,
                  const std::vector<std::string>& inputs = {});
CompileOptions compile_options(const ModelOptions&);
// The given targets that this machine does not run.
std::vector<std::string> foreign_targets(const ModelOptions&);

// The plan of a plan file: of the chosen entry as a function, unless states are kept.
Plan plan_in(const Loaded&, const ModelOptions&);

// Compiles, or reads a plan file; does not need the plan's devices. If it compiles, fills `report`
// with everything that a report page shows.
Plan made_plan(const Loaded&, const ModelOptions&, const std::string& strategy,
               CompileReport* report = nullptr);
// The same, ready to run.
std::unique_ptr<Runner> open_runner(const Loaded&, const ModelOptions&, const std::string& strategy,
                                    CompileReport* report = nullptr);

// The given inputs, else those of the first data set beside the model, else made-up ones.
struct ChosenInputs {
  std::vector<Array> arrays;
  std::vector<std::string> assumptions;  // about made-up ones, one line each
};
ChosenInputs inputs_or_samples(const std::vector<std::string>& given, const Loaded&, const Runner&);

// Prints the assumptions about made-up inputs: a few lines, or all if the caller asks. `options`:
// the options that supply other inputs.
void print_assumptions(const std::vector<std::string>& lines, std::string_view options,
                       const Printing&);

// The command as typed, quoted where a shell needs it.
std::string command_line(std::string_view program, Words);

// Throws when the report cannot be written, or its name ends in neither .html nor .json.
void check_report(const std::filesystem::path&);

// "1.2 MB"
std::string file_size_text(const std::filesystem::path&);

Json texts_json(const std::vector<std::string>&);

// Print to stderr: warnings unless --quiet or --json is given; progress only on a terminal.
void warn(const Printing&, const std::string& line);
void progress(const Printing&, const std::string& line);

}  // namespace hone::cli
