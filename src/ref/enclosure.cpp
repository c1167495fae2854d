#include "ref/enclosure.h"

#include <algorithm>
#include <cmath>

#include "ops/expand.h"
#include "ops/ops.h"
#include "ref/enclosure_rule.h"

namespace hone {

bool Enclosure::is_point() const {
  for (std::size_t i = 0; i < low.reals.size(); ++i)
    if (!Interval{low.reals[i], high.reals[i]}.is_point()) return false;
  return low.integers == high.integers;
}

std::int64_t lowest_of(DType t) {
  if (!is_signed(t)) return 0;
  return static_cast<std::int64_t>(~std::uint64_t{0} << (bit_size(t) - 1));
}

std::int64_t highest_of(DType t) {
  if (t == DType::b1) return 1;
  if (t == DType::u64) return -1;
  return static_cast<std::int64_t>(~std::uint64_t{0} >>
                                   (64 - bit_size(t) + (is_signed(t) ? 1 : 0)));
}

std::vector<Wide> Enclosing::eval(const std::vector<const Wide*>& operands) const {
  if (!op.eval) return host_results(op, attrs, operands, types, size);
  const std::function<std::vector<Wide>(const Function&, std::vector<Wide>)> no_bodies;
  return op.eval({attrs, operands, types, size, no_bodies});
}

Sizes Enclosing::dims(std::size_t result) const {
  Sizes out;
  for (const Dim& d : types[result].shape.dims) out.push_back(size(d));
  return out;
}

Enclosure Enclosing::unknown(std::size_t result) const {
  const DType t = types[result].dtype;
  Enclosure e{Wide(t, dims(result)), Wide(t, dims(result))};
  std::ranges::fill(e.low.reals, unknown_low);
  std::ranges::fill(e.low.integers, lowest_of(t));
  std::ranges::fill(e.high.integers, highest_of(t));
  return e;
}

namespace {

bool all_points(const std::vector<const Enclosure*>& in) {
  return std::ranges::all_of(in, [](const Enclosure* e) { return e->is_point(); });
}

std::vector<const Wide*> lows(const std::vector<const Enclosure*>& in) {
  std::vector<const Wide*> out;
  for (const Enclosure* e : in) out.push_back(&e->low);
  return out;
}

std::vector<Enclosure> of_points(const Enclosing& c) {
  std::vector<Enclosure> out;
  for (Wide& w : c.eval(lows(c.in))) out.push_back({w, w});
  return out;
}

std::vector<Enclosure> all_unknown(const Enclosing& c) {
  std::vector<Enclosure> out;
  for (std::size_t i = 0; i < c.types.size(); ++i) out.push_back(c.unknown(i));
  return out;
}

}  // namespace

std::vector<Enclosure> enclosing::where_decided(const Enclosing& c) {
  std::vector<Enclosure> out = of_points(c);
  const Enclosure nothing = c.unknown();
  const std::size_t count = static_cast<std::size_t>(out[0].low.count());
  for (std::size_t i = 0; i < count; ++i) {
    bool decided = true;
    for (const Enclosure* e : c.in)
      decided = decided && (e->low.is_real() ? at(*e, i).is_point()
                                             : e->low.integers[i] == e->high.integers[i]);
    if (decided) continue;
    if (out[0].low.is_real())
      put(out[0], i, unknown_interval);
    else
      out[0].low.integers[i] = nothing.low.integers[i],
      out[0].high.integers[i] = nothing.high.integers[i];
  }
  return out;
}

namespace {

// ---- integers as f64, which holds them up to 2^53

constexpr double most_whole = 0x1p52;

Wide as_reals(const Wide& w) {
  Wide out(DType::f64, w.dims);
  for (std::size_t i = 0; i < out.reals.size(); ++i)
    out.reals[i] = w.is_real() ? w.reals[i] : integer_to_real(w.dtype, w.integers[i]);
  return out;
}

bool is_representable(const Wide& w) {
  return std::ranges::all_of(w.reals, [](double x) { return std::fabs(x) <= most_whole; });
}

Enclosure as_integers(const Enclosure& e, DType t) {
  Enclosure out{Wide(t, e.dims()), Wide(t, e.dims())};
  const double least = std::max(integer_to_real(t, lowest_of(t)), -most_whole),
               most = std::min(integer_to_real(t, highest_of(t)), most_whole);
  for (std::size_t i = 0; i < e.low.reals.size(); ++i) {
    const auto [low, high] = at(e, i);
    const bool fits = low >= least && high <= most;
    out.low.integers[i] = fits ? static_cast<std::int64_t>(low) : lowest_of(t);
    out.high.integers[i] = fits ? static_cast<std::int64_t>(high) : highest_of(t);
  }
  return out;
}

std::vector<Enclosure> by_reals(const Enclosing& c, EnclosureRule rule) {
  std::vector<Enclosure> in;
  for (const Enclosure* e : c.in) {
    const bool is_index = &c.op == &ops::scatter && in.size() == 1;
    in.push_back(is_index ? *e : Enclosure{as_reals(e->low), as_reals(e->high)});
    if (!is_representable(in.back().low) || !is_representable(in.back().high))
      return all_unknown(c);
  }
  Enclosing real{c.op, c.attrs, {}, c.types, c.size, 0, true};
  for (std::size_t i = 0; i < in.size(); ++i)
    // If both operands are the same value, they stay the same.
    real.in.push_back(i > 0 && c.in[i] == c.in[0] ? real.in[0] : &in[i]);
  for (Type& t : real.types) t.dtype = DType::f64;
  std::vector<Enclosure> out = rule(real);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = as_integers(out[i], c.types[i].dtype);
  return out;
}

std::vector<Enclosure> one_node(Enclosing c) {
  const EnclosureRow* row = enclosure_row(c.op);
  const bool real = is_float(c.types[0].dtype);
  const bool points = all_points(c.in);
  const bool are_numbers = !row || !row->for_points;
  if (points && are_numbers && (!real || !row || (c.op.ulps == 0 && !row->either_zero)))
    return of_points(c);
  if (!row || (!real && row->integers == Whole::refused))
    return c.op.kind == OpKind::elementwise ? enclosing::where_decided(c) : all_unknown(c);
  if (!real && row->integers == Whole::as_real) return by_reals(c, row->rule);
  c.units = c.op.ulps;
  return row->rule(c);
}

// Normalises the representation of unknown floats.
void tidy(Enclosure& e) {
  for (std::size_t i = 0; i < e.low.reals.size(); ++i) {
    const Interval x = at(e, i);
    if (x.low <= x.high && x.low > -INFINITY && x.high < INFINITY) continue;
    if (x.is_nan() || x.is_unknown()) continue;
    if (std::isnan(x.high) || (x.low == -INFINITY && x.high == INFINITY))
      put(e, i, unknown_interval);
    else
      HONE_ASSERT(x.low <= x.high, "an enclosure from ", x.low, " to ", x.high);
  }
}

// Widens by one rounding error: a kernel may compute with an operand that it rounded itself, also
// where the rounding here is exact.
Enclosure once_more_rounded(Enclosure e) {
  const Precision round = precision_of(e.dtype());
  for (std::size_t i = 0; i < e.low.reals.size(); ++i) {
    const Interval x = at(e, i);
    if (std::isfinite(x.low) && std::isfinite(x.high))
      put(e, i, {x.low - round.eps * std::fabs(x.low), x.high + round.eps * std::fabs(x.high)});
  }
  return e;
}

// The union of both, as intervals.
Enclosure hull(Enclosure a, const Enclosure& b) {
  const DType t = a.dtype();
  for (std::size_t i = 0; i < a.low.reals.size(); ++i) {
    const Interval x = at(a, i), y = at(b, i);
    if (x.is_nan() && y.is_nan()) continue;
    const bool open = x.low != x.low || y.low != y.low;
    put(a, i, open ? unknown_interval : joined(x, y));
  }
  for (std::size_t i = 0; i < a.low.integers.size(); ++i) {
    a.low.integers[i] = std::min(a.low.integers[i], b.low.integers[i],
                                 [t](auto p, auto q) { return integer_less(t, p, q); });
    a.high.integers[i] = std::max(a.high.integers[i], b.high.integers[i],
                                  [t](auto p, auto q) { return integer_less(t, p, q); });
  }
  return a;
}

// ---- steps that rounding decides

// Whether some element is one of several distinct values.
bool is_open_choice(const Enclosing& c) {
  const Enclosure &go = *c.in[0], &x = *c.in[1], &y = *c.in[2];
  if (!x.low.is_real()) return go.low.integers != go.high.integers;
  for (std::size_t i = 0; i < go.low.integers.size(); ++i) {
    const Interval a = at(x, i), b = at(y, i);
    const bool meet = a.low <= b.high && b.low <= a.high;
    if (go.low.integers[i] != go.high.integers[i] && !meet) return true;
  }
  return false;
}

// Whether operands depend on a step. A select depends on its condition only if its outcomes differ:
// leaky_relu is continuous.
bool hangs_on_step(const Enclosing& c) {
  const bool chooses = &c.op == &ops::select;
  return (chooses && is_open_choice(c)) ||
         std::any_of(c.in.begin() + (chooses ? 1 : 0), c.in.end(),
                     [](const Enclosure* e) { return e->hangs_on_step; });
}

// Whether a small change of the operands makes a result jump.
bool is_open_step(const Op& op, const Enclosure& e) {
  static constexpr const Op* steps[] = {&ops::floor, &ops::ceil, &ops::round,
                                        &ops::trunc, &ops::sign, &ops::rem};
  return e.low.is_real() ? std::ranges::count(steps, &op) > 0 && !e.is_point()
                         : e.low.integers != e.high.integers;
}

class Encloser {
 public:
  std::vector<Enclosure> call(const Function& f, std::vector<Enclosure> inputs,
                              const Sizing& outer) {
    std::vector<std::vector<std::int64_t>> dims;
    for (const Enclosure& e : inputs) dims.push_back(e.dims());
    const Sizing sizing = bind_sizes(f, dims, outer);
    const Function core = expand_composites(f);
    check_sizes(core, sizing);
    const Graph& g = core.graph();
    const std::vector<NodeId> order = live_nodes(core);
    const std::vector<std::size_t> last_use = last_uses(core, order);
    std::vector<std::vector<Enclosure>> done(g.node_count());
    for (std::size_t i = 0; i < order.size(); ++i) {
      const NodeId n = order[i];
      if (&g.op(n) == &ops::param)
        done[n] = {inputs[static_cast<std::size_t>(g.attrs(n).integer("index"))]};
      else
        done[n] = node(g, n, done, sizing);
      for (Enclosure& e : done[n]) tidy(e);
      for (const Value& v : g.operands(n))
        if (last_use[v.node()] == i) done[v.node()].clear();
    }
    std::vector<Enclosure> out;
    for (const Function::Result& r : core.results())
      out.push_back(done[r.value.node()][r.value.index()]);
    return out;
  }

 private:
  // By node, the position in the order after which nothing reads it.
  static std::vector<std::size_t> last_uses(const Function& f, const std::vector<NodeId>& order) {
    std::vector<std::size_t> last(f.graph().node_count(), 0);
    for (std::size_t i = 0; i < order.size(); ++i)
      for (const Value& v : f.graph().operands(order[i])) last[v.node()] = i;
    for (const Function::Result& r : f.results()) last[r.value.node()] = order.size();
    return last;
  }

  std::vector<Enclosure> node(const Graph& g, NodeId n,
                              const std::vector<std::vector<Enclosure>>& done,
                              const Sizing& sizing) {
    const std::function<std::int64_t(const Dim&)> size = [&](const Dim& d) {
      return size_of(d, sizing);
    };
    Enclosing c{g.op(n), g.attrs(n), {}, g.result_types(n), size};
    for (const Value& v : g.operands(n)) c.in.push_back(&done[v.node()][v.index()]);
    Enclosure rounded_again;
    if (&c.op == &ops::exp && g.operands(n)[0].op().kind == OpKind::elementwise) {
      rounded_again = once_more_rounded(*c.in[0]);
      c.in[0] = &rounded_again;
    }
    std::vector<Enclosure> out = &c.op == &ops::if_else      ? branch(c, sizing)
                                 : &c.op == &ops::while_loop ? loop(c, sizing)
                                                             : one_node(c);
    const bool operand_hangs = hangs_on_step(c);
    for (Enclosure& e : out)
      e.hangs_on_step = e.hangs_on_step || operand_hangs || is_open_step(c.op, e);
    return out;
  }

  static std::vector<Enclosure> copies(const Enclosing& c, std::size_t from) {
    std::vector<Enclosure> out;
    for (std::size_t i = from; i < c.in.size(); ++i) out.push_back(*c.in[i]);
    return out;
  }

  // If rounding decides the condition: either branch. One that reaches `refuse` adds nothing.
  std::vector<Enclosure> branch(const Enclosing& c, const Sizing& sizing) {
    const Function &yes = *c.attrs.get<FunctionRef>("then"),
                   &no = *c.attrs.get<FunctionRef>("else");
    const std::int64_t low = c.in[0]->low.integers[0], high = c.in[0]->high.integers[0];
    if (low == high) return call(low ? yes : no, copies(c, 1), sizing);
    try {
      std::vector<Enclosure> out = call(yes, copies(c, 1), sizing),
                             other = call(no, copies(c, 1), sizing);
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = hull(std::move(out[i]), other[i]);
      return out;
    } catch (const UserError&) {
      return all_unknown(c);
    }
  }

  std::vector<Enclosure> loop(const Enclosing& c, const Sizing& sizing) {
    const Function &condition = *c.attrs.get<FunctionRef>("condition"),
                   &body = *c.attrs.get<FunctionRef>("body");
    std::vector<Enclosure> values = copies(c, 0);
    for (;;) {
      const Enclosure go = call(condition, values, sizing).at(0);
      if (go.low.integers[0] != go.high.integers[0]) {
        std::vector<Enclosure> out = all_unknown(c);
        for (Enclosure& e : out) e.hangs_on_step = true;
        return out;
      }
      if (go.low.integers[0] == 0) break;
      std::vector<Enclosure> next = call(body, values, sizing);
      std::move(next.begin(), next.end(), values.begin());
    }
    values.resize(c.types.size());
    return values;
  }
};

}  // namespace

std::vector<Enclosure> enclose(const Function& f, std::span<const Array> inputs) {
  std::vector<Enclosure> in;
  for (const Array& a : inputs) in.push_back({widen(a), widen(a)});
  return Encloser().call(f, std::move(in), {});
}

Comparison accept(const Array& got, const Enclosure& e) { return accept(widen(got), e); }

Comparison accept(const Wide& got, const Enclosure& e) {
  Comparison c;
  if (got.dtype != e.dtype() || got.dims != e.dims()) {
    c.ok = false;
    c.problem = cat("got ", got.dtype, Shape(dims_of(got.dims)), ", expected ", e.dtype(),
                    Shape(dims_of(e.dims())));
    return c;
  }
  for (std::size_t i = 0; i < got.reals.size(); ++i) {
    const Interval x = at(e, i);
    const double g = got.reals[i];
    const double low = round_real(got.dtype, x.low), high = round_real(got.dtype, x.high);
    if (x.is_unknown())
      ++c.undecided;
    else if (x.is_nan() ? !std::isnan(g) : !(low <= g && g <= high))
      c.differs(i, g, g < low ? low : high);
    if (std::isfinite(high) && std::isfinite(low)) c.limit = std::max(c.limit, high - low);
  }
  for (std::size_t i = 0; i < got.integers.size(); ++i) {
    const std::int64_t g = got.integers[i], low = e.low.integers[i], high = e.high.integers[i];
    c.undecided += low != high;
    if (integer_less(got.dtype, g, low) || integer_less(got.dtype, high, g))
      c.differs(i, integer_to_real(got.dtype, g), integer_to_real(got.dtype, low));
  }
  return c;
}

}  // namespace hone
