#include "import/onnx/declared.h"

#include <algorithm>
#include <span>

#include "import/onnx/file/tensor.h"

namespace hone::onnx {

bool fits(const ValueInfo& declared, const Type& type, bool sizes_too) {
  if (declared.kind != ValueInfo::Kind::tensor || declared.data_type == 0) return true;
  if (dtype_of(declared.data_type) != type.dtype) return false;
  if (!declared.has_shape) return true;
  if (static_cast<int>(declared.sizes.size()) != type.rank()) return false;
  for (int i = 0; sizes_too && i < type.rank(); ++i) {
    const auto& n = declared.sizes[static_cast<std::size_t>(i)].number;
    const Dim& size = type.shape[i];
    if (n && *n >= 0 && size.is_number() && size.number() != *n) return false;
  }
  return true;
}

std::string text_of(const ValueInfo& declared) {
  std::string out;
  if (const auto dtype = dtype_of(declared.data_type)) out = cat(*dtype);
  if (!declared.has_shape) return out;
  out += '[';
  for (std::size_t i = 0; i < declared.sizes.size(); ++i) {
    const Size& size = declared.sizes[i];
    if (i > 0) out += ',';
    out += size.number ? cat(*size.number) : size.symbol.empty() ? "?" : std::string(size.symbol);
  }
  return out + ']';
}

namespace {

// Null when no result has the name. Moves `at` to the result.
const Type* type_of(const Function& f, std::string_view name, std::size_t& at) {
  const auto& results = f.results();
  for (std::size_t i = 0; i < results.size(); ++i, at = (at + 1) % results.size())
    if (results[at].name == name) return &results[at].value.type();
  return nullptr;
}

std::span<const std::int64_t> integers_of(const Node& n, std::string_view attribute) {
  const Attribute* const a = n.find(attribute);
  return a ? std::span<const std::int64_t>(a->integers) : std::span<const std::int64_t>();
}

// Whether, for some size, the last window of a pool begins in the padding. Such a window does not
// count, but ONNX's shape inference counts it.
bool may_end_in_padding(const Node& n) {
  const Attribute* const ceil = n.find("ceil_mode");
  if (!ceil || ceil->integer == 0) return false;
  const auto window = integers_of(n, "kernel_shape"), strides = integers_of(n, "strides"),
             dilations = integers_of(n, "dilations"), pads = integers_of(n, "pads");
  for (std::size_t i = 0; i < window.size(); ++i) {
    const auto at = [](std::span<const std::int64_t> list, std::size_t k, std::int64_t otherwise) {
      return k < list.size() ? list[k] : otherwise;
    };
    if (at(strides, i, 1) - 1 + at(pads, window.size() + i, 0) >
        (window[i] - 1) * at(dilations, i, 1))
      return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> contradictions(const Model& model, const ImportOptions& options,
                                        const std::vector<ImportedVariant>& variants) {
  const bool are_sizes_compared = options.shapes.empty() && options.dims.empty() &&
                                  std::ranges::none_of(model.graph->nodes, may_end_in_padding);
  // Results are in the order of the outputs, so each search starts at the last one found.
  std::vector<std::size_t> last(variants.size());
  std::vector<std::string> out;
  for (const ValueInfo& declared : model.graph->outputs) {
    if (declared.kind != ValueInfo::Kind::tensor || declared.data_type == 0) continue;
    std::string is;
    for (std::size_t v = 0; v < variants.size(); ++v) {
      const Type* type = type_of(variants[v].function, declared.name, last[v]);
      if (type == nullptr || fits(declared, *type, are_sizes_compared)) {
        is.clear();
        break;
      }
      is = cat(*type);
    }
    if (!is.empty())
      out.push_back(cat("output '", declared.name, "' is ", is, ", but the model declares ",
                        text_of(declared)));
  }
  return out;
}

}  // namespace hone::onnx
