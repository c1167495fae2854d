#include "verify/onnx/open.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <unordered_map>

namespace hone::onnx {

namespace {

bool is_unknown(const Numbers& n, std::size_t i) {
  return n.is_open(i) || n.values[i] != n.values[i];
}

bool has_unknown(const Numbers& n) {
  for (std::size_t i = 0; i < n.values.size(); ++i)
    if (is_unknown(n, i)) return true;
  return false;
}

// The results on operands, and on values that subgraphs use, which are changed first.
class Again {
 public:
  Again(MeaningOf& meaning, const Node& node, std::int64_t opset,
        std::span<const Numbers* const> inputs, const NumbersByName& outer)
      : meaning_(meaning), node_(node), opset_(opset), inputs_(inputs), outer_(outer) {}

  std::optional<std::vector<Numbers>> with(const std::function<void(Numbers&)>& change,
                                           Noise* noise = nullptr, bool only_first = false) const {
    std::deque<Numbers> changed;
    std::unordered_map<const Numbers*, const Numbers*> by_original;
    const auto of = [&](const Numbers* n) -> const Numbers* {
      if (!n) return nullptr;
      const auto [at, is_new] = by_original.emplace(n, nullptr);
      if (is_new) {
        change(changed.emplace_back(*n));
        at->second = &changed.back();
      }
      return at->second;
    };
    std::vector<const Numbers*> inputs;
    for (const Numbers* n : inputs_) inputs.push_back(only_first && !inputs.empty() ? n : of(n));
    NumbersByName outer;
    if (outer_) outer = [&](std::string_view name) { return of(outer_(name)); };
    return meaning_(node_, opset_, inputs, outer, noise);
  }

 private:
  MeaningOf& meaning_;
  const Node& node_;
  std::int64_t opset_;
  std::span<const Numbers* const> inputs_;
  const NumbersByName& outer_;
};

void open_all(std::vector<Numbers>& results) {
  for (Numbers& n : results) n.open.assign(n.values.size(), true);
}

// Marks what differs by more than is allowed. False: sizes differ.
bool open_differences(std::vector<Numbers>& results, const std::vector<Numbers>& others,
                      const std::vector<double>& allowed) {
  if (results.size() != others.size()) return false;
  for (std::size_t k = 0; k < results.size(); ++k) {
    Numbers& a = results[k];
    const Numbers& b = others[k];
    if (a.dims != b.dims) return false;
    for (std::size_t i = 0; i < a.values.size(); ++i) {
      const double x = a.values[i], y = b.values[i];
      const bool are_equal = x == y || (x != x && y != y) || std::fabs(x - y) <= allowed[k];
      if (!are_equal || b.is_open(i)) a.leave_open(i);
    }
  }
  return true;
}

}  // namespace

bool has_open(std::span<const Numbers* const> operands) {
  return std::ranges::any_of(
      operands, [](const Numbers* n) { return n && std::ranges::count(n->open, true) > 0; });
}

bool has_unknown(std::span<const Numbers* const> operands) {
  return std::ranges::any_of(operands, [](const Numbers* n) { return n && has_unknown(*n); });
}

bool leave_unknown_open(MeaningOf meaning, const Node& node, std::int64_t opset,
                        std::span<const Numbers* const> inputs, const NumbersByName& outer,
                        std::vector<Numbers>& results) {
  const Again again(*meaning, node, opset, inputs, outer);
  const std::vector<double> exact(results.size(), 0);
  // Both ends, zero, and a number between: each may be what a comparison or a clamp passes on.
  for (const double part : {1.0, -1.0, 0.0, 0.25}) {
    const auto others = again.with([&](Numbers& n) {
      const double most = largest_number(n.dtype);
      double x = part * most;
      if (part == 0.25) x = 1;
      if (!is_float(n.dtype) && part < 0 && !is_signed(n.dtype)) x = 0;
      for (std::size_t i = 0; i < n.values.size(); ++i)
        if (is_unknown(n, i)) n.values[i] = x;
      n.open.clear();
    });
    if (!others) return false;
    if (!open_differences(results, *others, exact)) {
      open_all(results);
      return true;
    }
  }
  return true;
}

void leave_rounding_open(MeaningOf meaning, const Node& node, std::int64_t opset,
                         std::span<const Numbers* const> inputs, const NumbersByName& outer,
                         std::vector<Numbers>& results) {
  // Other operands of a single operator may be parameters, such as scales of Resize, which decide
  // by what they are.
  const bool is_single =
      std::ranges::none_of(node.attributes, [](const Attribute& a) { return bool(a.graph); });
  const Again again(*meaning, node, opset, inputs, outer);
  std::vector<double> allowed;
  for (const Numbers& n : results) allowed.push_back(allowed_difference(n) / 2);
  // Two numbers next to each other change their order in half of the tries.
  constexpr std::uint64_t tries = 8;
  for (std::uint64_t seed = 1; seed <= tries; ++seed) {
    Noise noise(seed);
    const auto others = again.with([&](Numbers& n) { noise.add_to(n); }, &noise, is_single);
    if (others && open_differences(results, *others, allowed)) continue;
    if (!is_single) open_all(results);  // other sizes, or none: what its graph decides may be any
    return;
  }
  // A quotient of zeros, or a difference of infinities, which operands hold none of.
  if (has_unknown(inputs)) return;
  for (Numbers& n : results)
    for (std::size_t i = 0; i < n.values.size(); ++i)
      if (n.values[i] != n.values[i]) n.leave_open(i);
}

void Noise::add_to(Numbers& n) {
  if (!is_float(n.dtype)) return;
  constexpr double part = 1.0 / 32;  // of what is allowed
  for (double& x : n.values) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    const double sign = state_ >> 63 ? 1 : -1;
    x += sign * part * tolerance(n.dtype) * x;
  }
}

}  // namespace hone::onnx
