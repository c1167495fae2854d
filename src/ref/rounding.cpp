#include "ref/rounding.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "ops/common.h"
#include "ops/contraction.h"
#include "ops/expand.h"
#include "ref/compare.h"

namespace hone {

namespace {

// Core ops whose float results are rounded.
bool rounds(const Op& op, const Attrs& attrs) {
  if (op.ulps == 0) return false;
  if (attrs.has("kind")) {
    const auto& kind = attrs.get<std::string>("kind");
    return kind == "sum" || kind == "prod" || kind == "add" || kind == "mul";
  }
  return op.kind != OpKind::leaf && op.kind != OpKind::movement && op.kind != OpKind::control;
}

class Perturber {
 public:
  explicit Perturber(int phase) : phase_(phase) {}

  Function operator()(const Function& f) {
    const Function core = expand_composites(f);
    std::vector<bool> rounded(core.graph().node_count(), false);
    Function out = transform(core, [&](NodeId n, Copier& copy, Function& to) -> Values {
      const Graph& g = core.graph();
      if (g.op(n).kind == OpKind::leaf) return {};
      // A cast value is exactly that number (docs/numbers.md).
      const bool is_cast = &g.op(n) == &ops::cast;
      const bool here = !is_cast && rounds(g.op(n), g.attrs(n));
      rounded[n] = here || g.op(n).kind == OpKind::control;
      Values operands;
      for (const Value& v : g.operands(n)) {
        Value x = copy(v);
        const bool is_again = !operands.empty() && v == g.operands(n)[0];
        operands.push_back(is_again ? operands[0]  // a number equals itself
                           : here || rounded[v.node()]
                               ? noisy(x, std::max(g.op(v.node()).ulps, 1.0))
                               : x);
        // Moved or compared values are as uncertain as their operands.
        rounded[n] = rounded[n] || (rounded[v.node()] && !is_cast);
      }
      Attrs attrs = bodies(g.attrs(n));
      if (&g.op(n) == &ops::conv && phase_ % 2 == 1) pad_first(operands[0], attrs);
      Value y = to.graph().intern(g.op(n), operands, attrs);
      Values results;
      for (std::size_t i = 0; i < y.result_count(); ++i) results.push_back(y.result(i));
      return results;
    });
    return out;
  }

 private:
  Attrs bodies(const Attrs& attrs) {
    Attrs out = attrs;
    for (const Attrs::Entry& e : attrs.entries())
      if (const auto* body = std::get_if<FunctionRef>(&e.second))
        out.set(e.first, FunctionRef(std::make_shared<const Function>((*this)(**body))));
    return out;
  }

  // A kernel may multiply weights by zeros beyond the border (docs/numbers.md), which matters for
  // infinite weights.
  static void pad_first(Value& x, Attrs& attrs) {
    const ConvAxes axes = conv_axes(attrs, x.rank());
    Dims low(static_cast<std::size_t>(x.rank()), 0), high = low;
    for (std::size_t i = 0; i < axes.space.size(); ++i) {
      low[static_cast<std::size_t>(axes.space[i])] = attrs.dims("pads_low")[i];
      high[static_cast<std::size_t>(axes.space[i])] = attrs.dims("pads_high")[i];
    }
    x = pad_with(x, scalar(x.graph(), 0, x.dtype()), low, high);
    for (AttrName name : {AttrName("pads_low"), AttrName("pads_high")})
      attrs.set(name, Dims(axes.space.size(), 0));
  }

  // x * (1 + error), up to `units` units in the last place. The product is computed in f64, where 1
  // + eps is representable for every dtype.
  Value noisy(Value x, double units) {
    if (!is_float(x.dtype())) return x;
    const double most = units * epsilon_of(x.dtype());
    const Value wide = cast_to(x, DType::f64);
    ++uses_;
    return cast_to(phase_ % 3 == 2 ? wide * (1.0 + most * sign()) : wide * each(x, most),
                   x.dtype());
  }

  // 1 + most * sin(a * i + b) for the i-th element of a tensor like x.
  Value each(Value x, double most) const {
    Value i = iota_value(x.graph(), DType::f64, {x.shape().count()}, 0);
    Value wave = ops::sin(i * 2.3 + static_cast<double>(phase_ * 131 + 17 * uses_));
    return reshape_to(wave * most + 1.0, x.shape().dims);
  }

  // Equal numbers are rounded equally, so the errors of a whole tensor may have the same sign and
  // add up. In every other such evaluation all operations have the same: where a kernel always
  // rounds down, its errors add up along a chain.
  double sign() const {
    if (phase_ % 6 == 5) return phase_ % 12 == 5 ? 1 : -1;
    const auto mixed = static_cast<std::uint64_t>(phase_ * 131 + uses_) * 0x9e3779b97f4a7c15;
    return mixed >> 63 ? 1 : -1;
  }

  int phase_;
  int uses_ = 0;
};

bool special(double x) { return !std::isfinite(x); }

bool differ(double a, double b) { return a != b && !(std::isnan(a) && std::isnan(b)); }

bool explains_integers(const Wide& got, const Wide& wide, std::span<const Wide* const> others) {
  for (std::size_t i = 0; i < wide.integers.size(); ++i) {
    bool agree = true;
    for (const Wide* o : others) agree = agree && o->integers[i] == wide.integers[i];
    if (agree && got.integers[i] != wide.integers[i]) return false;
  }
  return true;
}

// If the value is NaN or infinite in any evaluation, it is decided only if all of them agree.
bool explains_special(double got, double wide, std::size_t i, std::span<const Wide* const> others) {
  bool agree = true;
  for (const Wide* o : others)
    agree = agree && (special(wide) ? !differ(o->reals[i], wide) : !special(o->reals[i]));
  return !agree || !differ(got, wide);
}

bool explains_reals(const Wide& got, const Wide& wide, std::span<const Wide* const> others,
                    const std::vector<bool>& left_out) {
  const auto is_left_out = [&](std::size_t i) { return !left_out.empty() && left_out[i]; };
  const std::size_t n = wide.reals.size();
  std::vector<double> distance(n, 0);
  double widest = 0, most = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (special(wide.reals[i]) || is_left_out(i)) continue;
    most = std::max(most, std::fabs(wide.reals[i]));
    for (const Wide* o : others)
      if (!special(o->reals[i]))
        distance[i] = std::max(distance[i], std::fabs(o->reals[i] - wide.reals[i]));
    widest = std::max(widest, distance[i]);
  }
  const double rule = 16 * epsilon_of(got.dtype) * most;
  std::size_t uncertain = 0, off = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (is_left_out(i)) continue;
    const double w = round_real(wide.dtype, wide.reals[i]);
    const bool any_special = special(w) || std::any_of(others.begin(), others.end(), [&](auto* o) {
                               return special(o->reals[i]);
                             });
    if (any_special) {
      if (!explains_special(got.reals[i], w, i, others)) return false;
      continue;
    }
    const double error = std::fabs(got.reals[i] - wide.reals[i]);
    if (!(error <= 4 * widest + rule)) return false;
    uncertain += distance[i] > widest / 32;
    off += error > widest / 8 + rule;
  }
  return off <= 4 * uncertain + 2;
}

}  // namespace

void Rounding::perturb(int phases) {
  for (int p = static_cast<int>(perturbed_.size()); p < phases; ++p) {
    std::vector<Wide> made = evaluate_(Perturber(p)(function_));
    if (made.empty()) return;
    perturbed_.push_back(std::move(made));
  }
}

std::vector<const Wide*> Rounding::evaluations(std::size_t r) const {
  std::vector<const Wide*> out = {&strict_[r]};
  for (const auto& p : perturbed_) out.push_back(&p[r]);
  return out;
}

bool Rounding::has_open_sizes(std::size_t r) const {
  return std::ranges::any_of(evaluations(r),
                             [&](const Wide* o) { return o->dims != wide_[r].dims; });
}

bool Rounding::decides_sizes(std::size_t r) {
  for (const int phases : {few, all}) {
    perturb(phases);
    if (has_open_sizes(r)) return true;
  }
  return false;
}

// Applies the rule again, with the largest distance of any perturbed evaluation in place of that of
// `strict`; elements on which all evaluations agree count as decided. If that distance comes from a
// few elements next to a tie or a step, only a few may be that far off.
bool Rounding::explains(std::size_t r, const Wide& got, const std::vector<bool>& left_out,
                        int most) {
  for (const int phases : {few, all}) {
    perturb(std::min(phases, most));
    if (has_open_sizes(r)) return true;
    const std::vector<const Wide*> others = evaluations(r);
    if (got.is_real() ? explains_reals(got, wide_[r], others, left_out)
                      : explains_integers(got, wide_[r], others))
      return true;
    if (most <= phases) break;
  }
  return false;
}

bool Rounding::decides_special(std::size_t r, std::size_t i) {
  for (const int phases : {few, all}) {
    perturb(phases);
    if (has_open_sizes(r)) return true;
    const double w = wide_[r].reals[i];
    for (const Wide* o : evaluations(r))
      if (special(w) ? differ(o->reals[i], w) : special(o->reals[i])) return true;
  }
  return false;
}

bool Rounding::spans(std::size_t r, const Array& got, double atol, double rtol) {
  const Wide numbers = widen(got);
  const auto is_inside = [&](std::size_t i) {
    const double w = wide_[r].reals[i];
    double low = w, high = w;
    for (const Wide* o : evaluations(r)) {
      low = std::min(low, o->reals[i]);
      high = std::max(high, o->reals[i]);
    }
    const double more = (high - low) / 2 + atol + rtol * std::fabs(w);
    return numbers.reals[i] >= low - more && numbers.reals[i] <= high + more;
  };
  for (const int phases : {few, all}) {
    perturb(phases);
    if (has_open_sizes(r)) return true;
    bool all = true;
    for (std::size_t i = 0; all && i < numbers.reals.size(); ++i) all = is_inside(i);
    if (all) return true;
  }
  return false;
}

std::vector<bool> Rounding::noise(std::size_t r) {
  perturb(all);
  const bool is_all = has_open_sizes(r);
  std::vector<bool> out(wide_[r].reals.size(), is_all);
  for (std::size_t i = 0; i < out.size() && !is_all; ++i) {
    double low = wide_[r].reals[i], high = low;
    bool is_finite = !special(low);
    for (const Wide* o : evaluations(r)) {
      low = std::min(low, o->reals[i]);
      high = std::max(high, o->reals[i]);
      is_finite = is_finite && !special(o->reals[i]);
    }
    out[i] = is_finite && 2 * (high - low) > std::max(std::fabs(low), std::fabs(high));
  }
  return out;
}

}  // namespace hone
