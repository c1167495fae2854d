#include "import/onnx/operators/sample.h"

#include <algorithm>
#include <cmath>

#include "base/amount.h"
#include "import/common/build.h"
#include "import/onnx/node/context.h"
#include "import/onnx/operators/list.h"
#include "ir/function.h"
#include "ops/require.h"

namespace hone::onnx {

namespace {

Value size_like(Value x, const Dim& size) {
  return broadcast_to(size_value(x.graph(), size, x.dtype()), x.shape());
}
Value clamped(Value x, Value low, Value high) { return ops::minimum(ops::maximum(x, low), high); }

// x mirrored at low and high until it is between them.
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
  Value index, weight, exists;  // [n, q, k]; all in `real`
};

Samples samples_of(const SampledAxis& a) {
  Value x = unsqueeze(a.at, {2});
  hone::Graph& g = x.graph();
  if (a.how == Interpolation::nearest) x = ops::round(x);
  // Cubic interpolation with border clamps the element indices: clamping the position would select
  // other elements.
  if (a.how != Interpolation::cubic || a.outside != Outside::border) x = inside(a, x);
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
  // NaN is out of range; as an index it is the first element.
  if (a.outside != Outside::zeros) exists = ops::eq(at, at);
  return {kept, weight, exists};
}

// Spreads [n, q, k] along axis 2 + i of [n, q, k0, k1, ...].
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

// [n, c, p]: all axes after the first two merged.
Value flat_image(Value x) {
  std::span<const Dim> dims = x.shape().dims;
  return reshape_to(x, {dims[0], dims[1], product(dims.subspan(2))});
}

// Converts -1 .. 1 to element coordinates.
Value in_elements(Value x, const Dim& size, bool corners) {
  Value n = size_like(x, size);
  if (corners) return (x + 1.0) * 0.5 * (n - 1.0);
  return ((x + 1.0) * n - 1.0) * 0.5;
}

Interpolation interpolation_of(NodeContext& c, std::string_view mode) {
  if (mode == "nearest") return Interpolation::nearest;
  if (mode == "linear" || mode == "bilinear") return Interpolation::linear;
  if (mode == "cubic" || mode == "bicubic") return Interpolation::cubic;
  c.bad_attribute("mode", mode, "nearest, linear or cubic");
}

Outside outside_of(NodeContext& c, std::string_view mode) {
  if (mode == "zeros") return Outside::zeros;
  if (mode == "border") return Outside::border;
  if (mode == "reflection") return Outside::reflection;
  c.bad_attribute("padding_mode", mode, "zeros, border or reflection");
}

Values grid_sample(NodeContext& c) {
  Value x = c.in(0), grid = c.in(1);
  const int spatial = x.rank() - 2;
  if (spatial < 1 || grid.rank() != x.rank())
    c.fail(cat("inputs 'X' and 'grid' are ", x.type(), " and ", grid.type(),
               ", expected equal ranks of at least 3"));
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
    // The grid lists the last axis first.
    Value at = in_elements(take_axis(grid, 2, spatial - 1 - i), size, corners);
    axes.push_back({size, at, how, outside, corners});
  }
  Dims dims = {x.shape()[0], x.shape()[1]};
  dims.insert(dims.end(), places.begin(), places.end());
  return {reshape_to(sampled(flat_image(x), axes), dims)};
}

// The center of each element of an axis, from -1 to 1.
Value grid_places(NodeContext& c, const Dim& size, bool corners) {
  Value i = counted(c.graph(), DType::f64, size);
  Value n = size_like(i, size);
  if (!corners) return (i * 2.0 + 1.0) / n - 1.0;
  Value steps = ops::maximum(n - 1.0, constant_like(n, 1));
  return i * 2.0 / steps - 1.0;
}

// theta [n, d, d + 1] applied to each position of an image of sizes [n, c, ...].
Values affine_grid(NodeContext& c) {
  Value theta = c.in(0);
  const std::vector<NodeContext::Element> size = c.elements(1);
  const std::size_t d = size.size() < 2 ? 0 : size.size() - 2;
  if (d != 2 && d != 3)
    c.fail(cat("input 1 ('size') has ", amount(size.size(), "element", "elements"),
               ", expected 4 or 5"));
  const bool corners = c.flag("align_corners");
  Dims places;
  for (std::size_t i = 2; i < size.size(); ++i)
    places.push_back(size[i].known ? *size[i].known : c.measured(size[i].open, c.open_limit(d)));
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

constexpr std::int64_t most_bins = 1 << 20;  // per axis

// Positions up to one element outside count as the border, others as zero.
Value is_near(Value at, const Dim& size) {
  return ops::bit_and(ops::le(constant_like(at, -1), at), ops::le(at, size_like(at, size)));
}

struct Regions {
  Value image;        // [1, c, n h w]: all images merged, so that a position also selects the image
  Value batch, x, y;  // [r]: the image, and the start of its first bin
  Value width, height;  // [r]: of a bin
  Dim images, rows, columns;
  std::int64_t bins_high = 1, bins_wide = 1;
};

// One sample per bin, at fractions of its height and width, [r] each. [c, r, h, w], and which
// samples exist.
struct BinSamples {
  Neighbours near;
  Value exists;  // [1, 1, r h w, 1]
};
BinSamples bin_samples(const Regions& g, Value down, Value across) {
  const Dim regions = g.x.shape()[0];
  const Shape all{regions, g.bins_high, g.bins_wide};
  const DType real = g.x.dtype();
  auto places = [&](Value start, Value size, Value part, std::int64_t bins, int axis) {
    Value bin = iota_value(g.x.graph(), real, Shape{1, bins}, 1);
    Value at =
        plus(unsqueeze(start, {1}), times(plus(bin, unsqueeze(part, {1})), unsqueeze(size, {1})));
    return broadcast_to(unsqueeze(at, {axis}), all);
  };
  Value ys = places(g.y, g.height, down, g.bins_high, 2),
        xs = places(g.x, g.width, across, g.bins_wide, 1);
  const Dim q = regions * Dim(g.bins_high * g.bins_wide);
  auto flat = [&](Value v) { return reshape_to(v, {1, q}); };
  Value batch = broadcast_to(reshape_to(g.batch, {regions, 1, 1}), all);
  Value exists = ops::bit_and(is_near(ys, g.rows), is_near(xs, g.columns));
  Neighbours near =
      neighbours(g.image, {{g.images, flat(batch), Interpolation::nearest, Outside::border},
                           {g.rows, flat(ys), Interpolation::linear, Outside::border},
                           {g.columns, flat(xs), Interpolation::linear, Outside::border}});
  return {near, reshape_to(exists, {1, 1, q, 1})};
}

// The weighted neighbours of each sample, joined by sum or maximum. [c, r, h, w]
Value joined_samples(const Regions& g, Value down, Value across, bool average) {
  const BinSamples s = bin_samples(g, down, across);
  Value weighed = where_or(s.exists, times(s.near.values, s.near.weights), 0);
  Value y = average ? sum_over(weighed, {3}) : max_over(weighed, {3});
  return reshape_to(y, {g.image.shape()[1], g.x.shape()[0], g.bins_high, g.bins_wide});
}

// Operands of the loop over samples.
namespace roi {
enum Part : std::size_t { turn, sum, image, batch, x, y, width, height, down, across, wide, count };
}

// Adaptive sampling: each region uses as many samples as its bins have rows and columns. The loop
// runs for the region with the most; regions with fewer skip the rest.
Value adaptive(const Regions& g, bool average) {
  hone::Graph& graph = g.x.graph();
  auto counts = [&](Value size) { return ops::maximum(ops::ceil(size), constant_like(size, 0)); };
  Value down = counts(g.height), across = counts(g.width);
  auto most = [&](Value v) {
    Value none = reshape_to(constant(graph, Array::zeros(v.dtype(), {})), {1});
    return cast_to(max_over(concat_values(Values{v, none}, 0), {0}), DType::i64);
  };
  const Shape result{g.image.shape()[1], g.x.shape()[0], g.bins_high, g.bins_wide};
  Value start = filled(graph, g.image.dtype(), result, average ? 0 : -HUGE_VAL);
  Value total = most(down) * most(across);
  Values operands(roi::count);
  operands[roi::turn] = integer(graph, 0);
  operands[roi::sum] = start;
  operands[roi::image] = g.image;
  operands[roi::batch] = g.batch;
  operands[roi::x] = g.x;
  operands[roi::y] = g.y;
  operands[roi::width] = g.width;
  operands[roi::height] = g.height;
  operands[roi::down] = down;
  operands[roi::across] = across;
  operands[roi::wide] = ops::maximum(most(across), integer(graph, 1));
  operands.push_back(total);
  auto go = std::make_shared<Function>(), next = std::make_shared<Function>();
  for (Function* f : {go.get(), next.get()})
    for (const Value& v : operands) f->add_param(v.type(), cat("p", f->params().size()));
  go->add_result(ops::lt(go->param(roi::turn), go->param(roi::count)));
  auto p = [&](roi::Part i) { return next->param(i); };
  Regions inner = g;
  inner.image = p(roi::image), inner.batch = p(roi::batch), inner.x = p(roi::x),
  inner.y = p(roi::y), inner.width = p(roi::width), inner.height = p(roi::height);
  const DType real = g.x.dtype();
  auto number = [&](Value v) { return broadcast_to(cast_to(v, real), p(roi::x).shape()); };
  Value i = number(ops::div(p(roi::turn), p(roi::wide))),
        k = number(ops::mod(p(roi::turn), p(roi::wide)));
  auto part = [&](Value at, Value count) {
    return (at + 0.5) / ops::maximum(count, constant_like(count, 1));
  };
  Value here = joined_samples(inner, part(i, p(roi::down)), part(k, p(roi::across)), average);
  Value counts_here = ops::bit_and(ops::lt(i, p(roi::down)), ops::lt(k, p(roi::across)));
  counts_here = reshape_to(counts_here, {1, g.x.shape()[0], 1, 1});
  Value sum = p(roi::sum);
  Value joined_up = average ? sum + here : ops::maximum(sum, here);
  next->add_result(p(roi::turn) + integer_like(p(roi::turn), 1));
  next->add_result(where(counts_here, joined_up, sum));
  Value y = ops::while_loop(operands, {{"condition", FunctionRef(go)}, {"body", FunctionRef(next)}})
                .result(roi::sum);
  Value taken = down * across;
  if (average) {
    Value many = ops::maximum(taken, constant_like(taken, 1));
    return over(y, cast_to(reshape_to(many, {1, g.x.shape()[0], 1, 1}), y.dtype()));
  }
  Value none = ops::eq(taken, constant_like(taken, 0));
  return where(reshape_to(none, {1, g.x.shape()[0], 1, 1}), scalar(graph, 0, y.dtype()), y);
}

// The same number of samples in all bins.
Value evenly_sampled(const Regions& g, std::int64_t samples, bool average) {
  Regions fine = g;
  fine.bins_high *= samples;
  fine.bins_wide *= samples;
  fine.height = g.height / static_cast<double>(samples);
  fine.width = g.width / static_cast<double>(samples);
  Value middle = constant_like(g.x, 0.5);
  Value y = joined_samples(fine, middle, middle, average);
  y = reshape_to(y,
                 {g.image.shape()[1], g.x.shape()[0], g.bins_high, samples, g.bins_wide, samples});
  return average ? mean_over(y, {3, 5}, false) : max_over(y, {3, 5});
}

Values roi_align(NodeContext& c) {
  const Value x = c.in(0), images = c.in(2);
  Value rois = c.in(1);
  if (x.rank() != 4 || rois.rank() != 2 || images.rank() != 1)
    c.fail(cat("inputs 'X', 'rois' and 'batch_indices' are ", x.type(), ", ", rois.type(), " and ",
               images.type(), ", expected 4, 2 and 1 axes"));
  if (images.shape()[0].is_number()) rois = reshape_to(rois, {images.shape()[0], rois.shape()[1]});
  require_within(images, 0, x.shape()[0] - Dim(1), "an image of 'batch_indices'");
  std::string_view mode = c.text("mode", "avg");
  const std::int64_t samples = c.integer("sampling_ratio", 0);
  std::string_view where_to =
      c.text("coordinate_transformation_mode", c.opset() < 16 ? "output_half_pixel" : "half_pixel");
  const bool half = where_to == "half_pixel";
  if (!half && where_to != "output_half_pixel")
    c.bad_attribute("coordinate_transformation_mode", where_to, "half_pixel or output_half_pixel");
  if (mode != "avg" && mode != "max") c.bad_attribute("mode", mode, "avg or max");
  constexpr std::int64_t most_samples = 1 << 10;  // per axis
  if (samples < 0 || samples > most_samples)
    c.bad_attribute("sampling_ratio", samples, cat("0 to ", most_samples));
  Regions g;
  g.bins_high = c.integer("output_height", 1);
  g.bins_wide = c.integer("output_width", 1);
  if (std::min(g.bins_high, g.bins_wide) < 1 || std::max(g.bins_high, g.bins_wide) > most_bins)
    c.fail(cat("output_height and output_width are ", g.bins_high, " and ", g.bins_wide,
               ", expected 1 to ", most_bins));
  Value scaled = rois * c.real("spatial_scale", 1) - (half ? 0.5 : 0.0);
  auto edge = [&](int i) { return take_axis(scaled, 1, i); };
  Value width = edge(2) - edge(0), height = edge(3) - edge(1);
  if (!half) {
    width = ops::maximum(width, constant_like(width, 1));
    height = ops::maximum(height, constant_like(height, 1));
  }
  g.x = edge(0);
  g.y = edge(1);
  g.width = width / static_cast<double>(g.bins_wide);
  g.height = height / static_cast<double>(g.bins_high);
  g.batch = cast_to(images, g.x.dtype());
  g.images = x.shape()[0], g.rows = x.shape()[2], g.columns = x.shape()[3];
  g.image = reshape_to(transpose_by(x, Axes{1, 0, 2, 3}),
                       {1, x.shape()[1], g.images * g.rows * g.columns});
  const bool average = mode == "avg";
  Value y = samples == 0 ? adaptive(g, average) : evenly_sampled(g, samples, average);
  return {transpose_by(y, Axes{1, 0, 2, 3})};
}

// ==== MaxRoiPool

// Rounds to integers; halves away from zero.
Value to_integer(Value x) {
  const Value whole = ops::trunc(x);
  return whole + ops::trunc((x - whole) * 2.0);
}

// The elements of an axis covered by each bin of each region: `elements` [r, bins, size], and
// whether it covers any: `any` [r, bins].
struct Bins {
  Value elements, any;
};

// Regions from `start` to `end`, [r] each, both inclusive, in `count` bins that may overlap by one.
Bins bins_of(Value start, Value end, std::int64_t count, const Dim& size) {
  Value length = end - start + 1.0;
  length = ops::maximum(length, constant_like(length, 1)) / static_cast<double>(count);
  const Value bin = iota_value(start.graph(), start.dtype(), Shape{1, count}, 1);
  auto edge = [&](Value place) {
    place = plus(place, unsqueeze(start, {1}));
    return clamped(place, constant_like(place, 0), size_like(place, size));
  };
  const Value first = edge(ops::floor(times(bin, unsqueeze(length, {1}))));
  const Value past = edge(ops::ceil(times(bin + 1.0, unsqueeze(length, {1}))));
  const Value at = iota_value(start.graph(), start.dtype(), Shape{1, 1, size}, 2);
  return {
      both(joined(ops::le, unsqueeze(first, {2}), at), joined(ops::lt, at, unsqueeze(past, {2}))),
      ops::lt(first, past)};
}

// Rows of `rois` are an image index and the corners x1, y1, x2 and y2. Returns the maximum of each
// bin, 0 for empty bins.
Values max_roi_pool(NodeContext& c) {
  const Value x = c.in(0), rois = c.in(1);
  if (x.rank() != 4 || rois.rank() != 2 || prove_equal(rois.shape()[1], 5) == false)
    c.fail(cat("inputs 'X' and 'rois' are ", x.type(), " and ", rois.type(),
               ", expected [n, c, h, w] and [regions, 5]"));
  const auto bins = c.integers("pooled_shape");
  if (!bins || bins->size() != 2 || std::ranges::min(*bins) < 1 ||
      std::ranges::max(*bins) > most_bins)
    c.fail(cat("attribute 'pooled_shape' must be two numbers from 1 to ", most_bins));
  const Value wide = cast_to(rois, sum_dtype(rois.dtype()));
  const Value scaled = to_integer(wide * c.real("spatial_scale", 1));
  auto corner = [&](int i) { return take_axis(scaled, 1, i); };
  const Bins high = bins_of(corner(2), corner(4), (*bins)[0], x.shape()[2]);
  const Bins across = bins_of(corner(1), corner(3), (*bins)[1], x.shape()[3]);
  const Value image = cast_to(take_axis(rois, 1, 0), DType::i64);
  require_within(image, 0, x.shape()[0] - Dim(1), "image of a region");
  Value y = ops::gather(Values{x, image}, {{"axis", std::int64_t{0}}});
  y = where_or(unsqueeze(high.elements, {1, 4}), unsqueeze(y, {2}), -HUGE_VAL);
  y = max_over(y, {3});
  y = where_or(unsqueeze(across.elements, {1, 2}), unsqueeze(y, {3}), -HUGE_VAL);
  y = max_over(y, {4});
  return {where_or(both(unsqueeze(high.any, {1, 3}), unsqueeze(across.any, {1, 2})), y, 0)};
}

constexpr ImportEntry sample_table[] = {
    {"GridSample", grid_sample, 16},
    {"AffineGrid", affine_grid, 20},
    {"RoiAlign", roi_align, 10},
    {"MaxRoiPool", max_roi_pool},
};

}  // namespace

std::span<const ImportEntry> sample_imports() { return sample_table; }

}  // namespace hone::onnx
