#include "import/onnx_context.h"

#include <algorithm>
#include <array>

namespace hone::onnx {

void NodeContext::fail(std::string_view why) const { throw UserError(node_.op, ": ", why); }

Value NodeContext::in(std::size_t i) const {
  if (!has(i)) fail(cat("operand ", i, " is missing"));
  return inputs_[i];
}

std::int64_t NodeContext::integer(std::string_view attribute, std::int64_t fallback) const {
  const Attribute* a = node_.find(attribute);
  return a ? a->integer : fallback;
}

double NodeContext::real(std::string_view attribute, double fallback) const {
  const Attribute* a = node_.find(attribute);
  return a ? double{a->real} : fallback;
}

std::string_view NodeContext::text(std::string_view attribute, std::string_view fallback) const {
  const Attribute* a = node_.find(attribute);
  return a ? a->text : fallback;
}

std::optional<std::vector<std::int64_t>> NodeContext::integers(std::string_view attribute) const {
  const Attribute* a = node_.find(attribute);
  return a ? std::optional(a->integers) : std::nullopt;
}

std::optional<Array> NodeContext::tensor(std::string_view attribute) const {
  const Attribute* a = node_.find(attribute);
  if (!a || a->tensors.empty()) return std::nullopt;
  return to_array(a->tensors[0], model_.file, model_.directory);
}

Dims NodeContext::contents(std::size_t input) const {
  Value v = in(input);
  if (std::optional<Dims> dims = contents_of(v)) return *dims;
  if (v.is(ops::constant)) {  // a constant of more elements than are tracked as sizes
    const Array& a = v.attrs().get<Array>("value");
    Dims dims;
    for (std::int64_t i = 0; i < a.count(); ++i) dims.push_back(a.integer(i));
    return dims;
  }
  fail(cat("operand ", input, " must be constant or computed from shapes; it depends on data"));
}

std::vector<std::int64_t> NodeContext::numbers(std::size_t input) const {
  std::vector<std::int64_t> out;
  for (const Dim& d : contents(input)) {
    if (!d.is_number()) fail(cat("operand ", input, " must be constant; it holds the size ", d));
    out.push_back(d.number());
  }
  return out;
}

std::optional<std::vector<std::int64_t>> NodeContext::list(std::string_view name,
                                                           std::size_t input) const {
  if (auto attribute = integers(name)) return attribute;
  if (has(input)) return numbers(input);
  return std::nullopt;
}

namespace {

std::array<std::span<const ImportEntry>, 3> tables() {
  return {elementwise_imports(), shape_imports(), network_imports()};
}

// Levenshtein distance, case ignored.
std::size_t distance(std::string_view a, std::string_view b) {
  auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      std::size_t change = diagonal + (lower(a[i]) != lower(b[j]));
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, change});
    }
  }
  return row[b.size()];
}

}  // namespace

const ImportEntry* find_import(std::string_view op) {
  for (std::span<const ImportEntry> table : tables())
    for (const ImportEntry& e : table)
      if (e.op == op) return &e;
  return nullptr;
}

std::string_view nearest_import(std::string_view op) {
  std::string_view best;
  std::size_t least = ~std::size_t{0};
  for (std::span<const ImportEntry> table : tables())
    for (const ImportEntry& e : table)
      if (std::size_t d = distance(op, e.op); d < least) least = d, best = e.op;
  return best;
}

}  // namespace hone::onnx
