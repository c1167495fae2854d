// The effect of an operation on intervals. Internal to ref.
#pragma once

#include <cmath>
#include <limits>

#include "ops/eval.h"
#include "ref/enclosure_value.h"

namespace hone {

// One node. With `exact`, integers are represented as f64 and nothing is rounded.
struct Enclosing {
  const Op& op;
  const Attrs& attrs;
  std::vector<const Enclosure*> in;
  std::vector<Type> types;
  const std::function<std::int64_t(const Dim&)>& size;
  double units = 0;  // allowed error of a kernel's result, in units in the last place
  bool exact = false;

  // Evaluates the operation on numbers.
  std::vector<Wide> eval(const std::vector<const Wide*>& operands) const;
  Sizes dims(std::size_t result = 0) const;
  // An enclosure of unknown values.
  Enclosure unknown(std::size_t result = 0) const;
};

using EnclosureRule = std::vector<Enclosure> (*)(const Enclosing&);

// How a rule takes integers: unchanged, as f64, or not at all.
enum class Whole : std::uint8_t { plain, as_real, refused };

struct EnclosureRow {
  const Op* op;
  EnclosureRule rule;
  Whole integers = Whole::plain;
  bool either_zero = false;  // a kernel may return either of -0.0 and 0.0
  bool for_points = false;   // the rule also applies when all operands are points
};
// Null: the operation supports only points.
const EnclosureRow* enclosure_row(const Op&);

// ---- one element

inline constexpr double unknown_low = std::numeric_limits<double>::quiet_NaN();
struct Interval {
  double low, high;
  bool is_unknown() const { return low != low && high == high; }
  bool is_nan() const { return low != low && high != high; }
  bool hangs_on_order() const { return is_unknown() && high > 0; }
  // -0.0 and 0.0 are different numbers.
  bool is_point() const {
    return (low == high && std::signbit(low) == std::signbit(high)) || is_nan();
  }
};
inline constexpr Interval unknown_interval = {unknown_low, 0};
// Any order of the same operations is allowed, and some orders give NaN or infinity where others do
// not. Rounding has the same effect on a divisor close to zero, on a factor of an infinity, on
// numbers that may be infinite, and on the exponent of a negative number.
inline constexpr Interval any_order_interval = {unknown_low, 1};

// -0.0 is less than 0.0, since division by them gives different results.
inline double lesser(double a, double b) { return b < a || (b == a && std::signbit(b)) ? b : a; }
inline double greater(double a, double b) { return b > a || (b == a && std::signbit(a)) ? b : a; }
// The smallest interval around two intervals, neither of which may be unknown.
inline Interval joined(Interval a, Interval b) {
  return {lesser(a.low, b.low), greater(a.high, b.high)};
}

inline Interval at(const Enclosure& e, std::size_t i) { return {e.low.reals[i], e.high.reals[i]}; }
inline void put(Enclosure& e, std::size_t i, Interval x) {
  e.low.reals[i] = x.low;
  e.high.reals[i] = x.high;
}

// Lowest and highest integer of a dtype (u64: as bits).
std::int64_t lowest_of(DType);
std::int64_t highest_of(DType);

// ---- rounding

struct Precision {
  double eps, tiny, normal, most;  // spacing at 1, least denormal, least normal, largest finite
};
Precision precision_of(DType);
// For sums: narrow floats are summed in f32.
inline Precision precision_of_sums(DType t) {
  return precision_of(t == DType::f64 ? t : DType::f32);
}

// Widens by the rounding error of c.units; a point that the dtype can represent stays one when
// `correct`, that is, when kernels round this operation correctly. Overflow may give infinity.
Enclosure rounded(const Enclosing& c, Enclosure e, bool correct = true);

// ---- rules in files of their own

namespace enclosing {
std::vector<Enclosure> summed(const Enclosing&);
std::vector<Enclosure> multiplied(const Enclosing&);
std::vector<Enclosure> contracted(const Enclosing&);
std::vector<Enclosure> sorted(const Enclosing&);
std::vector<Enclosure> position(const Enclosing&);
// Of an elementwise operation: known only where all operands are points.
std::vector<Enclosure> where_decided(const Enclosing&);
}  // namespace enclosing

}  // namespace hone
