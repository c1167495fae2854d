#include "verify/onnx/meaning.h"

#include <cmath>
#include <stdexcept>
#include <unordered_map>

#include "base/error.h"
#include "import/onnx/source.h"
#include "verify/onnx/call.h"
#include "verify/onnx/open.h"

namespace hone::onnx {

namespace {

std::string name_of(const Node& node) {
  const std::string_view domain = normal_domain(node.domain);
  return domain.empty() ? std::string(node.op) : cat(domain, ".", node.op);
}

const std::unordered_map<std::string, MeaningRow>& table() {
  static const auto made = [] {
    std::unordered_map<std::string, MeaningRow> out;
    for (const auto rows :
         {elementwise_meanings(), movement_meanings(), sum_meanings(), window_meanings(),
          resize_meanings(), recurrent_meanings(), control_meanings(), quantized_meanings(),
          sample_meanings(), signal_meanings(), attention_meanings(), loss_meanings(),
          learned_meanings(), contrib_meanings(), text_meanings(), region_meanings()})
      for (const MeaningRow& r : rows) out.emplace(r.op, r);
    return out;
  }();
  return made;
}

// Whether the dtype can hold a number. Integers that wrap are not covered, nor results of an
// operand that was too large for a number.
bool is_held(DType t, double x, double most_of_all) {
  if (is_float(t)) return true;
  const int bits = t == DType::b1 ? 1 : bit_size(t) - is_signed(t);
  const double most = std::min(std::ldexp(1, bits), most_of_all), least = is_signed(t) ? -most : 0;
  return x >= least && x < most && x == std::trunc(x);
}

bool are_held(const Numbers& n) {
  if (static_cast<std::int64_t>(n.values.size()) != n.count()) return false;
  for (std::size_t i = 0; i < n.values.size(); ++i)
    if (!n.is_open(i) && !is_held(n.dtype, n.values[i], 0x1p53)) return false;
  return true;
}

// Marks integers that the dtype does not hold, which a quotient by zero is too. False: elements are
// missing.
bool leave_unheld_open(Numbers& n) {
  if (static_cast<std::int64_t>(n.values.size()) != n.count()) return false;
  for (std::size_t i = 0; i < n.values.size(); ++i)
    if (!is_held(n.dtype, n.values[i], 0x1p52)) {
      n.leave_open(i);
      n.values[i] = 0;
    }
  return true;
}

}  // namespace

bool has_meaning(const Node& node) { return table().contains(name_of(node)); }

bool is_exact(const Node& node) {
  const auto row = table().find(name_of(node));
  return row != table().end() && row->second.kind != Kind::computes;
}

std::optional<std::vector<Numbers>> meaning_of(const Node& node, std::int64_t opset,
                                               std::span<const Numbers* const> inputs,
                                               const NumbersByName& outer, Noise* noise) try {
  const auto row = table().find(name_of(node));
  if (row == table().end()) return std::nullopt;
  for (const Numbers* n : inputs)
    if (n && !are_held(*n)) return std::nullopt;
  Call call(node, opset, inputs, outer, noise);
  std::vector<Numbers> out = row->second.meaning(call);
  if (!call.all_read()) return std::nullopt;
  for (Numbers& n : out)
    if (!leave_unheld_open(n)) return std::nullopt;
  const bool matters = row->second.kind == Kind::copies ? has_open(inputs) : has_unknown(inputs);
  if (matters && !leave_unknown_open(meaning_of, node, opset, inputs, outer, out))
    return std::nullopt;
  return out;
} catch (const NotJudged&) {
  return std::nullopt;
} catch (const UserError&) {
  return std::nullopt;  // a string that is not known
} catch (const std::out_of_range&) {
  return std::nullopt;  // a list is too short
}

}  // namespace hone::onnx
