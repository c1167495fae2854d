#include <cstdio>
#include <map>
#include <set>

#include "api/compiler.h"
#include "base/checked.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/load.h"
#include "cli/run/table.h"
#include "import/gguf/gguf.h"
#include "import/onnx/file/model.h"
#include "import/onnx/file/tensor.h"
#include "import/safetensors/sharded.h"
#include "plan/content_hash.h"
#include "plan/plan_text.h"
#include "type/safetensors.h"

namespace hone::cli {

namespace fs = std::filesystem;

namespace {

// The output for any file: facts in order, then tables. The JSON has the same under their keys.
struct Report {
  struct Section {
    std::string title, key;
    std::vector<std::string> head;  // the first column is the name
    std::vector<std::vector<std::string>> rows;
  };
  std::vector<std::pair<std::string, Json>> facts;
  std::vector<Section> sections;

  void fact(std::string name, Json value) { facts.emplace_back(std::move(name), std::move(value)); }
  Section& section(std::string title, std::string key, std::vector<std::string> head) {
    return sections.emplace_back(Section{std::move(title), std::move(key), std::move(head), {}});
  }
};

Json json(const Report& r) {
  Json out = Json::Object{};
  for (const auto& [name, value] : r.facts) out.add(name, value);
  for (const Report::Section& s : r.sections) {
    Json rows = Json::Array{};
    for (const auto& row : s.rows) {
      Json object = Json::Object{};
      for (std::size_t i = 0; i < row.size(); ++i) object.add(s.head[i], row[i]);
      rows.push(std::move(object));
    }
    out.add(s.key, std::move(rows));
  }
  return out;
}

std::string shown(const Json& value, std::string_view name) {
  if (name.ends_with("bytes")) return bytes_text(value.integer());
  return value.is_text() ? value.text_value() : value.text();
}

void print(const Report& r) {
  for (const auto& [name, value] : r.facts) {
    std::string label = name;
    std::ranges::replace(label, '_', ' ');
    std::printf("%-16s %s\n", (label + ":").c_str(), shown(value, name).c_str());
  }
  for (const Report::Section& s : r.sections) {
    if (s.rows.empty()) continue;
    std::printf("\n%s (%zu)\n", s.title.c_str(), s.rows.size());
    Table table(s.head);
    for (const auto& row : s.rows) table.add(row);
    std::printf("%s", table.text().c_str());
  }
}

// ---- ONNX

std::string type_text(const onnx::ValueInfo& v) {
  static constexpr std::string_view kinds[] = {"no type", "tensor",   "sequence",
                                               "map",     "optional", "sparse tensor"};
  if (v.kind != onnx::ValueInfo::Kind::tensor)
    return std::string(kinds[static_cast<std::size_t>(v.kind)]);
  const std::optional<DType> dtype = onnx::dtype_of(v.data_type);
  std::string out = dtype ? cat(*dtype) : onnx::data_type_name(v.data_type);
  if (!v.has_shape) return out + " of any shape";
  out += "[";
  for (std::size_t i = 0; i < v.sizes.size(); ++i) {
    const onnx::Size& s = v.sizes[i];
    out += i ? "," : "";
    out += s.number ? cat(*s.number) : s.symbol.empty() ? "?" : std::string(s.symbol);
  }
  return out + "]";
}

struct Counted {
  std::map<std::string, std::size_t> operators;  // "Conv", "com.microsoft.Gelu"
  std::size_t nodes = 0;
};

// Bodies of control flow count too. Recursion is bounded by how deep messages nest.
void count(const std::vector<onnx::Node>& nodes, Counted& to) {
  for (const onnx::Node& n : nodes) {
    ++to.nodes;
    const bool is_standard = n.domain.empty() || n.domain == "ai.onnx";
    ++to.operators[is_standard ? std::string(n.op) : cat(n.domain, ".", n.op)];
    for (const onnx::Attribute& a : n.attributes)
      if (a.graph) count(a.graph->nodes, to);
  }
}

std::int64_t bytes_of(const onnx::Tensor& t) {
  if (t.raw) return static_cast<std::int64_t>(t.raw->size());
  std::int64_t n = 1;
  for (std::int64_t d : t.dims) n = checked_mul(n, d);
  const std::optional<DType> dtype = onnx::dtype_of(t.data_type);
  return dtype ? checked_mul(n, byte_size(*dtype)) : 0;
}

std::string shape_text(const std::vector<std::int64_t>& dims) {
  return cat(Shape(Dims(dims.begin(), dims.end())));
}

Report of_onnx(const fs::path& path) {
  const auto file = MappedFile::open(path);
  const onnx::Model model =
      onnx::parse_model(file->bytes(), file->path(), ImportOptions{}.most_nodes);
  if (!model.graph) throw UserError(path.string(), ": contains no graph; is it an ONNX model?");
  Counted counted;
  count(model.graph->nodes, counted);
  for (const onnx::LocalFunction& f : model.functions) count(f.nodes, counted);
  std::map<std::string_view, const onnx::Tensor*> weights;
  std::int64_t weight_bytes = 0;
  for (const onnx::Tensor& t : model.graph->initializers) {
    weights.emplace(t.name, &t);
    weight_bytes = checked_add(weight_bytes, bytes_of(t));
  }
  std::string opsets;
  for (const onnx::Opset& o : model.opsets)
    opsets +=
        cat(opsets.empty() ? "" : ", ", o.domain.empty() ? "ai.onnx" : o.domain, " ", o.version);

  Report r;
  r.fact("kind", "ONNX model");
  r.fact("file_bytes", static_cast<std::int64_t>(file->bytes().size()));
  r.fact("graph", std::string(model.graph->name));
  r.fact("producer",
         cat(model.producer, model.producer_version.empty() ? "" : " ", model.producer_version));
  r.fact("ir_version", model.ir_version);
  r.fact("opsets", opsets);
  r.fact("nodes", counted.nodes);
  r.fact("weight_bytes", weight_bytes);
  auto& inputs = r.section("inputs", "inputs", {"name", "type"});
  for (const onnx::ValueInfo& v : model.graph->inputs)
    if (!weights.contains(v.name)) inputs.rows.push_back({std::string(v.name), type_text(v)});
  auto& outputs = r.section("outputs", "outputs", {"name", "type"});
  for (const onnx::ValueInfo& v : model.graph->outputs)
    outputs.rows.push_back({std::string(v.name), type_text(v)});
  auto& operators = r.section("operators", "operators", {"name", "count"});
  for (const auto& [name, n] : counted.operators) operators.rows.push_back({name, cat(n)});
  auto& functions = r.section("functions of the model", "functions", {"name", "nodes"});
  for (const onnx::LocalFunction& f : model.functions)
    functions.rows.push_back({cat(f.domain, ".", f.name), cat(f.nodes.size())});
  auto& metadata = r.section("metadata", "metadata", {"name", "value"});
  for (const auto& [key, value] : model.metadata)
    metadata.rows.push_back({std::string(key), std::string(value)});
  auto& tensors = r.section("weights", "weights", {"name", "type", "bytes"});
  for (const onnx::Tensor& t : model.graph->initializers) {
    const std::optional<DType> dtype = onnx::dtype_of(t.data_type);
    tensors.rows.push_back(
        {std::string(t.name),
         (dtype ? cat(*dtype) : onnx::data_type_name(t.data_type)) + shape_text(t.dims),
         cat(bytes_of(t))});
  }
  return r;
}

// ---- safetensors

void add_weights(Report& r, const std::vector<SafetensorsEntry>& weights) {
  std::int64_t bytes = 0;
  for (const SafetensorsEntry& t : weights)
    bytes += static_cast<std::int64_t>(t.data.bytes().size());
  r.fact("weight_bytes", bytes);
  auto& tensors = r.section("weights", "weights", {"name", "type", "bytes"});
  for (const SafetensorsEntry& t : weights)
    tensors.rows.push_back({t.name, cat(t.data.type()), cat(t.data.bytes().size())});
}

void add_metadata(Report& r, const SafetensorsMetadata& pairs) {
  auto& metadata = r.section("metadata", "metadata", {"name", "value"});
  for (const auto& [key, value] : pairs) metadata.rows.push_back({key, value});
}

Report of_safetensors(const fs::path& path) {
  const Safetensors file = read_safetensors(path);
  Report r;
  r.fact("kind", "safetensors");
  r.fact("file_bytes", static_cast<std::int64_t>(fs::file_size(path)));
  add_metadata(r, file.metadata);
  add_weights(r, file.tensors);
  return r;
}

Report of_shards(const fs::path& path) {
  const ShardedSafetensors all = read_sharded_safetensors(path);
  Report r;
  r.fact("kind", "sharded safetensors");
  r.fact("file_bytes", all.file_bytes);
  auto& files = r.section("files", "files", {"name"});
  for (const std::string& name : all.files) files.rows.push_back({name});
  add_weights(r, all.tensors);
  return r;
}

// ---- GGUF

// "Q4_K[4096,4096]"; plain elements by their dtype, as everywhere.
std::string type_text(const GgufTensor& t) {
  return t.is_quantized() ? cat(gguf_type_name(t.type), shape_text(t.dims))
                          : cat(t.stored().type());
}

Report of_gguf(const fs::path& path) {
  const Gguf file = read_gguf(path);
  std::int64_t bytes = 0;
  for (const GgufTensor& t : file.tensors) bytes += static_cast<std::int64_t>(t.data.size());
  Report r;
  r.fact("kind", "GGUF");
  r.fact("file_bytes", static_cast<std::int64_t>(fs::file_size(path)));
  r.fact("format_version", static_cast<std::int64_t>(file.version));
  r.fact("alignment", file.alignment);
  r.fact("weight_bytes", bytes);
  add_metadata(r, file.metadata);
  auto& tensors = r.section("weights", "weights", {"name", "type", "bytes"});
  for (const GgufTensor& t : file.tensors)
    tensors.rows.push_back({t.name, type_text(t), cat(t.data.size())});
  return r;
}

// ---- plans

std::string guards_text(const Variant& v) {
  std::string out;
  for (const Guard& g : v.guards) out += cat(out.empty() ? "" : ", ", guard_text(g));
  return out;
}

std::size_t launches(const std::vector<Step>& steps, Step::Kind kind) {
  std::size_t n = 0;
  for_each_step(steps, [&](const Step& s) { n += s.kind == kind; });
  return n;
}

void add_params(Report& r, std::string title, const std::vector<const PlanParam*>& params) {
  auto& s = r.section(title, title, {"name", "type", "donated"});
  for (const PlanParam* p : params)
    s.rows.push_back({p->name, cat(p->type), p->donated ? "yes" : ""});
}

void add_states(Report& r, const Plan& plan) {
  if (plan.states.empty()) return;
  auto& s = r.section("states", "states", {"name", "group", "type", "start"});
  for (const PlanState& one : plan.states) {
    const std::string open =
        one.open_axis ? cat(", up to ", one.capacity()->size, " along axis ", *one.open_axis) : "";
    const std::string_view start = one.start ? "stored" : one.open_axis ? "empty" : "zeros";
    s.rows.push_back({one.name, one.group, cat(one.type) + open, std::string(start)});
  }
}

// Which states an entry reads, and which of these it updates.
void add_uses(Report& r, const Plan& plan, const PlanEntry& e, const std::string& of) {
  auto& s = r.section("states used" + of, "uses" + of, {"name", "updated"});
  std::set<std::int32_t> updated;
  for (std::size_t i = 0; i < e.results.size(); ++i) updated.insert(e.updated_by(i));
  for (std::size_t i = 0; i < e.params.size(); ++i)
    if (const std::int32_t state = e.state_of(i); state != PlanEntry::no_state)
      s.rows.push_back({plan.states[static_cast<std::size_t>(state)].name,
                        updated.contains(state) ? "yes" : ""});
}

void add_entry(Report& r, const Plan& plan, const PlanEntry& e) {
  const std::string of = plan.entries.size() > 1 ? cat(" of ", e.name) : "";
  add_params(r, "inputs" + of, inputs_of(e));
  add_params(r, "outputs" + of, outputs_of(e));
  if (!e.states.empty()) add_uses(r, plan, e, of);
  auto& variants =
      r.section("variants" + of, "variants" + of, {"devices", "launches", "library_calls", "when"});
  for (const Variant& v : e.variants)
    variants.rows.push_back({devices_text(v), cat(launches(v.steps, Step::Kind::launch)),
                             cat(launches(v.steps, Step::Kind::library)), guards_text(v)});
  auto& strategies = r.section("strategies that were compared" + of, "strategies" + of,
                               {"name", "ms", "peak_bytes", "chosen", "failure"});
  for (const StrategyRecord& s : e.strategies)
    strategies.rows.push_back({s.name, s.ms < 0 ? "" : cat(s.ms),
                               s.peak_bytes < 0 ? "" : cat(s.peak_bytes), s.chosen ? "yes" : "",
                               s.failure});
}

Report of_plan(const fs::path& path) {
  const Plan plan = read_plan(path);
  std::int64_t weights = 0, prepared = 0, code = 0;
  for (const PlanWeight& w : plan.weights)
    weights += static_cast<std::int64_t>(w.data.bytes().size());
  for (const PreparedBuffer& p : plan.prepared)
    prepared += static_cast<std::int64_t>(p.data.size());
  for (const Binary& b : plan.binaries) code += static_cast<std::int64_t>(b.code.size());
  Report r;
  r.fact("kind", "plan");
  r.fact("file_bytes", static_cast<std::int64_t>(fs::file_size(path)));
  r.fact("model", plan.name);
  r.fact("format_version", Plan::format_version);
  r.fact("strategy", plan.strategy);
  r.fact("choices", plan.measured ? "measured" : "predicted");
  r.fact("verification", plan.verification);
  r.fact("machine", plan.machine);
  r.fact("content", to_hex(content_hash(plan)));
  std::int64_t self_tests = 0;
  for (const PlanEntry& e : plan.entries)
    self_tests += std::ranges::count(e.self_tests, "", &SelfTest::missing);
  r.fact("self_tests", self_tests);
  r.fact("kernels", plan.kernels.size());
  r.fact("code_bytes", code);
  r.fact("weight_bytes", weights);
  r.fact("prepared_bytes", prepared);
  r.fact("graph",
         std::ranges::any_of(plan.entries, [](const PlanEntry& e) { return e.graph.empty(); })
             ? "stripped"
             : "kept");
  add_states(r, plan);
  for (const PlanEntry& e : plan.entries) add_entry(r, plan, e);
  auto& tensors = r.section("weights", "weights", {"name", "type", "bytes"});
  for (const PlanWeight& w : plan.weights)
    tensors.rows.push_back({w.name, cat(w.data.type()), cat(w.data.bytes().size())});
  return r;
}

Report report_of(const ModelFile& file) {
  switch (file.kind) {
    case FileKind::plan:
      return of_plan(file.path);
    case FileKind::safetensors:
      return of_safetensors(file.path);
    case FileKind::shards:
      return of_shards(file.path);
    case FileKind::gguf:
      return of_gguf(file.path);
    case FileKind::onnx:
      break;
  }
  return of_onnx(file.path);
}

}  // namespace

int inspect(Words words) {
  Printing printing;
  std::string given;
  bool all = false;
  Arguments a("hone inspect",
              "Shows what a model, a plan or a file of tensors contains, without compiling it.");
  a.positional("FILE",
               "an ONNX model, a plan, safetensors or their index.json, GGUF, or a directory",
               given);
  a.flag("--weights", "list every weight too", all);
  add_printing(a, printing);
  a.example("hone inspect model.onnx");
  a.example("hone inspect model.hone --weights --json");
  if (!a.parse(words)) return exit_ok;
  const ModelFile file = model_file(given);
  Report r = report_of(file);
  if (!all && !file.has_only_tensors())
    std::erase_if(r.sections, [](const auto& s) { return s.key == "weights"; });
  if (printing.json)
    std::printf("%s\n", json(r).text(2).c_str());
  else
    print(r);
  return exit_ok;
}

}  // namespace hone::cli
