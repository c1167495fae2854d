// Sliding windows in a differentiable form: the elements at each window position are a slice of the
// padded operand. Creates one or a few nodes per position, so suitable only for small windows.
#include <limits>

#include "ops/common.h"
#include "ops/gradients.h"

namespace hone {

namespace {

constexpr std::int64_t most_places = 1024;

// A window over some axes of a padded value.
struct Sliding {
  Axes axes;
  std::vector<std::int64_t> window, strides, dilations;
  Dims positions;  // number of window positions along each of the axes

  std::int64_t places() const {
    std::int64_t n = 1;
    for (std::int64_t w : window) n *= w;
    if (n > most_places)
      throw UserError("the derivative of a window of ", n,
                      " elements is not supported, expected at most ", most_places);
    return n;
  }
  // The offset of window element k, in row-major order, along window axis i.
  std::int64_t along(std::size_t i, std::int64_t k) const {
    for (std::size_t j = window.size(); j-- > i + 1;) k /= window[j];
    return k % window[i];
  }
  Value under(Value padded, std::int64_t k) const {
    for (std::size_t i = 0; i < axes.size(); ++i)
      padded = slice_axis(padded, axes[i], along(i, k) * dilations[i], positions[i], strides[i]);
    return padded;
  }
};

std::vector<std::int64_t> as_numbers(const Dims& dims) {
  std::vector<std::int64_t> out;
  for (const Dim& d : dims) out.push_back(d.number());
  return out;
}

Value padded_by(Value x, double edge, const Axes& axes, const Dims& low, const Dims& high) {
  Dims before(static_cast<std::size_t>(x.rank()), 0), after = before;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    before[static_cast<std::size_t>(axes[i])] = low[i];
    after[static_cast<std::size_t>(axes[i])] = high[i];
  }
  return pad_with(x, scalar(x.graph(), edge, x.dtype()), before, after);
}

}  // namespace

// Elements of a window that share its maximum share its derivative.
Values grads::window_of_slices(const Call& c) {
  const Value x = c.operands[0];
  const std::string& kind = c.attrs.get<std::string>("kind");
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double edge = kind == "sum" ? 0 : kind == "max" ? -infinity : infinity;
  const Sliding s{all_axes(x.rank()), as_numbers(c.attrs.dims("window")),
                  as_numbers(c.attrs.dims("strides")), as_numbers(c.attrs.dims("dilations")),
                  c.results[0].shape.dims};
  const Value padded =
      padded_by(x, edge, s.axes, c.attrs.dims("pads_low"), c.attrs.dims("pads_high"));
  Values parts;
  for (std::int64_t k = 0; k < s.places(); ++k) parts.push_back(unsqueeze(s.under(padded, k), {0}));
  const Value all = ops::concat(parts, {{"axis", std::int64_t{0}}});
  const Op& join = kind == "sum"   ? ops::reduce_sum
                   : kind == "max" ? ops::reduce_max
                                   : ops::reduce_min;
  return {reduce_axes(join, all, {0})};
}

}  // namespace hone
