#include "verify/onnx/meaning.h"

#include <cmath>
#include <stdexcept>
#include <unordered_map>

#include "base/error.h"
#include "import/onnx/source.h"
#include "verify/onnx/call.h"

namespace hone::onnx {

namespace {

std::string name_of(const Node& node) {
  const std::string_view domain = normal_domain(node.domain);
  return domain.empty() ? std::string(node.op) : cat(domain, ".", node.op);
}

const std::unordered_map<std::string, Meaning>& table() {
  static const auto made = [] {
    std::unordered_map<std::string, Meaning> out;
    for (const auto rows :
         {elementwise_meanings(), movement_meanings(), sum_meanings(), window_meanings(),
          recurrent_meanings(), control_meanings(), quantized_meanings(), sample_meanings(),
          signal_meanings(), attention_meanings(), loss_meanings(), learned_meanings(),
          contrib_meanings()})
      for (const MeaningRow& r : rows) out.emplace(r.op, r.meaning);
    return out;
  }();
  return made;
}

// Whether the dtype can hold the values. Integers that wrap are not covered, nor results of an
// operand that was too large for a number.
bool is_held(const Numbers& n, double most_of_all) {
  if (static_cast<std::int64_t>(n.values.size()) != n.count()) return false;
  if (is_float(n.dtype)) return true;
  const int bits = n.dtype == DType::b1 ? 1 : bit_size(n.dtype) - is_signed(n.dtype);
  const double most = std::min(std::ldexp(1, bits), most_of_all),
               least = is_signed(n.dtype) ? -most : 0;
  for (double x : n.values)
    if (x == x && !(x >= least && x < most && x == std::trunc(x))) return false;
  return true;
}

}  // namespace

bool has_meaning(const Node& node) { return table().contains(name_of(node)); }

std::optional<std::vector<Numbers>> meaning_of(const Node& node, std::int64_t opset,
                                               std::span<const Numbers* const> inputs,
                                               const NumbersByName& outer) try {
  const auto row = table().find(name_of(node));
  if (row == table().end()) return std::nullopt;
  for (const Numbers* n : inputs)
    if (n && !is_held(*n, 0x1p53)) return std::nullopt;
  Call call(node, opset, inputs, outer);
  std::vector<Numbers> out = row->second(call);
  if (!call.all_read()) return std::nullopt;
  for (const Numbers& n : out)
    if (!is_held(n, 0x1p52)) return std::nullopt;
  return out;
} catch (const NotJudged&) {
  return std::nullopt;
} catch (const std::out_of_range&) {
  return std::nullopt;  // a list is too short
}

}  // namespace hone::onnx
