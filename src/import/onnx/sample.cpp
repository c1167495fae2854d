#include "import/onnx/sample.h"

#include "import/onnx/build.h"
#include "import/onnx/context.h"

namespace hone::onnx {

namespace {

Value size_like(Value x, const Dim& size) {
  return broadcast_to(size_value(x.graph(), size, x.dtype()), x.shape());
}
Value clamped(Value x, Value low, Value high) { return ops::minimum(ops::maximum(x, low), high); }

// x mirrored at low and high until it lies between them.
Value mirrored(Value x, Value low, Value high) {
  Value range = high - low, zero = constant_like(x, 0);
  Value flat = ops::le(range, zero);  // a single element
  Value safe = where(flat, constant_like(x, 1), range);
  Value away = ops::abs(x - low);
  Value turn = away - ops::floor(away / (safe * 2.0)) * safe * 2.0;
  Value back = where(ops::lt(safe, turn), safe * 2.0 - turn, turn);
  return where(flat, low, low + back);
}

Value inside(const SampledAxis& a, Value x) {
  Value zero = constant_like(x, 0), last = size_like(x, a.size) - 1.0;
  if (a.outside == Outside::border) return clamped(x, zero, last);
  if (a.outside != Outside::reflection) return x;
  const double edge = a.corners ? 0 : 0.5;
  return mirrored(x, zero - edge, last + edge);
}

// Keys' cubic convolution with a = -0.75, at distances -1 - t, -t, 1 - t and 2 - t.
Value cubic_weight(Value distance) {
  constexpr double a = -0.75;
  Value d = ops::abs(distance);
  Value near = ((a + 2) * d - (a + 3)) * d * d + 1.0;
  Value far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return where(ops::le(d, constant_like(d, 1)), near, far);
}

struct Samples {
  Value index, weight, exists;  // [n, q, k]; all of them real
};

Samples samples_of(const SampledAxis& a) {
  Value x = unsqueeze(a.at, {2});
  hone::Graph& g = x.graph();
  if (a.how == Interpolation::nearest) x = ops::round(x);
  x = inside(a, x);
  const std::int64_t count = a.how == Interpolation::nearest  ? 1
                             : a.how == Interpolation::linear ? 2
                                                              : 4;
  Value base = a.how == Interpolation::nearest ? ops::round(x) : ops::floor(x);
  Value step = iota_value(g, x.dtype(), {1, 1, count}, 2) - (count == 4 ? 1.0 : 0.0);
  Value at = plus(base, step), distance = minus(at, x);
  Value weight = constant_like(at, 1);
  if (a.how == Interpolation::linear) weight = 1.0 - ops::abs(distance);
  if (a.how == Interpolation::cubic) weight = cubic_weight(distance);
  if (a.outside == Outside::reflection) at = ops::trunc(inside(a, at));
  Value kept = clamped(at, constant_like(at, 0), size_like(at, a.size) - 1.0);
  Value exists = ops::eq(at, kept);
  // NaN is nowhere; as an index it is the first element.
  if (a.outside != Outside::zeros) exists = ops::eq(at, at);
  return {kept, weight, exists};
}

// [n, q, k] along axis 2 + i of [n, q, k0, k1, ...].
Value spread(Value v, std::size_t i, std::size_t axes) {
  Dims dims = ones(2 + axes);
  dims[0] = v.shape()[0];
  dims[1] = v.shape()[1];
  dims[2 + i] = v.shape()[2];
  return reshape_to(v, dims);
}

}  // namespace

Neighbours neighbours(Value x, const std::vector<SampledAxis>& axes) {
  Value index, weight, exists;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    Samples t = samples_of(axes[i]);
    Value at = spread(cast_to(t.index, DType::i64), i, axes.size());
    Value w = spread(t.weight, i, axes.size()), e = spread(t.exists, i, axes.size());
    if (!index) {
      index = at, weight = w, exists = e;
      continue;
    }
    Value size = size_value(x.graph(), axes[i].size, DType::i64);
    index = plus(index * broadcast_to(size, index.shape()), at);
    weight = times(weight, w);
    exists = both(exists, e);
  }
  const Shape all = broadcast_shape(x.graph(), index.shape(), weight.shape(), "sample");
  Dim count = 1;
  for (int i = 2; i < all.rank(); ++i) count = count * all[i];
  const Dim &n = all[0], &q = all[1];
  auto flat = [&](Value v) { return reshape_to(broadcast_to(v, all), {n, 1, q * count}); };
  Value picked = take_along(x, flat(index), 2);
  Value values = reshape_to(where_or(flat(exists), picked, 0), {n, x.shape()[1], q, count});
  Value weights = reshape_to(where_or(flat(exists), flat(weight), 0), {n, 1, q, count});
  return {values, cast_to(weights, x.dtype())};
}

Value sampled(Value x, const std::vector<SampledAxis>& axes) {
  const DType dtype = x.dtype(), wide = sum_dtype(dtype);
  Neighbours near = neighbours(cast_to(x, wide), axes);
  return cast_to(sum_over(times(near.values, near.weights), {3}), dtype);
}

namespace {

// [n, c, p]: all axes but the first two as one.
Value flat_image(Value x) {
  std::span<const Dim> dims = x.shape().dims;
  return reshape_to(x, {dims[0], dims[1], product(dims.subspan(2))});
}

// From -1 .. 1 to elements.
Value in_elements(Value x, const Dim& size, bool corners) {
  Value n = size_like(x, size);
  if (corners) return (x + 1.0) * 0.5 * (n - 1.0);
  return ((x + 1.0) * n - 1.0) * 0.5;
}

Interpolation interpolation_of(NodeContext& c, std::string_view mode) {
  if (mode == "nearest") return Interpolation::nearest;
  if (mode == "linear" || mode == "bilinear") return Interpolation::linear;
  if (mode == "cubic" || mode == "bicubic") return Interpolation::cubic;
  c.fail(cat("mode is '", mode, "', expected nearest, linear or cubic"));
}

Outside outside_of(NodeContext& c, std::string_view mode) {
  if (mode == "zeros") return Outside::zeros;
  if (mode == "border") return Outside::border;
  if (mode == "reflection") return Outside::reflection;
  c.fail(cat("padding_mode is '", mode, "', expected zeros, border or reflection"));
}

Values grid_sample(NodeContext& c) {
  Value x = c.in(0), grid = c.in(1);
  const int spatial = x.rank() - 2;
  if (spatial < 1 || grid.rank() != x.rank())
    c.fail(cat("image ", x.type(), " and grid ", grid.type(), " do not fit"));
  const Interpolation how = interpolation_of(c, c.text("mode", "linear"));
  const Outside outside = outside_of(c, c.text("padding_mode", "zeros"));
  const bool corners = c.flag("align_corners");
  std::span<const Dim> places =
      std::span(grid.shape().dims).subspan(1, static_cast<std::size_t>(spatial));
  grid = reshape_to(cast_to(grid, sum_dtype(grid.dtype())),
                    {grid.shape()[0], product(places), grid.shape()[-1]});
  std::vector<SampledAxis> axes;
  for (int i = 0; i < spatial; ++i) {
    const Dim& size = x.shape()[2 + i];
    // The grid names the last axis first.
    Value at = in_elements(take_axis(grid, 2, spatial - 1 - i), size, corners);
    axes.push_back({size, at, how, outside, corners});
  }
  Dims dims = {x.shape()[0], x.shape()[1]};
  dims.insert(dims.end(), places.begin(), places.end());
  return {reshape_to(sampled(flat_image(x), axes), dims)};
}

// The middle of each element of an axis, from -1 to 1.
Value grid_places(NodeContext& c, const Dim& size, bool corners) {
  Value i = counted(c.graph(), DType::f64, size);
  Value n = size_like(i, size);
  if (!corners) return (i * 2.0 + 1.0) / n - 1.0;
  Value steps = ops::maximum(n - 1.0, constant_like(n, 1));
  return i * 2.0 / steps - 1.0;
}

// theta [n, d, d + 1] applied to each place of an image of sizes [n, c, ...].
Values affine_grid(NodeContext& c) {
  Value theta = c.in(0);
  const Dims size = c.contents(1);
  const std::size_t d = size.size() < 2 ? 0 : size.size() - 2;
  if (d != 2 && d != 3) c.fail(cat("an image of ", size.size(), " axes; expected 4 or 5"));
  const bool corners = c.flag("align_corners");
  Dims places(size.begin() + 2, size.end());
  Values rows;
  for (std::size_t i = d; i-- > 0;) {
    Value at = along(grid_places(c, places[i], corners), static_cast<int>(i), static_cast<int>(d));
    rows.push_back(reshape_to(broadcast_to(at, Shape(places)), {1, product(places)}));
  }
  rows.push_back(filled(c.graph(), DType::f64, {1, product(places)}, 1));
  Value points = cast_to(concat_values(rows, 0), theta.dtype());  // [d + 1, p]
  Value grid = dot_general(theta, points, {}, {{2, 0}});          // [n, d, p]
  Dims dims = {theta.shape()[0]};
  dims.insert(dims.end(), places.begin(), places.end());
  dims.push_back(static_cast<std::int64_t>(d));
  return {reshape_to(transpose_by(grid, Axes{0, 2, 1}), dims)};
}

// ==== RoiAlign

// `bins` times `samples` places along one axis of each region: [r, bins * samples].
Value region_places(NodeContext& c, Value start, Value length, std::int64_t bins,
                    std::int64_t samples) {
  Value i = iota_value(c.graph(), start.dtype(), {1, bins * samples}, 1);
  Value step = length / static_cast<double>(bins * samples);
  return plus(unsqueeze(start, {1}), times(i + 0.5, unsqueeze(step, {1})));
}

// Up to one element outside counts as the border, further out as nothing.
Value is_near(Value at, const Dim& size) {
  return ops::bit_and(ops::le(constant_like(at, -1), at), ops::le(at, size_like(at, size)));
}

Values roi_align(NodeContext& c) {
  const Value x = c.in(0), rois = c.in(1);
  if (x.rank() != 4 || rois.rank() != 2) c.fail(cat(x.type(), " and ", rois.type()));
  std::string_view mode = c.text("mode", "avg");
  const std::int64_t h = c.integer("output_height", 1), w = c.integer("output_width", 1),
                     samples = c.integer("sampling_ratio", 0);
  std::string_view where_to =
      c.text("coordinate_transformation_mode", c.opset() < 16 ? "output_half_pixel" : "half_pixel");
  const bool half = where_to == "half_pixel";
  if (!half && where_to != "output_half_pixel")
    c.fail(cat("coordinate_transformation_mode is '", where_to, "'"));
  if (mode != "avg" && mode != "max") c.fail(cat("mode is '", mode, "', expected avg or max"));
  if (samples < 1)
    c.unsupported("sampling_ratio 0, where the number of samples depends on each region");
  if (h < 1 || w < 1) c.fail(cat("output of ", h, " x ", w));
  Value scaled = rois * c.real("spatial_scale", 1) - (half ? 0.5 : 0.0);
  auto edge = [&](int i) { return take_axis(scaled, 1, i); };
  Value width = edge(2) - edge(0), height = edge(3) - edge(1);
  if (!half) {
    width = ops::maximum(width, constant_like(width, 1));
    height = ops::maximum(height, constant_like(height, 1));
  }
  const Dim regions = rois.shape()[0], per_row = w * samples, per_column = h * samples;
  Shape all{regions, per_column, per_row};
  Value ys = broadcast_to(unsqueeze(region_places(c, edge(1), height, h, samples), {2}), all);
  Value xs = broadcast_to(unsqueeze(region_places(c, edge(0), width, w, samples), {1}), all);
  Value exists = ops::bit_and(is_near(ys, x.shape()[2]), is_near(xs, x.shape()[3]));
  Value batch = cast_to(broadcast_to(reshape_to(c.in(2), {regions, 1, 1}), all), ys.dtype());
  const Dim q = regions * per_column * per_row;
  auto flat = [&](Value v) { return reshape_to(v, {1, q}); };
  // All images as one, so that a place names its image, too: [1, c, n h w].
  Value image = reshape_to(transpose_by(x, Axes{1, 0, 2, 3}),
                           {1, x.shape()[1], x.shape()[0] * x.shape()[2] * x.shape()[3]});
  Neighbours near =
      neighbours(image, {{x.shape()[0], flat(batch), Interpolation::nearest, Outside::border},
                         {x.shape()[2], flat(ys), Interpolation::linear, Outside::border},
                         {x.shape()[3], flat(xs), Interpolation::linear, Outside::border}});
  Value weighed = times(near.values, near.weights);
  weighed = where_or(reshape_to(exists, {1, 1, q, 1}), weighed, 0);
  Value y = mode == "avg" ? sum_over(weighed, {3}) : max_over(weighed, {3});  // [1, c, q]
  y = reshape_to(y, {x.shape()[1], regions, h, samples, w, samples});
  y = mode == "avg" ? mean_over(y, {3, 5}, false) : max_over(y, {3, 5});
  return {transpose_by(y, Axes{1, 0, 2, 3})};
}

constexpr ImportEntry sample_table[] = {
    {"GridSample", grid_sample, 16},
    {"AffineGrid", affine_grid, 20},
    {"RoiAlign", roi_align, 10},
};

}  // namespace

std::span<const ImportEntry> sample_imports() { return sample_table; }

}  // namespace hone::onnx
