#include <cstdio>
#include <filesystem>

#include "base/flags.h"
#include "cli/load.h"
#include "cli/memory.h"
#include "cli/table.h"
#include "import/tensor_file.h"

namespace hone::cli {

namespace fs = std::filesystem;

namespace {

std::string file_name(std::string_view name) {
  std::string out;
  for (char c : name)
    out += std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' ? c : '_';
  return out.empty() ? "result" : out;
}

}  // namespace

int run(const RunOptions& options) {
  std::unique_ptr<Runner> runner = open_runner(options, options.strategy, options.dump);
  std::vector<Array> inputs = read_inputs(options.inputs, runner->params());
  const Json memory = memory_json(*runner, inputs);
  tell_memory(options, memory);
  std::vector<Array> results = runner->run(inputs);
  const Json resident = resident_json();
  fs::create_directories(options.output_dir);
  Json list = Json::Array{};
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string& name = runner->results()[i].name;
    fs::path path = fs::path(options.output_dir) / (file_name(name) + ".npy");
    write_npy(path, results[i]);
    Json::Object row{{"name", name}, {"type", cat(results[i].type())}, {"file", path.string()}};
    if (options.json)
      list.push(row);
    else
      std::printf("%s: %s -> %s\n", name.c_str(), cat(results[i].type()).c_str(), path.c_str());
  }
  tell_resident(options, resident);
  if (options.json)
    std::printf("%s\n",
                Json(Json::Object{{"memory", memory}, {"resident", resident}, {"results", list}})
                    .text(2)
                    .c_str());
  return exit_ok;
}

int flags() {
  Table table({"variable", "default", "meaning"});
  for (const Flag& f : all_flags())
    table.add({std::string(f.name), f.fallback.empty() ? "-" : std::string(f.fallback),
               std::string(f.meaning)});
  std::printf("%s", table.text().c_str());
  return exit_ok;
}

}  // namespace hone::cli
