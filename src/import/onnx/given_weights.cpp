#include "import/onnx/given_weights.h"

#include <set>

#include "base/error.h"
#include "import/onnx/file/tensor.h"

namespace hone::onnx {

namespace {

// Rounds once to another float dtype.
Array rounded(const Array& a, DType to) {
  Array out = Array::zeros(to, a.dims());
  for (std::int64_t i = 0; i < a.count(); ++i) out.set_real(i, a.real(i));
  return out;
}

Array as_declared(const Array& given, std::string_view name, std::int32_t data_type) {
  const std::optional<DType> dtype = dtype_of(data_type);
  if (!dtype || *dtype == given.dtype()) return given;
  if (!is_float(*dtype) || !is_float(given.dtype()))
    throw UserError("weight '", name, "' is ", given.type(), ", expected ", *dtype,
                    "; only floats are converted");
  return rounded(given, *dtype);
}

const Array* find(const ImportOptions& options, std::string_view name) {
  if (options.weights.empty()) return nullptr;
  const auto at = options.weights.find(std::string(name));
  return at == options.weights.end() ? nullptr : &at->second;
}

[[noreturn]] void refuse_shape(std::string_view name, const Array& given,
                               const std::string& declared) {
  throw UserError("weight '", name, "' is ", given.type(), ", expected ", declared,
                  "; give the checkpoint that the model was exported from");
}

std::string first_names(const std::set<std::string>& names) {
  constexpr std::size_t most = 5;
  std::string out;
  std::size_t n = 0;
  for (const std::string& name : names) {
    if (n++ == most) return cat(out, ", ... (", names.size(), ")");
    out += cat(out.empty() ? "" : ", ", name);
  }
  return out;
}

// Includes subgraphs. Recursion is bounded by the nesting of messages.
void add_names(const Graph& g, std::set<std::string>& out) {
  for (std::string_view name : initializer_names(g)) out.emplace(name);
  for (const ValueInfo& v : g.inputs) out.emplace(v.name);
  for (const Node& n : g.nodes)
    for (const Attribute& a : n.attributes)
      if (a.graph) add_names(*a.graph, out);
}

}  // namespace

std::optional<Array> given_weight(const ImportOptions& options, const Tensor& declared) {
  const Array* given = find(options, declared.name);
  if (!given) return std::nullopt;
  if (given->dims() != declared.dims) {
    const Dims dims(declared.dims.begin(), declared.dims.end());
    refuse_shape(declared.name, *given, cat(Shape(dims)));
  }
  return as_declared(*given, declared.name, declared.data_type);
}

std::optional<Array> given_weight(const ImportOptions& options, const ValueInfo& declared) {
  const Array* given = find(options, declared.name);
  if (!given) return std::nullopt;
  bool fits = declared.kind == ValueInfo::Kind::tensor &&
              (!declared.has_shape || declared.sizes.size() == given->dims().size());
  for (std::size_t i = 0; fits && declared.has_shape && i < declared.sizes.size(); ++i) {
    const std::int64_t n = given->dims()[i];
    fits = declared.sizes[i].number.value_or(n) == n;
  }
  if (!fits) refuse_shape(declared.name, *given, "another shape");
  return as_declared(*given, declared.name, declared.data_type);
}

void check_weights(const Model& model, const ImportOptions& options,
                   std::vector<std::string>& warnings) {
  if (options.weights.empty() || !model.graph) return;
  std::set<std::string> names, unused;
  add_names(*model.graph, names);
  for (const auto& [name, data] : options.weights)
    if (!names.contains(name)) unused.insert(name);
  if (unused.size() == options.weights.size())
    throw UserError("the model has none of the given weights: its weights are ",
                    names.empty() ? "unnamed" : first_names(names), ", and the given ones are ",
                    first_names(unused),
                    "; export the model so that it keeps the names of its parameters");
  if (!unused.empty())
    warnings.push_back(cat(unused.size(), " of ", options.weights.size(),
                           " given weights are not in the model: ", first_names(unused)));
}

}  // namespace hone::onnx
