#include "import/onnx/check.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "import/onnx/declared.h"
#include "import/onnx/file/sorted.h"
#include "import/onnx/input_types.h"
#include "import/onnx/structure.h"
#include "import/onnx/variants.h"
#include "import/onnx/walk.h"
#include "ops/ops.h"

namespace hone {

namespace {

using onnx::Model;
using onnx::ValueInfo;

void add_sizes(const Model& model, const ImportOptions& options, ModelCheck& out) {
  std::map<std::string, std::size_t> index;
  std::vector<std::string_view> initialized = onnx::initializer_names(*model.graph);
  std::ranges::sort(initialized);
  for (const ValueInfo& v : model.graph->inputs) {
    if (std::ranges::binary_search(initialized, v.name) ||
        options.shapes.contains(std::string(v.name)))
      continue;
    for (std::size_t i = 0; i < v.sizes.size(); ++i) {
      const onnx::Size& size = v.sizes[i];
      if (size.number && *size.number >= 0) continue;
      const std::string name = onnx::fit_size_name(size.symbol.empty() ? cat(v.name, "_d", i)
                                                                       : std::string(size.symbol));
      const auto given = options.dims.find(name);
      const bool is_given = given != options.dims.end();
      const ImportOptions::Range range = is_given ? given->second : ImportOptions::Range();
      if (range.low == range.high) continue;
      const auto [at, is_new] = index.emplace(name, out.open_sizes.size());
      if (is_new) out.open_sizes.push_back({name, range.low, range.high, is_given, false, {}});
      out.open_sizes[at->second].inputs.push_back(cat(v.name, " axis ", i));
    }
  }
}

// The import narrows ranges according to the model's own checks; all variants have the same inputs.
void narrow_sizes(const Imported& imported, std::vector<ModelCheck::OpenSize>& sizes) {
  for (const Function::Param& p : imported.variants[0].function.params()) {
    if (!p.value.type().is_tensor()) continue;
    for (const Dim& d : p.value.type().shape.dims)
      for (ModelCheck::OpenSize& s : sizes)
        if (d.is_symbol() && d.name() == s.name && (s.low != d.low() || s.high != d.high())) {
          s.low = d.low();
          s.high = d.high();
          s.required = true;
        }
  }
}

void add_decisions(const Function& f, std::vector<std::string>& out) {
  static const std::map<const Op*, std::string_view> decides = {
      {&ops::if_else, "which branch runs"},
      {&ops::while_loop, "how often the body runs"},
      {&ops::require, "whether the run is refused"},
      {&ops::refuse, "the run is refused when it gets here"}};
  for (const NodeId n : live_nodes(f)) {
    const auto found = decides.find(&f.graph().op(n));
    if (found == decides.end()) continue;
    std::string line = cat(origins_text(Value(&f.graph(), n)), ": ", found->second);
    if (std::ranges::find(out, line) == out.end()) out.push_back(std::move(line));
  }
}

void add_outputs(const Function& f, std::vector<ModelCheck::Output>& out) {
  for (const Function::Result& r : f.results()) {
    auto at = std::ranges::find(out, r.name, &ModelCheck::Output::name);
    if (at == out.end()) at = out.insert(at, {r.name, {}});
    std::string type = cat(r.value.type());
    if (std::ranges::find(at->types, type) == at->types.end()) at->types.push_back(std::move(type));
  }
}

// Adds the lines of `from` that the structure check has not reported.
void add_new(const std::vector<onnx::StructureError>& said, const std::vector<std::string>& from,
             std::vector<std::string>& to) {
  std::unordered_set<std::string_view> known;
  for (const onnx::StructureError& e : said) known.insert(e.what);
  for (const std::string& line : from)
    if (!known.contains(line)) to.push_back(line);
}

void read(Model& model, onnx::TensorFiles& files, const ImportOptions& options,
          const std::vector<onnx::StructureError>& said, ModelCheck& out) {
  Imported imported;
  try {
    onnx::read_variants(model, files, options, imported);
  } catch (const onnx::Refused& r) {
    add_new(said, r.problems.wrong, out.wrong);
    out.unsupported = r.problems.unsupported;
    out.data_dependent = r.problems.data_dependent;
    out.left_out = r.problems.left_out;
    return;
  } catch (const UserError& e) {
    return add_new(said, {e.what()}, out.wrong);
  }
  out.warnings.insert(out.warnings.end(), imported.warnings.begin(), imported.warnings.end());
  narrow_sizes(imported, out.open_sizes);
  for (const ImportedVariant& v : imported.variants) {
    add_outputs(v.function, out.outputs);
    add_decisions(v.function, out.decided_by_data);
  }
  for (std::string& line : onnx::contradictions(model, options, imported.variants))
    out.warnings.push_back(std::move(line));
}

}  // namespace

ModelCheck check_onnx(const std::filesystem::path& path, const ImportOptions& options) {
  auto file = MappedFile::open(path);
  ModelCheck out;
  Model model;
  try {
    model = onnx::parse_model(file->bytes(), file->path(), options.most_nodes);
  } catch (const UserError& e) {
    out.wrong.push_back(e.what());
    return out;
  }
  onnx::give_ranks(model, options);
  for (const onnx::Opset& o : model.opsets)
    out.opsets.push_back(cat(o.domain.empty() ? "ai.onnx" : o.domain, " ", o.version));
  if (model.graph) out.nodes = static_cast<std::int64_t>(model.graph->nodes.size());
  onnx::TensorFiles files(file, options.allow_links);
  const bool was_sorted = !onnx::sort_nodes(model);
  const std::vector<onnx::StructureError> structure = onnx::structure_errors(model);
  for (const onnx::StructureError& e : structure) out.wrong.push_back(e.where + e.what);
  out.warnings = onnx::structure_warnings(model);
  if (!was_sorted)
    out.warnings.push_back(
        "nodes stand before those that make their inputs, which ONNX does not allow; they are read "
        "in a sorted order");
  if (model.graph) add_sizes(model, options, out);
  read(model, files, options, structure, out);
  return out;
}

}  // namespace hone
