#include "cli/second_reading.h"

#include <algorithm>
#include <unordered_map>

#include "api/hone.h"
#include "base/file.h"
#include "ir/measured.h"
#include "ref/evaluate.h"
#include "verify/made_inputs.h"
#include "verify/whole.h"

namespace hone::cli {

namespace {

constexpr std::int64_t most_flops = 100'000'000, most_elements = 1 << 24;

std::optional<onnx::Numbers> numbers_of(const Wide& w) {
  onnx::Numbers out{w.dtype, w.dims, w.reals};
  if (w.is_real()) return out;
  if (w.dtype == DType::text || w.dtype == DType::u64) return std::nullopt;
  for (std::int64_t i : w.integers)
    out.values.push_back(std::clamp(static_cast<double>(i), -onnx::most_whole, onnx::most_whole));
  return out;
}

// Small and different: what one node gives hangs on no tile.
Sizing small_sizes(const Source& source, const SourceVariant& v) {
  const std::optional<Sizing> small = odd_sizes(v.function.param_types(), conditions_of(v), 2);
  return small ? *small : sizes_to_check(source, v);
}

bool is_little_work(const Function& f, const Sizing& sizes) {
  std::int64_t elements = 0;
  for (NodeId n : live_nodes(f))
    for (std::size_t i = 0; i < f.graph().result_count(n); ++i) {
      const Type& t = f.graph().type(n, i);
      if (t.is_tensor()) elements += size_of(t.shape.count(), sizes);
      if (elements > most_elements) return false;
    }
  return flops_at(flops_of(f), sizes) <= most_flops;
}

// The values of one run of the function, by their names in the model.
std::unordered_map<std::string, onnx::Numbers> values_of(const Function& f,
                                                         const std::vector<Array>& inputs) {
  std::unordered_map<std::string, onnx::Numbers> out;
  std::vector<Wide> results = evaluate_wide(f, inputs, Mode::wide);
  for (std::size_t i = 0; i < results.size(); ++i)
    if (std::optional<onnx::Numbers> n = numbers_of(results[i]))
      out.emplace(f.results()[i].name, std::move(*n));
  return out;
}

// Numbers of both signs, also in integers, which many functions refuse.
std::vector<Array> negative_inputs(const Function& f, const Sizing& sizes) {
  std::vector<Array> out;
  for (const Function::Param& p : f.params())
    out.push_back(p.required ? *p.required
                             : sample_array(p.value.type(), sizes, Fill::negative, out.size() + 1));
  return out;
}

std::string lost_output(const onnx::Model& model, const Function& f) {
  for (const onnx::ValueInfo& o : model.graph->outputs)
    if (o.kind == onnx::ValueInfo::Kind::tensor &&
        std::ranges::none_of(f.results(), [&](const auto& r) { return r.name == o.name; }))
      return cat("output '", o.name, "' is not among the results");
  return "";
}

onnx::ReadingCheck check_run(const onnx::Model& model, const ImportOptions& options,
                             const Function& f, const std::vector<Array>& inputs) try {
  const auto values = values_of(f, inputs);
  return onnx::check_reading(model, [&](std::string_view name) -> const onnx::Numbers* {
    const std::string text(name);
    if (options.weights.contains(text)) return nullptr;
    if (values.contains(cat(text, dump_flag))) return nullptr;  // not of every variant
    const auto it = values.find(text);
    return it == values.end() ? nullptr : &it->second;
  });
} catch (const UserError&) {
  return {};  // the model refuses such inputs
}

}  // namespace

onnx::ReadingCheck read_again(const std::filesystem::path& path, const ImportOptions& options,
                              const Source& source) try {
  const auto file = MappedFile::open(path);
  const onnx::Model model = onnx::parse_model(file->bytes(), file->path(), options.most_nodes);
  ImportOptions with_values = options;
  with_values.dump = onnx::names_to_check(model);
  onnx::ReadingCheck out;
  out.nodes = static_cast<int>(model.graph->nodes.size());
  for (const SourceVariant& v : source.variants)
    if (out.wrong = lost_output(model, v.function); !out.wrong.empty()) return out;
  const Source again = hone::source(import_onnx(path, with_values));
  for (const SourceVariant& v : again.variants) {
    const Sizing sizes = with_measured(small_sizes(again, v), measured_sizes(v.function.graph()));
    if (!is_little_work(v.function, sizes)) continue;
    for (const std::vector<Array>& inputs :
         {made_inputs(v.function, sizes).arrays, negative_inputs(v.function, sizes)}) {
      const onnx::ReadingCheck here = check_run(model, options, v.function, inputs);
      out.judged = std::max(out.judged, here.judged);
      out.wrong = here.wrong;
      if (!out.wrong.empty()) return out;
    }
  }
  return out;
} catch (const UserError&) {
  return {};  // made-up inputs that the model refuses, or values that cannot be named
}

}  // namespace hone::cli
