#include "cli/run/run.h"

#include <cstdio>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "cli/run/exit.h"
#include "cli/run/memory.h"
#include "cli/run/table.h"
#include "cli/run/tensors.h"

namespace hone::cli {

namespace {

using Clock = std::chrono::steady_clock;
using Ms = std::chrono::duration<double, std::milli>;

}  // namespace

void add_run(Arguments& a, RunRequest& r) {
  a.list(
      "-i,--input,--loadInputs", "NAME=FILE",
      "an input: .npy, .pb (TensorProto) or raw bytes; FILE alone is the first input that is not "
      "given yet, FILE.npz holds several by name; repeatable",
      r.inputs);
  a.parsed("-o,--output-dir", "DIR",
           "directory for NAME.npy of each result (default: the current one)",
           [&r](const std::string& s) { r.output_dir = s; });
  a.parsed("--state", "FILE",
           "values of the plan's states before the run: safetensors (default: start values)",
           [&r](const std::string& s) { r.state = s; });
  a.parsed("--save-state", "FILE", "write the values of the plan's states after the run",
           [&r](const std::string& s) { r.saved_state = s; });
  a.flag("--time", "print how long opening and running took", r.print_times);
}

int run_once(Runner& runner, const RunRequest& request, Ms opened_in) {
  const std::vector<Array> inputs = read_inputs(request.inputs, runner.params());
  if (!request.saved_state.empty() && !runner.state())
    throw UserError("--save-state: the model has no states");
  make_output_directory(request.output_dir);
  const std::vector<std::filesystem::path> files =
      result_files(request.output_dir, runner.results());
  const bool tells = !request.json && !request.quiet;
  Json out = Json::Object{{"memory", memory_json(runner, inputs)}};
  if (tells) tell_memory(out.at("memory"));
  const Clock::time_point start = Clock::now();
  const std::vector<Array> results = runner.run(inputs);
  const Ms ran_in = Clock::now() - start;
  if (!request.saved_state.empty()) runner.state()->save(request.saved_state);
  out.add("resident", resident_json());

  Json list = Json::Array{};
  for (const Written& w : write_results(files, runner.results(), results)) {
    if (w.file.empty()) {
      list.push(Json::Object{{"name", w.name}, {"computed", false}});
      if (tells) std::printf("%s: not computed: its branch was not taken\n", w.name.c_str());
      continue;
    }
    list.push(Json::Object{{"name", w.name}, {"type", cat(w.type)}, {"file", w.file.string()}});
    if (tells) std::printf("%s: %s -> %s\n", w.name.c_str(), cat(w.type).c_str(), w.file.c_str());
  }
  out.add("results", list);
  if (request.print_times) {
    out.add("open_ms", opened_in.count());
    out.add("first_run_ms", ran_in.count());
    if (tells)
      std::printf("opened in %s, first run in %s\n", milliseconds(opened_in.count()).c_str(),
                  milliseconds(ran_in.count()).c_str());
  }
  if (tells) tell_resident(out.at("resident"));
  if (!request.saved_state.empty()) {
    out.add("state", request.saved_state.string());
    if (tells) std::printf("states -> %s\n", request.saved_state.c_str());
  }
  if (request.json) std::printf("%s\n", out.text(2).c_str());
  return exit_ok;
}

}  // namespace hone::cli
