// What an operation does to intervals. Internal to ref.
#pragma once

#include <cmath>
#include <limits>

#include "ops/eval.h"
#include "ref/enclosure_value.h"

namespace hone {

// One node. With `exact`, integers stand as f64 and nothing rounds.
struct Enclosing {
  const Op& op;
  const Attrs& attrs;
  std::vector<const Enclosure*> in;
  std::vector<Type> types;
  const std::function<std::int64_t(const Dim&)>& size;
  double units = 0;  // by how many units in the last place a kernel's result may be off
  bool exact = false;

  // The operation on numbers.
  std::vector<Wide> eval(const std::vector<const Wide*>& operands) const;
  Sizes dims(std::size_t result = 0) const;
  // Of a result of which nothing is known.
  Enclosure unknown(std::size_t result = 0) const;
};

using EnclosureRule = std::vector<Enclosure> (*)(const Enclosing&);

// How a rule takes integers: as they are, as f64, or not at all.
enum class Whole : std::uint8_t { plain, as_real, refused };

struct EnclosureRow {
  const Op* op;
  EnclosureRule rule;
  Whole integers = Whole::plain;
  bool either_zero = false;  // of -0.0 and 0.0 a kernel returns either
  bool for_points = false;   // the rule applies also where all operands are points
};
// Null: the operation is known on points only.
const EnclosureRow* enclosure_row(const Op&);

// ---- one element

inline constexpr double unknown_low = std::numeric_limits<double>::quiet_NaN();
struct Interval {
  double low, high;
  bool is_unknown() const { return low != low && high == high; }
  bool is_nan() const { return low != low && high != high; }
  bool hangs_on_order() const { return is_unknown() && high > 0; }
  // -0.0 and 0.0 are two numbers.
  bool is_point() const {
    return (low == high && std::signbit(low) == std::signbit(high)) || is_nan();
  }
};
inline constexpr Interval unknown_interval = {unknown_low, 0};
// Every order of the same operations is right, and some give NaN or infinity where others do not.
// Rounding does so to a divisor next to zero, to what an infinity is multiplied by, to numbers that
// may be infinite, and to the exponent of a negative number.
inline constexpr Interval any_order_interval = {unknown_low, 1};

// -0.0 is less than 0.0: what divides by them tells them apart.
inline double lesser(double a, double b) { return b < a || (b == a && std::signbit(b)) ? b : a; }
inline double greater(double a, double b) { return b > a || (b == a && std::signbit(a)) ? b : a; }
// The smallest interval around two, neither of which may be unknown.
inline Interval joined(Interval a, Interval b) {
  return {lesser(a.low, b.low), greater(a.high, b.high)};
}

inline Interval at(const Enclosure& e, std::size_t i) { return {e.low.reals[i], e.high.reals[i]}; }
inline void put(Enclosure& e, std::size_t i, Interval x) {
  e.low.reals[i] = x.low;
  e.high.reals[i] = x.high;
}

// Lowest and highest integer of a dtype (u64 as its bits).
std::int64_t lowest_of(DType);
std::int64_t highest_of(DType);

// ---- rounding

struct Precision {
  double eps, tiny, normal, most;  // spacing at 1, least denormal, least normal, largest finite
};
Precision precision_of(DType);
// Of sums: narrow floats are summed in f32.
inline Precision precision_of_sums(DType t) {
  return precision_of(t == DType::f64 ? t : DType::f32);
}

// Widens by the rounding of c.units; a point that the dtype can hold stays one when `correct`, that
// is, when kernels round this operation correctly. Too large numbers may be infinite.
Enclosure rounded(const Enclosing& c, Enclosure e, bool correct = true);

// ---- the rules that have files of their own

namespace enclosing {
std::vector<Enclosure> summed(const Enclosing&);
std::vector<Enclosure> multiplied(const Enclosing&);
std::vector<Enclosure> contracted(const Enclosing&);
std::vector<Enclosure> sorted(const Enclosing&);
std::vector<Enclosure> position(const Enclosing&);
}  // namespace enclosing

}  // namespace hone
