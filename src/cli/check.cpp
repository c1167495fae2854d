#include "import/onnx/check.h"

#include <cstdio>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/load.h"
#include "import/gguf/gguf.h"
#include "import/safetensors/sharded.h"
#include "optimize/batch.h"
#include "plan/plan_file.h"
#include "type/safetensors.h"

namespace hone::cli {

namespace {

struct Section {
  std::string_view title, key;
  const std::vector<std::string>& lines;
};

std::vector<Section> problems(const ModelCheck& c) {
  return {{"wrong", "wrong", c.wrong},
          {"not supported", "unsupported", c.unsupported},
          {"not supported: sizes or axes that only a run would tell", "data_dependent",
           c.data_dependent}};
}

std::vector<Section> remarks(const ModelCheck& c) {
  return {{"decided by data", "decided_by_data", c.decided_by_data},
          {"warnings", "warnings", c.warnings}};
}

std::size_t count(const std::vector<Section>& sections) {
  std::size_t n = 0;
  for (const Section& s : sections) n += s.lines.size();
  return n;
}

Json json(const ModelCheck& c, const ModelFile& file, std::string_view kind) {
  Json out = Json::Object{{"file", file.path.string()},
                          {"kind", kind},
                          {"ok", c.ok()},
                          {"has_graph", !file.has_only_tensors()},
                          {"nodes", c.nodes}};
  const auto add = [&](std::string_view key, const std::vector<std::string>& lines) {
    Json list = Json::Array{};
    for (const std::string& line : lines) list.push(line);
    out.add(std::string(key), std::move(list));
  };
  add("opsets", c.opsets);
  for (const auto& sections : {problems(c), remarks(c)})
    for (const Section& s : sections) add(s.key, s.lines);
  out.add("nodes_left_out", c.left_out);
  Json sizes = Json::Array{};
  for (const ModelCheck::OpenSize& s : c.open_sizes) {
    Json inputs = Json::Array{};
    for (const std::string& i : s.inputs) inputs.push(i);
    sizes.push(Json::Object{{"name", s.name},
                            {"low", s.low},
                            {"high", s.high},
                            {"given", s.given},
                            {"required", s.required},
                            {"inputs", inputs}});
  }
  out.add("open_sizes", std::move(sizes));
  Json outputs = Json::Array{};
  for (const ModelCheck::Output& o : c.outputs) {
    Json types = Json::Array{};
    for (const std::string& t : o.types) types.push(t);
    outputs.push(Json::Object{{"name", o.name}, {"types", std::move(types)}});
  }
  out.add("outputs", std::move(outputs));
  return out;
}

void print(const std::vector<Section>& sections) {
  for (const Section& s : sections) {
    if (s.lines.empty()) continue;
    std::printf("\n%s (%zu)\n", std::string(s.title).c_str(), s.lines.size());
    for (const std::string& line : s.lines) std::printf("  %s\n", line.c_str());
  }
}

void print_sizes(const std::vector<ModelCheck::OpenSize>& sizes) {
  if (sizes.empty()) return;
  std::printf("\nsizes left open (%zu)\n", sizes.size());
  for (const ModelCheck::OpenSize& s : sizes) {
    std::string where;
    for (const std::string& i : s.inputs) where += cat(where.empty() ? "" : ", ", i);
    std::printf("  %s, %lld to %lld%s: %s\n", s.name.c_str(), static_cast<long long>(s.low),
                static_cast<long long>(s.high),
                s.given      ? " as given"
                : s.required ? " as the model requires"
                             : " by default",
                where.c_str());
  }
}

void print_outputs(const std::vector<ModelCheck::Output>& outputs) {
  if (outputs.empty()) return;
  std::printf("\noutputs (%zu)\n", outputs.size());
  for (const ModelCheck::Output& o : outputs) {
    std::string types;
    for (const std::string& t : o.types) types += cat(types.empty() ? "" : " or ", t);
    std::printf("  %s: %s\n", o.name.c_str(), types.c_str());
  }
}

void print(const ModelCheck& c, const ModelFile& file, bool quiet) {
  const std::size_t wrong = count(problems(c));
  std::printf("%s: %s", file.path.c_str(), c.ok() ? "fine" : cat(wrong, " problem").c_str());
  if (wrong > 1) std::printf("s");
  if (!c.warnings.empty())
    std::printf(", %zu warning%s", c.warnings.size(), c.warnings.size() > 1 ? "s" : "");
  std::printf("\n");
  print(problems(c));
  if (c.left_out > 0)
    std::printf(
        "\n%lld nodes depend on the problems above and were skipped; fix those and check again\n",
        static_cast<long long>(c.left_out));
  if (quiet) return;
  if (file.has_only_tensors())
    std::printf(
        "it holds tensors but no graph to run: give it to a model with --weights, or list it with "
        "`hone inspect`\n");
  print_outputs(c.outputs);
  print_sizes(c.open_sizes);
  print(remarks(c));
}

// For a file whose reader reports only the first problem.
template <class Read>
ModelCheck of_file(const Read& read) {
  ModelCheck out;
  try {
    out.warnings = read();
  } catch (const UserError& e) {
    out.wrong.push_back(e.what());
  }
  return out;
}

using Lines = std::vector<std::string>;

Lines shard_warnings(const std::filesystem::path& path) {
  Lines out;
  for (const std::string& name : read_sharded_safetensors(path).unlisted)
    out.push_back(cat("tensor '", name, "' is in a file, but not in the index"));
  return out;
}

struct Format {
  std::string_view kind;
  ModelCheck found;
};

Format look_at(const ModelFile& file, const ImportOptions& options) {
  switch (file.kind) {
    case FileKind::plan:
      return {"plan", of_file([&] { return read_plan(file.path, VerifyData::all), Lines(); })};
    case FileKind::safetensors:
      return {"safetensors", of_file([&] { return read_safetensors(file.path), Lines(); })};
    case FileKind::shards:
      return {"sharded safetensors", of_file([&] { return shard_warnings(file.path); })};
    case FileKind::gguf:
      return {"GGUF", of_file([&] { return read_gguf(file.path), Lines(); })};
    case FileKind::onnx:
      break;
  }
  return {"ONNX model", check_onnx(file.path, options)};
}

// The outputs for another number of rows, or why the model cannot compute it.
void look_at_batch(const ModelFile& file, ImportOptions options, std::int64_t batch,
                   ModelCheck& found) {
  try {
    Imported imported = import_onnx(file.path, options);
    if (open_batch(imported, batch, options)) {
      found = check_onnx(file.path, options);
      return;
    }
    for (const std::string& note : set_batch(imported, batch)) found.warnings.push_back(note);
    found.outputs.clear();
    for (const Function::Result& r : imported.variants[0].function.results())
      found.outputs.push_back({r.name, {cat(r.value.type())}});
  } catch (const UserError& e) {
    found.wrong.push_back(e.what());
  }
}

}  // namespace

int check(Words words) {
  Printing printing;
  ImportOptions options;
  std::string given;
  std::int64_t batch = 0;
  Arguments a(
      "hone check",
      "Reports everything that is wrong with a file or not supported in it,\n"
      "without compiling it. Exit code 0: fine, perhaps with warnings; 3: it has problems.");
  a.positional("FILE",
               "an ONNX model, a plan, safetensors or their index.json, GGUF, or a directory",
               given);
  add_sizes(a, options);
  add_batch(a, batch);
  add_links(a, options);
  add_printing(a, printing);
  a.example("hone check model.onnx");
  a.example("hone check model.onnx --dim batch=1..64 --json");
  if (!a.parse(words)) return exit_ok;
  const ModelFile file = model_file(given);
  auto [kind, found] = look_at(file, options);
  if (batch > 0 && file.kind == FileKind::onnx && found.ok())
    look_at_batch(file, std::move(options), batch, found);
  if (printing.json)
    std::printf("%s\n", json(found, file, kind).text(2).c_str());
  else
    print(found, file, printing.quiet);
  return found.ok() ? exit_ok : exit_user;
}

}  // namespace hone::cli
