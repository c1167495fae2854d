// Resize and Upsample: one axis at a time, each a gather of a few elements and their weighted sum.
#include <algorithm>
#include <cmath>

#include "base/amount.h"
#include "import/common/build.h"
#include "import/onnx/node/context.h"
#include "import/onnx/operators/list.h"

namespace hone::onnx {

namespace {

constexpr DType real = DType::f64;  // for coordinates
// Limits for axes with data-dependent scales: a multiple of their size, or a number of elements.
constexpr std::int64_t most_open_scale = 4, most_open_side = 64;

struct How {
  std::string_view mode, coordinates, nearest;
  double cubic = -0.75, outside = 0;
  bool antialias = false, exclude_outside = false;
};

// One axis: resized from `in` to `out` elements by `scale`, which need not equal out / in exactly.
struct Stretch {
  int axis = 0;
  Dim in, out;
  // The scale as a fraction of two scalars, so that a coordinate halfway between two elements is
  // computed exactly.
  Value above, below;
  std::optional<double> number;  // the scale if known
  Value from, to;                // region of interest; null: all
  bool is_identity = false;
};

Value size_of(hone::Graph& g, const Dim& d) { return size_value(g, d, real); }
Value floored(Value x) { return ops::floor(x); }
Value clamped(Value x, const Dim& size) {
  Value last = broadcast_to(size_of(x.graph(), size - Dim(1)), x.shape());
  return ops::minimum(ops::maximum(x, constant_like(x, 0)), last);
}
Value equals(Value x, double n) { return ops::eq(x, constant_like(x, n)); }

// y * reach / (length - 1); 0 if length is 1.
Value by_corners(Value y, Value length, Value reach) {
  Value one = equals(length, 1);
  Value steps = where(one, constant_like(length, 1), length - 1.0);
  return where(broadcast_to(one, y.shape()), constant_like(y, 0), y * reach / steps);
}

// The input coordinate of each output element: [out].
Value coordinates(NodeContext& c, const How& how, const Stretch& s) {
  hone::Graph& g = c.graph();
  Value y = counted(g, real, s.out), in = size_of(g, s.in), length = in * s.above / s.below;
  Value last = in - 1.0;
  if (how.coordinates == "asymmetric") return y * s.below / s.above;
  if (how.coordinates == "align_corners") return by_corners(y, length, last);
  Value half = (y + 0.5) * s.below / s.above - 0.5;
  if (how.coordinates == "half_pixel") return half;
  const bool has_tf_mode = c.opset() < 13;
  if (has_tf_mode && how.coordinates == "tf_half_pixel_for_nn")
    return (y + 0.5) * s.below / s.above;
  if (how.coordinates == "pytorch_half_pixel")
    return where(broadcast_to(equals(length, 1), y.shape()), constant_like(y, -0.5), half);
  if (how.coordinates == "half_pixel_symmetric")
    return half + in * 0.5 * (1.0 - size_of(g, s.out) / length);
  if (how.coordinates == "tf_crop_and_resize") {
    if (!s.from) c.fail("input 1 ('roi') is missing; tf_crop_and_resize requires it");
    Value reach = s.to - s.from;
    Value middle = broadcast_to(reach * last * 0.5, y.shape());
    Value at = where(broadcast_to(equals(length, 1), y.shape()), middle,
                     by_corners(y, length, reach * last));
    return at + s.from * last;
  }
  c.bad_attribute(
      "coordinate_transformation_mode", how.coordinates,
      cat("half_pixel, half_pixel_symmetric, pytorch_half_pixel, align_corners, ", "asymmetric",
          has_tf_mode ? ", tf_half_pixel_for_nn" : "", " or tf_crop_and_resize"));
}

Value nearest_index(NodeContext& c, const How& how, Value x) {
  if (how.nearest == "round_prefer_floor") return ops::ceil(x - 0.5);
  if (how.nearest == "round_prefer_ceil") return floored(x + 0.5);
  if (how.nearest == "floor") return floored(x);
  if (how.nearest == "ceil") return ops::ceil(x);
  c.bad_attribute("nearest_mode", how.nearest,
                  "round_prefer_floor, round_prefer_ceil, floor or ceil");
}

// The weight of an element by distance, measured in output elements when shrinking.
Value weight_at(const How& how, Value distance) {
  Value d = ops::abs(distance), zero = constant_like(d, 0);
  if (how.mode == "linear") return ops::maximum(1.0 - d, zero);
  const double a = how.cubic;
  Value near = ((a + 2) * d - (a + 3)) * d * d + 1.0;
  Value far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  Value within_two = where(ops::lt(d, constant_like(d, 2)), far, zero);
  return where(ops::le(d, constant_like(d, 1)), near, within_two);
}

struct Taps {
  Value index, weight;  // [out, taps]
};

// The number of contributing elements around a coordinate, and the first, from the one below it.
struct Reach {
  Dim count;
  Value start;    // f64 scalar
  Value squeeze;  // min(scale, 1), or 1 without antialias; f64 scalar
};

Reach known_reach(NodeContext& c, double plain, double squeeze) {
  constexpr double most = 4096;
  const double radius = plain / squeeze;
  if (!(radius < most))
    c.unsupported(cat("attribute 'antialias' is 1 and a scale is ", squeeze, ", expected at least ",
                      plain / most));
  const double start = std::floor(-radius) + 1;
  return {2 - 2 * static_cast<std::int64_t>(start), scalar(c.graph(), start, real),
          scalar(c.graph(), squeeze, real)};
}

// When shrinking with antialias, the number depends on the scale.
Reach reach_around(NodeContext& c, const How& how, const Stretch& s) {
  const double plain = how.mode == "linear" ? 1 : 2;
  if (!how.antialias) return known_reach(c, plain, 1);
  if (s.number) return known_reach(c, plain, std::min(*s.number, 1.0));
  // An axis of n elements shrinks to at least one, so the scale is at least half of 1 / n, as sizes
  // are rounded. An axis that shrinks to zero elements has no coordinates.
  hone::Graph& g = c.graph();
  const Dim limit = max(s.in, 1) * Dim(static_cast<std::int64_t>(2 * plain));
  Value one = scalar(g, 1, real);
  Value squeeze = ops::minimum(s.above / s.below, one);
  Value radius = ops::minimum(plain / squeeze, size_of(g, limit));
  Value start = ops::floor(-radius) + 1.0;
  return {c.measured(cast_to(2.0 - start * 2.0, DType::i64), limit * Dim(2)), start, squeeze};
}

// The elements around each coordinate.
Taps taps_around(NodeContext& c, const How& how, const Stretch& s, Value x) {
  const Reach reach = reach_around(c, how, s);
  Value base = floored(x);
  Value step = iota_value(c.graph(), real, {1, reach.count}, 1) + reach.start;
  Value at = plus(unsqueeze(base, {1}), step);  // [out, count]
  Value w = weight_at(how, minus(at, unsqueeze(x, {1})) * reach.squeeze);
  Value inside = clamped(at, s.in);
  if (how.exclude_outside) w = where_or(ops::eq(at, inside), w, 0);
  if (how.exclude_outside || how.antialias) {
    Value sum = sum_over(w, {1}, true);
    w = over(w, where(equals(sum, 0), constant_like(sum, 1), sum));
  }
  return {cast_to(inside, DType::i64), w};
}

Value stretched(NodeContext& c, const How& how, const Stretch& s, Value v) {
  const std::int64_t axis = s.axis;
  Value x = coordinates(c, how, s), y;
  if (how.mode == "nearest") {
    Value index = cast_to(clamped(nearest_index(c, how, x), s.in), DType::i64);
    y = ops::gather(Values{v, index}, {{"axis", axis}});
  } else {
    Taps taps = taps_around(c, how, s, x);
    Value picked = ops::gather(Values{v, taps.index}, {{"axis", axis}});
    Dims dims = ones(static_cast<std::size_t>(picked.rank()));
    std::copy(taps.weight.shape().dims.begin(), taps.weight.shape().dims.end(),
              dims.begin() + axis);
    y = sum_over(times(picked, cast_to(reshape_to(taps.weight, dims), v.dtype())), {s.axis + 1});
  }
  if (how.coordinates != "tf_crop_and_resize") return y;
  Value last = broadcast_to(size_of(c.graph(), s.in - Dim(1)), x.shape());
  Value outside = ops::bit_or(ops::lt(x, constant_like(x, 0)), ops::lt(last, x));
  return where(along(outside, s.axis, y.rank()), scalar(c.graph(), how.outside, y.dtype()), y);
}

struct Fraction {
  double above, below;
};

// The small fraction that an f32 scale represents, if there is one: 1.8333334 is 11/6. Denominators
// up to 1024, for which two fractions differ by more than f32 rounding.
std::optional<Fraction> fraction_of(double scale) {
  constexpr int most = 1024;
  for (int below = 1; below <= most; ++below) {
    const double above = std::round(scale * below);
    if (above >= 1 && static_cast<float>(above / below) == static_cast<float>(scale))
      return Fraction{above, static_cast<double>(below)};
  }
  return std::nullopt;
}

// floor(size * scale).
Dim scaled_size(NodeContext& c, const Dim& size, double scale) {
  constexpr double most = 0x1p53;
  const std::optional<Fraction> f = fraction_of(scale);
  if (size.is_number()) {
    const auto n = static_cast<double>(size.number());
    const double scaled = std::floor(f ? n * f->above / f->below : n * scale);
    if (scaled > most)
      c.fail(
          cat("size ", size, " times scale ", scale, " is ", scaled, ", expected at most ", most));
    return static_cast<std::int64_t>(scaled);
  }
  if (!f || f->above > most)
    c.unsupported(cat("the open size ", size, " is scaled by ", scale,
                      ", expected a simple fraction; give the size with --dim"));
  return floor_div(size * Dim(static_cast<std::int64_t>(f->above)),
                   static_cast<std::int64_t>(f->below));
}

// Sets the scale of s to a known number.
void set_scale(NodeContext& c, Stretch& s, double scale) {
  const Fraction f = fraction_of(scale).value_or(Fraction{scale, 1});
  s.number = scale;
  s.above = scalar(c.graph(), f.above, real);
  s.below = scalar(c.graph(), f.below, real);
}

std::vector<double> known_numbers(NodeContext& c, std::size_t input) {
  Array a = c.array(input);
  std::vector<double> out;
  for (std::int64_t i = 0; i < a.count(); ++i) out.push_back(a.real(i));
  return out;
}

void set_by_scales(NodeContext& c, std::vector<Stretch>& all, const std::vector<double>& scales) {
  if (scales.size() != all.size())
    c.fail(cat("input 'scales' has ", amount(scales.size(), "element", "elements"), ", expected ",
               all.size(), ", one for each axis"));
  for (std::size_t i = 0; i < all.size(); ++i) {
    Stretch& s = all[i];
    if (!(scales[i] > 0) || !std::isfinite(scales[i]))
      c.fail(cat("input 'scales' contains ", scales[i], ", expected positive numbers"));
    set_scale(c, s, scales[i]);
    s.out = scaled_size(c, s.in, scales[i]);
    s.is_identity = scales[i] == 1;
  }
}

// Data-dependent scales. As elsewhere, a size is a product in f32.
void set_by_open_scales(NodeContext& c, std::vector<Stretch>& all, Value scales) {
  const auto n = std::ssize(all);
  if (prove_equal(scales.shape().count(), n) != true)
    c.fail(
        cat("input 'scales' is ", scales.type(), ", expected ", n, " elements, one for each axis"));
  Value one = scalar(c.graph(), 1, real);
  for (std::int64_t i = 0; i < n; ++i) {
    Stretch& s = all[static_cast<std::size_t>(i)];
    Value scale = cast_to(take_axis(flatten(scales), 0, i), DType::f32);
    Value size = ops::floor(size_value(c.graph(), s.in, DType::f32) * scale);
    s.out = c.measured(cast_to(size, DType::i64), max(s.in * Dim(most_open_scale), most_open_side));
    s.above = cast_to(scale, real);
    s.below = one;
  }
}

// The scale of the axis that determines the others, as the fraction of its sizes.
void keep_open_aspect(NodeContext& c, std::vector<Stretch>& all, bool not_larger) {
  Value above = all[0].above, below = all[0].below;
  for (const Stretch& s : all) {
    Value first = s.above * below, second = above * s.below;
    Value decides = not_larger ? ops::lt(first, second) : ops::lt(second, first);
    above = ops::select(Values{decides, s.above, above});
    below = ops::select(Values{decides, s.below, below});
  }
  for (Stretch& s : all) {
    Value size = ops::floor(size_of(c.graph(), s.in) * above / below + 0.5);
    s.out = c.measured(cast_to(size, DType::i64), not_larger ? s.out : c.open_limit(all.size()));
    s.above = above;
    s.below = below;
    s.number.reset();
    s.is_identity = false;
  }
}

// One scale for all axes, so that no axis becomes larger, or smaller, than requested.
void keep_aspect(NodeContext& c, std::vector<Stretch>& all, bool not_larger) {
  std::optional<double> scale;
  for (const Stretch& s : all) {
    if (!s.number) return keep_open_aspect(c, all, not_larger);
    if (!scale || (not_larger ? *s.number < *scale : *s.number > *scale)) scale = s.number;
  }
  for (Stretch& s : all) {
    set_scale(c, s, *scale);
    s.out = static_cast<std::int64_t>(*scale * static_cast<double>(s.in.number()) + 0.5);
    s.is_identity = *scale == 1;
  }
}

void set_by_sizes(NodeContext& c, std::vector<Stretch>& all, const Dims& sizes) {
  if (sizes.size() != all.size())
    c.fail(cat("input 'sizes' has ", amount(sizes.size(), "element", "elements"), ", expected ",
               all.size(), ", one for each axis"));
  for (std::size_t i = 0; i < all.size(); ++i) {
    Stretch& s = all[i];
    s.out = sizes[i];
    s.above = size_of(c.graph(), s.out);
    s.below = size_of(c.graph(), s.in);
    if (s.out.is_number() && s.in.is_number() && s.in.number() > 0)
      s.number = static_cast<double>(s.out.number()) / static_cast<double>(s.in.number());
    s.is_identity = s.out == s.in;
  }
  std::string_view policy = c.text("keep_aspect_ratio_policy", "stretch");
  if (policy == "not_larger" || policy == "not_smaller")
    keep_aspect(c, all, policy == "not_larger");
  else if (policy != "stretch")
    c.bad_attribute("keep_aspect_ratio_policy", policy, "stretch, not_larger or not_smaller");
}

std::vector<Stretch> axes_to_stretch(NodeContext& c) {
  Value x = c.in(0);
  std::vector<Stretch> all;
  if (auto given = c.integers("axes")) {
    for (std::int64_t a : *given) all.push_back({.axis = c.axis(a, x.rank())});
  } else {
    for (int i = 0; i < x.rank(); ++i) all.push_back({.axis = i});
  }
  for (Stretch& s : all) s.in = x.shape()[s.axis];
  return all;
}

// Operand 1: the starts of all axes, then their ends, as fractions of the size.
void set_region(NodeContext& c, std::vector<Stretch>& all) {
  if (!c.has(1)) return;
  Value roi = cast_to(c.in(1), real);
  const auto n = static_cast<std::int64_t>(all.size());
  if (roi.rank() != 1 || prove_equal(roi.shape()[0], 2 * n) == false) return;
  for (std::int64_t i = 0; i < n; ++i) {
    all[static_cast<std::size_t>(i)].from = take_axis(roi, 0, i);
    all[static_cast<std::size_t>(i)].to = take_axis(roi, 0, n + i);
  }
}

Values resized(NodeContext& c, const How& how, std::vector<Stretch>& all) {
  if (how.mode != "nearest" && how.mode != "linear" && how.mode != "cubic")
    c.bad_attribute("mode", how.mode, "nearest, linear or cubic");
  if (how.antialias && how.mode == "nearest")
    c.fail("attribute 'antialias' is 1 and 'mode' is 'nearest', expected linear or cubic");
  const bool cropped = how.coordinates == "tf_crop_and_resize";
  if (cropped) set_region(c, all);
  const DType dtype = c.in(0).dtype();
  Value y = c.in(0);
  if (how.mode != "nearest") y = cast_to(y, is_float(dtype) ? sum_dtype(dtype) : DType::f32);
  for (const Stretch& s : all)
    if (cropped || !s.is_identity) y = stretched(c, how, s, y);
  if (y.dtype() != dtype && !is_float(dtype)) y = ops::round(y);
  return {cast_to(y, dtype)};
}

// Before opset 11: scales only, with the coordinates of Upsample.
Values resize_10(NodeContext& c) {
  How how{.mode = c.text("mode", "nearest"), .coordinates = "asymmetric", .nearest = "floor"};
  if (how.mode == "bilinear") how.mode = "linear";
  std::vector<Stretch> all = axes_to_stretch(c);
  std::vector<double> scales;
  if (c.opset() >= 9 && c.decides(1)) {
    set_by_open_scales(c, all, c.in(1));
    return resized(c, how, all);
  }
  if (c.opset() >= 9) {
    scales = known_numbers(c, 1);
  } else if (auto given = c.reals("scales")) {
    scales.assign(given->begin(), given->end());
  } else {  // opset 1: the last two axes
    scales.assign(all.size(), 1);
    if (scales.size() < 2)
      c.fail(
          cat("input 0 is ", c.in(0).type(), ", expected a height and a width as its last axes"));
    scales[scales.size() - 2] = c.real("height_scale", 1);
    scales[scales.size() - 1] = c.real("width_scale", 1);
  }
  set_by_scales(c, all, scales);
  return resized(c, how, all);
}

Values resize(NodeContext& c) {
  How how{.mode = c.text("mode", "nearest"),
          .coordinates = c.text("coordinate_transformation_mode", "half_pixel"),
          .nearest = c.text("nearest_mode", "round_prefer_floor"),
          .cubic = c.real("cubic_coeff_a", -0.75),
          .outside = c.real("extrapolation_value", 0),
          .antialias = c.flag("antialias"),
          .exclude_outside = c.flag("exclude_outside")};
  std::vector<Stretch> all = axes_to_stretch(c);
  const bool by_size = c.has(3) && c.in(3).shape()[0] != Dim(0);
  c.text("keep_aspect_ratio_policy", "");
  // A region may be given in all modes; scales may be empty when sizes are given.
  for (std::size_t i : {1U, 2U})
    if (c.has(i)) c.in(i);
  if (by_size)
    set_by_sizes(c, all, c.open_contents(3));
  else if (c.decides(2))
    set_by_open_scales(c, all, c.in(2));
  else
    set_by_scales(c, all, known_numbers(c, 2));
  return resized(c, how, all);
}

constexpr ImportEntry resize_table[] = {
    {"Upsample", resize_10, 1, 9},
    {"Resize", resize_10, 10, 10},
    {"Resize", resize, 11},
};

}  // namespace

std::span<const ImportEntry> resize_imports() { return resize_table; }

}  // namespace hone::onnx
