#include "import/onnx/input_types.h"

#include <algorithm>

#include "import/onnx/file/tensor.h"
#include "import/onnx/node/context.h"
#include "import/onnx/source.h"

namespace hone::onnx {

std::string unused_name(const std::string& name, std::set<std::string>& taken) {
  std::string out = name;
  for (int i = 2; !taken.insert(out).second; ++i) out = cat(name, "_", i);
  return out;
}

Dim InputTypes::open_size(std::string_view name) {
  auto [it, is_new] = names_.emplace(name, "");
  if (is_new) it->second = unused_name(fit_size_name(name), taken_);
  auto given = options_.dims.find(it->second);
  ImportOptions::Range range =
      given == options_.dims.end() ? ImportOptions::Range() : given->second;
  if (range.low < 0 || range.low > range.high)
    throw UserError("size '", it->second, "': the range is ", range.low, " to ", range.high,
                    ", expected 0 <= low <= high");
  return range.low == range.high ? Dim(range.low) : Dim::symbol(it->second, range.low, range.high);
}

namespace {

Dims given_sizes(const ValueInfo& v, const std::vector<std::int64_t>& given) {
  if (given.size() != v.sizes.size())
    throw UserError("input '", v.name, "' has ", v.sizes.size(), " axes, but ", given.size(),
                    given.size() == 1 ? " size was given" : " sizes were given");
  for (std::size_t i = 0; i < given.size(); ++i)
    if (v.sizes[i].number.value_or(given[i]) != given[i])
      throw UserError("input '", v.name, "': axis ", i, " is ", given[i], ", expected ",
                      *v.sizes[i].number, ", which the model declares");
  return dims_of(given);
}

}  // namespace

Type InputTypes::of(const ValueInfo& v) {
  std::optional<DType> dtype =
      v.kind == ValueInfo::Kind::tensor ? dtype_of(v.data_type) : std::nullopt;
  if (!dtype)
    throw Unsupported("input '", v.name, "': ",
                      v.kind == ValueInfo::Kind::tensor
                          ? data_type_name(v.data_type) + " tensors are not supported"
                          : "only tensors, sequences and optionals are supported");
  if (!v.has_shape)
    throw UserError("input '", v.name, "' has no shape in the model; give its sizes (--shapes ",
                    v.name, ":1x3x224x224, or an input), or export the model with input shapes");
  if (auto given = options_.shapes.find(std::string(v.name)); given != options_.shapes.end())
    return {*dtype, Shape(given_sizes(v, given->second))};
  Dims dims;
  for (std::size_t i = 0; i < v.sizes.size(); ++i) {
    const Size& size = v.sizes[i];
    const bool is_open = !size.number || *size.number < 0;
    const std::string own = cat(v.name, "_d", i);
    dims.push_back(is_open ? open_size(size.symbol.empty() ? own : size.symbol) : *size.number);
  }
  return {*dtype, Shape(std::move(dims))};
}

void give_ranks(Model& model, const ImportOptions& options) {
  if (!model.graph) return;
  for (ValueInfo& v : model.graph->inputs) {
    if (v.has_shape || v.kind != ValueInfo::Kind::tensor) continue;
    const std::string name(v.name);
    const auto shape = options.shapes.find(name);
    const auto rank = options.ranks.find(name);
    if (shape == options.shapes.end() && rank == options.ranks.end()) continue;
    const std::size_t axes = shape != options.shapes.end() ? shape->second.size()
                                                           : static_cast<std::size_t>(rank->second);
    v.has_shape = true;
    for (std::size_t i = 0; i < axes; ++i) v.sizes.push_back({});
  }
}

void check_shapes(const Graph& g, const ImportOptions& options) {
  for (const auto& [name, sizes] : options.shapes) {
    if (std::ranges::find(g.inputs, name, &ValueInfo::name) != g.inputs.end()) continue;
    std::string list;
    for (const ValueInfo& v : g.inputs) list += cat(list.empty() ? "" : ", ", v.name);
    throw UserError("sizes of input '", name, "' are given, but the model has no such input; ",
                    list.empty() ? "it has no inputs" : "its inputs are " + list);
  }
}

}  // namespace hone::onnx
