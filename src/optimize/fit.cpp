#include "optimize/fit.h"

#include <algorithm>
#include <optional>

#include "base/file.h"
#include "import/onnx/file/model.h"

namespace hone {

namespace fs = std::filesystem;

namespace {

using Sizes = std::map<std::string, std::int64_t>;  // by symbol

// Sizes of one set of inputs; empty if they are not inputs of the function.
Sizes sizes_of(const Function& f, std::span<const Array> inputs) {
  Sizes out;
  if (inputs.size() != f.params().size()) return out;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Type& t = f.params()[i].value.type();
    if (!t.is_tensor() || t.rank() != inputs[i].rank()) return {};
    for (std::size_t axis = 0; axis < inputs[i].dims().size(); ++axis)
      if (const Dim& d = t.shape.dims[axis]; d.is_symbol())
        out.emplace(d.name(), inputs[i].dims()[axis]);
  }
  return out;
}

std::optional<std::int64_t> value(const Dim& d, const Sizes& sizes) {
  if (d.is_number()) return d.number();
  if (!d.is_symbol()) return std::nullopt;
  const auto at = sizes.find(d.name());
  return at == sizes.end() ? std::nullopt : std::optional(at->second);
}

// Symbols that are 0 in a set, and those that are 1 in all sets and must equal another size.
struct Wanted {
  std::map<std::string, ImportOptions::Range> with_zero;
  std::map<std::string, std::string> ones;  // with the reason
};

Wanted wanted(const Imported& imported, const std::vector<std::vector<Array>>& sets,
              const ImportOptions& options) {
  Wanted out;
  const Function& f = imported.variants[0].function;
  std::vector<Sizes> all;
  for (const std::vector<Array>& set : sets) all.push_back(sizes_of(f, set));
  for (const Function::Param& p : f.params()) {
    if (!p.value.type().is_tensor()) continue;
    for (const Dim& d : p.value.type().shape.dims)
      if (d.is_symbol() && d.low() > 0 && !options.dims.contains(d.name()) &&
          std::ranges::any_of(all, [&](const Sizes& s) { return value(d, s) == 0; }))
        out.with_zero.emplace(d.name(), ImportOptions::Range{0, d.high()});
  }
  for (const DimCheck& c : f.graph().checks())
    for (const auto& [one, other] : {std::pair(c.a, c.b), std::pair(c.b, c.a)}) {
      if (!one.is_symbol() || options.dims.contains(one.name())) continue;
      const auto is_one = [&](const Sizes& s) { return value(one, s) == 1; };
      const auto differs = [&](const Sizes& s) {
        const std::optional<std::int64_t> n = value(other, s);
        return n && *n != 1;
      };
      if (!all.empty() && std::ranges::all_of(all, is_one) && std::ranges::any_of(all, differs))
        out.ones.emplace(one.name(), cat(other));
    }
  return out;
}

std::vector<std::vector<Array>> sets_for(const Imported& imported, const KnownInputs& known) {
  std::vector<std::vector<Array>> out = known.sets;
  if (!known.last) return out;
  std::vector<PlanParam> params;
  for (const Function::Param& p : imported.variants[0].function.params())
    params.push_back({p.name, p.value.type(), false});
  out.push_back(known.last(params));
  return out;
}

// The data given for input number `index`: by name, else from the first set beside the model.
std::optional<Array> given_input(const KnownInputs& known, const std::string& name,
                                 std::size_t index) {
  for (const KnownInputs::Named& n : known.named)
    if (n.name == name) return n.read();
  if (!known.sets.empty() && index < known.sets[0].size()) return known.sets[0][index];
  return std::nullopt;
}

// Gives inputs without a rank the rank of the given tensors. Returns whether there was one.
bool add_ranks(const fs::path& path, const KnownInputs& known, FittedImport& to) {
  const auto file = MappedFile::open(path);
  const onnx::Model model = onnx::parse_model(file->bytes(), file->path(), to.options.most_nodes);
  if (!model.graph) return false;
  const std::vector<std::string_view> initialized = onnx::initializer_names(*model.graph);
  bool is_new = false;
  std::size_t index = 0;
  for (const onnx::ValueInfo& v : model.graph->inputs) {
    if (std::ranges::find(initialized, v.name) != initialized.end()) continue;
    const std::string name(v.name);
    const std::optional<Array> given = given_input(known, name, index++);
    if (v.has_shape || v.kind != onnx::ValueInfo::Kind::tensor || !given) continue;
    if (to.options.shapes.contains(name) || !to.options.ranks.emplace(name, given->rank()).second)
      continue;
    is_new = true;
    to.notes.push_back(cat("note: the model gives no shape for input '", name,
                           "'; compiled for rank ", given->rank(), ", as in the inputs"));
  }
  return is_new;
}

// Integers that are given by name and may decide a shape.
std::map<std::string, Array> small_contents(const KnownInputs& known) {
  constexpr std::int64_t most_elements = 64;
  std::map<std::string, Array> out;
  for (const KnownInputs::Named& n : known.named) {
    std::optional<Array> a = n.read();
    if (a && !is_float(a->dtype()) && a->dtype() != DType::text && a->rank() <= 1 &&
        a->count() <= most_elements)
      out.emplace(n.name, std::move(*a));
  }
  return out;
}

FittedImport read_for_contents(const fs::path& model, ImportOptions& options,
                               const KnownInputs& known) {
  try {
    return {import_onnx(model, options), {}};
  } catch (const UserError&) {
    if (options.contents.empty()) options.contents = small_contents(known);
    if (options.contents.empty()) throw;
    std::optional<FittedImport> out;
    try {
      out.emplace(FittedImport{import_onnx(model, options), {}});
    } catch (const UserError&) {
    }
    if (!out) throw;
    for (const Function::Param& p : out->imported.variants[0].function.params())
      if (p.required)
        out->notes.push_back(cat("note: compiled for the given values of input '", p.name,
                                 "'; other values are refused"));
    return std::move(*out);
  }
}

FittedImport first_import(const fs::path& model, ImportOptions& options, const KnownInputs& known) {
  try {
    return read_for_contents(model, options, known);
  } catch (const UserError&) {
    FittedImport ranked{.imported = {}, .notes = {}, .options = options};
    if (!add_ranks(model, known, ranked)) throw;
    options = ranked.options;
    FittedImport out = read_for_contents(model, options, known);
    out.notes.insert(out.notes.begin(), ranked.notes.begin(), ranked.notes.end());
    return out;
  }
}

}  // namespace

FittedImport import_fitting(const fs::path& model, const ImportOptions& given,
                            const KnownInputs& known) {
  ImportOptions options = given;
  FittedImport out = first_import(model, options, known);
  // Each pass fixes a size at least; a number in place of a symbol may show further checks.
  constexpr int most_passes = 8;
  for (int pass = 0; pass < most_passes; ++pass) {
    const Wanted now = wanted(out.imported, sets_for(out.imported, known), options);
    if (now.with_zero.empty() && now.ones.empty()) break;
    for (const auto& [name, other] : now.ones) {
      options.dims[name] = {1, 1};
      out.notes.push_back(cat("note: size ", name,
                              " is compiled as 1, as in the inputs, and broadcast to ", other,
                              "; give other sizes with --dim"));
    }
    for (const auto& [name, range] : now.with_zero) options.dims[name] = range;
    try {
      out.imported = import_onnx(model, options);
    } catch (const UserError&) {
      if (now.with_zero.empty()) throw;
      for (const auto& [name, range] : now.with_zero) options.dims[name] = {0, 0};
      out.imported = import_onnx(model, options);
    }
    for (const auto& [name, range] : now.with_zero) {
      const std::int64_t high = options.dims[name].high;
      out.notes.push_back(cat("note: size ", name, " is compiled for 0",
                              high > 0 ? cat(" to ", high) : std::string(),
                              ", as an input is empty; give other ranges with --dim"));
    }
  }
  out.options = std::move(options);
  return out;
}

}  // namespace hone
