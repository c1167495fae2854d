// Derivatives of convolutions and window reductions, at random sizes.
#include <gtest/gtest.h>

#include <random>

#include "grad/gradients.h"
#include "ops/common.h"
#include "ref/evaluate.h"

namespace hone {
namespace {

using Sizes = std::vector<std::int64_t>;

struct Random {
  std::mt19937 bits;
  std::int64_t from(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(bits() % static_cast<unsigned>(high - low + 1));
  }
  Array array(const Sizes& dims, std::int64_t most = 50) {
    Array a = Array::zeros(DType::f64, dims);
    for (std::int64_t i = 0; i < a.count(); ++i)
      a.set_real(i, static_cast<double>(from(-most, most)));
    return a;
  }
};

// What a window does along one axis. The padded axis may be one element shorter than the window.
struct Axis {
  std::int64_t size, taps, stride, dilation, low, high;
};

Axis random_axis(Random& r, std::int64_t most_taps) {
  Axis a{0,
         r.from(1, most_taps),
         r.from(1, 4),
         r.from(0, 2) == 0 ? r.from(2, 3) : 1,
         r.from(0, 5),
         r.from(0, 5)};
  if (r.from(0, 2) == 0) a.low = a.high = 0;
  const std::int64_t least = a.dilation * (a.taps - 1) - a.low - a.high;
  a.size = std::max<std::int64_t>(least, 1) + r.from(0, 8);
  return a;
}

Dims each(const std::vector<Axis>& axes, std::int64_t Axis::* member) {
  Dims out;
  for (const Axis& a : axes) out.push_back(a.*member);
  return out;
}

Attrs window_attrs(const std::vector<Axis>& axes) {
  return {{"strides", each(axes, &Axis::stride)},
          {"dilations", each(axes, &Axis::dilation)},
          {"pads_low", each(axes, &Axis::low)},
          {"pads_high", each(axes, &Axis::high)}};
}

double product(const Wide& a, const Array& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < b.count(); ++i)
    sum += a.reals.at(static_cast<std::size_t>(i)) * b.real(i);
  return sum;
}

std::vector<Wide> evaluated(const Function& f, const std::vector<Array>& inputs) {
  return evaluate_wide(f, inputs, Mode::wide);
}

// A function of float operands, and its derivatives as one of the operands and dy.
struct Pair {
  Function forward, backward;
};
template <class Make>
Pair pair_of(const std::vector<Type>& operands, const Make& make) {
  Pair p;
  for (Function* f : {&p.forward, &p.backward}) {
    Values xs;
    for (const Type& t : operands) xs.push_back(f->add_param(t, cat("x", xs.size())));
    const Value y = make(xs);
    if (f == &p.forward) {
      f->add_result(y);
      continue;
    }
    const Value dy = f->add_param(y.type(), "dy");
    for (const Value& d : gradients(Values{y}, Values{dy}, xs)) f->add_result(d);
  }
  return p;
}

// A convolution is linear in each operand: (dx, x') = (dy, conv(x', w)) for every x', and so for w.
// Integers in f64, so that the sums are exact.
TEST(WindowGradients, OfConvolutionsAreTheirAdjoints) {
  Random r{std::mt19937(7)};
  for (int round = 0; round < 400; ++round) {
    const int space = static_cast<int>(r.from(1, 3));
    std::vector<Axis> axes;
    for (int i = 0; i < space; ++i) axes.push_back(random_axis(r, space == 3 ? 3 : 5));
    const std::int64_t groups = r.from(1, 3), in = r.from(1, 3), out = r.from(1, 3);
    const bool is_last = r.from(0, 1) == 1;
    const std::int64_t open = r.from(-2, space);  // an axis of x with an open size
    Sizes x = {r.from(0, 3)}, w = {groups * out, in};
    Dims x_type = {open == 0 ? Dim::symbol("n", 0, 9) : Dim(x[0])}, w_type;
    for (int i = 0; i < space; ++i) {
      const auto k = static_cast<std::size_t>(i);
      // An open size must be known to be enough for the window.
      const std::int64_t least = std::max<std::int64_t>(
          axes[k].dilation * (axes[k].taps - 1) + 1 - axes[k].low - axes[k].high, 1);
      if (open == i + 1) axes[k].size = std::max(axes[k].size, least);
      x.push_back(axes[k].size);
      w.push_back(axes[k].taps);
      x_type.push_back(open == i + 1 ? Dim::symbol("s", least, 40) : Dim(x.back()));
    }
    x.insert(is_last ? x.end() : x.begin() + 1, groups * in);
    x_type.insert(is_last ? x_type.end() : x_type.begin() + 1, Dim(groups * in));
    if (is_last) {
      std::rotate(w.begin(), w.begin() + 2, w.end());
      std::swap(w[w.size() - 2], w.back());
    }
    for (const std::int64_t n : w) w_type.push_back(n);
    Attrs attrs = window_attrs(axes);
    attrs.set("groups", groups);
    attrs.set("channels_last", std::int64_t{is_last});
    const Pair p = pair_of({Type(DType::f64, Shape(x_type)), Type(DType::f64, Shape(w_type))},
                           [&](const Values& v) { return ops::conv(v, attrs); });
    SCOPED_TRACE(print(p.forward));
    const Array a = r.array(x), b = r.array(w), a2 = r.array(x), b2 = r.array(w);
    const Array dy = r.array(evaluated(p.forward, {a, b})[0].dims);
    const std::vector<Wide> d = evaluated(p.backward, {a, b, dy});
    ASSERT_EQ(d[0].dims, x);
    ASSERT_EQ(d[1].dims, w);
    ASSERT_EQ(product(d[0], a2), product(evaluated(p.forward, {a2, b})[0], dy));
    ASSERT_EQ(product(d[1], b2), product(evaluated(p.forward, {a, b2})[0], dy));
  }
}

// dx of one window reduction, by its definition.
std::vector<double> expected(const Array& x, const Sizes& y, const Array& dy,
                             const std::vector<Axis>& axes, const std::string& kind) {
  std::vector<double> dx(static_cast<std::size_t>(x.count()));
  for (std::int64_t i = 0; i < dy.count(); ++i) {
    std::int64_t taps = 1, best = -1;
    for (const Axis& a : axes) taps *= a.taps;
    for (std::int64_t t = 0; t < taps; ++t) {
      std::int64_t at = 0, step = 1, window = t, place = i;
      bool is_inside = true;
      for (std::size_t k = axes.size(); k-- > 0; window /= axes[k].taps, place /= y[k]) {
        const std::int64_t n =
            place % y[k] * axes[k].stride + window % axes[k].taps * axes[k].dilation - axes[k].low;
        is_inside = is_inside && n >= 0 && n < axes[k].size;
        at += n * step;
        step *= axes[k].size;
      }
      if (!is_inside) continue;
      if (kind == "sum") dx[static_cast<std::size_t>(at)] += dy.real(i);
      const double more = best < 0 ? 1 : x.real(at) - x.real(best);
      if (best < 0 || (kind == "max" ? more > 0 : more < 0)) best = at;
    }
    if (kind != "sum" && best >= 0) dx[static_cast<std::size_t>(best)] += dy.real(i);
  }
  return dx;
}

// With few different numbers, so that many windows have ties: the first of them counts.
TEST(WindowGradients, OfWindowReductionsGoToTheirElements) {
  Random r{std::mt19937(8)};
  for (int round = 0; round < 400; ++round) {
    const std::string kind =
        std::array{"sum", "max", "min"}[static_cast<std::size_t>(r.from(0, 2))];
    std::vector<Axis> axes;
    Sizes x;
    for (std::int64_t i = r.from(1, 3); i-- > 0;) {
      axes.push_back(r.from(0, 3) == 0 ? Axis{r.from(1, 4), 1, 1, 1, 0, 0} : random_axis(r, 4));
      x.push_back(axes.back().size);
    }
    Attrs attrs = window_attrs(axes);
    attrs.set("kind", kind);
    attrs.set("window", each(axes, &Axis::taps));
    Dims x_type(x.begin(), x.end());
    if (r.from(0, 2) == 0) {
      const Axis& a = axes[0];
      const std::int64_t least =
          std::max<std::int64_t>(a.dilation * (a.taps - 1) + 1 - a.low - a.high, 1);
      if (x[0] >= least) x_type[0] = Dim::symbol("n", least, 40);
    }
    const Pair p = pair_of({Type(DType::f64, Shape(x_type))},
                           [&](const Values& v) { return ops::reduce_window(v, attrs); });
    SCOPED_TRACE(print(p.forward));
    const Array a = r.array(x, 3);
    const Sizes y = evaluated(p.forward, {a})[0].dims;
    const Array dy = r.array(y);
    const Wide dx = evaluated(p.backward, {a, dy})[0];
    ASSERT_EQ(dx.dims, x);
    ASSERT_EQ(dx.reals, expected(a, y, dy, axes, kind));
  }
}

// The last NaN of a window has its derivative, as in PyTorch.
TEST(WindowGradients, OfAMaximumThatIsNanGoToTheLastNan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Pair p = pair_of({Type(DType::f64, {4})}, [](const Values& v) {
    Attrs attrs = window_attrs({{4, 4, 4, 1, 0, 0}});
    attrs.set("kind", std::string("max"));
    attrs.set("window", Dims{4});
    return ops::reduce_window(v, attrs);
  });
  Array x = Array::zeros(DType::f64, {4}), dy = Array::zeros(DType::f64, {1});
  for (std::int64_t i : {1, 2}) x.set_real(i, nan);
  dy.set_real(0, 5);
  EXPECT_EQ(evaluated(p.backward, {x, dy})[0].reals, (std::vector<double>{0, 0, 5, 0}));
}

}  // namespace
}  // namespace hone
