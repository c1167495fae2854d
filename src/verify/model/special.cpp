#include "verify/model/special.h"

#include <algorithm>
#include <cmath>

#include "ops/host.h"
#include "ops/ops.h"
#include "ref/compare.h"
#include "ref/element.h"
#include "ref/rounding.h"

namespace hone {

namespace {

// Limit of intermediate elements for the compared ones. Each may be a long sum. A function whose
// numbers are rounded differently has up to ten nodes for one.
constexpr std::int64_t most_elements = 4096, most_perturbed_elements = 16 * most_elements;

// Padding may be multiplied by weights that are infinite (docs/numbers.md).
bool may_pad_specials(const Function& f) {
  for (NodeId n : live_nodes(f)) {
    const Value v(&f.graph(), n);
    if (v.is(ops::conv) && !v.operand(1).is(ops::constant)) return true;
  }
  return false;
}

// They are not evaluated by elements.
bool has_host_op(const Function& f) {
  return std::ranges::any_of(live_nodes(f), [&](NodeId n) { return is_host_op(f.graph().op(n)); });
}

// Where the modes agree. A number that is finite in both may be infinite in a kernel whose
// intermediate sums overflow, but not NaN.
bool is_wrong(const ElementOfModes& expected, double got) {
  const double strict = expected.strict.real, wide = expected.wide.real;
  if (std::isfinite(strict) && std::isfinite(wide)) return std::isnan(got);
  return same_special(strict, wide) && !same_special(got, wide);
}

// A few elements of each kind, from the whole result, because most may be of one kind.
std::vector<std::int64_t> places_of(const Array& got) {
  constexpr std::int64_t most_looked_at = 1 << 16, most_of_kind = 16, apart = 2'654'435'761;
  std::int64_t nans = 0, infinities = 0, numbers = 0;
  std::vector<std::int64_t> out;
  for (std::int64_t k = 0; k < std::min(got.count(), most_looked_at); ++k) {
    const std::int64_t i = k * apart % got.count();
    const double x = got.real(i);
    std::int64_t& of_kind = std::isnan(x) ? nans : std::isinf(x) ? infinities : numbers;
    if (of_kind++ < most_of_kind) out.push_back(i);
  }
  return out;
}

}  // namespace

std::string wrong_special(const Function& f, const std::vector<Array>& inputs,
                          const std::vector<Array>& got) {
  if (may_pad_specials(f) || has_host_op(f)) return "";
  ElementEvaluator reference(f, inputs, Mode::stepwise);
  for (std::size_t r = 0; r < got.size(); ++r) {
    if (!is_float(got[r].dtype())) continue;
    const std::vector<std::int64_t> at = places_of(got[r]);
    const auto expected = reference.all_at(r, at, most_elements);
    if (!expected) continue;
    const std::vector<Wide> strict = {listed(got[r].dtype(), *expected, &ElementOfModes::strict)},
                            wide = {listed(got[r].dtype(), *expected, &ElementOfModes::wide)};
    Rounding rounding(
        f,
        [&](const Function& g) -> std::vector<Wide> {
          const auto all = ElementEvaluator(g, inputs).all_at(r, at, most_perturbed_elements);
          if (!all) return {};
          return {listed(got[r].dtype(), *all, &ElementOfModes::strict)};
        },
        strict, wide);
    for (std::size_t i = 0; i < at.size(); ++i)
      if (const double x = got[r].real(at[i]);
          is_wrong((*expected)[i], x) && !rounding.decides_special(0, i))
        return cat("result ", r, " is ", x, " at element ", at[i], ", expected ",
                   (*expected)[i].wide.real, ", on inputs that hold NaN and infinities");
  }
  return "";
}

}  // namespace hone
