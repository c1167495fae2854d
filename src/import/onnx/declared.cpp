#include "import/onnx/declared.h"

#include "import/onnx/tensor.h"

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

}  // namespace

std::vector<std::string> contradictions(const Model& model, const ImportOptions& options,
                                        const std::vector<ImportedVariant>& variants) {
  const bool are_sizes_given = !options.shapes.empty() || !options.dims.empty();
  // Results are in the order of the outputs, so each search starts at the last one found.
  std::vector<std::size_t> last(variants.size());
  std::vector<std::string> out;
  for (const ValueInfo& declared : model.graph->outputs) {
    if (declared.kind != ValueInfo::Kind::tensor || declared.data_type == 0) continue;
    std::string is;
    for (std::size_t v = 0; v < variants.size(); ++v) {
      const Type* type = type_of(variants[v].function, declared.name, last[v]);
      if (type == nullptr || fits(declared, *type, !are_sizes_given)) {
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
