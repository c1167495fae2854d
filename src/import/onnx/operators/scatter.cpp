// Inverse windows: values read from an image through windows are written back into one.
#include "base/amount.h"
#include "import/common/build.h"
#include "import/onnx/node/open.h"
#include "import/onnx/operators/list.h"
#include "import/onnx/operators/sample.h"
#include "import/onnx/operators/window.h"
#include "ops/require.h"

namespace hone::onnx {

namespace {

Value zero_of(Value x) { return constant(x.graph(), Array::scalar_int(0, x.dtype())); }

// Inserts `step` - 1 zeros between the elements of an axis.
Value spread_out(Value x, int axis, const Dim& step) {
  if (step == Dim(1)) return x;
  const Dim size = x.shape()[axis];
  Value apart = unsqueeze(x, {axis + 1});
  Dims low(static_cast<std::size_t>(apart.rank()), 0), high = low, dims = x.shape().dims;
  high[static_cast<std::size_t>(axis) + 1] = step - Dim(1);
  dims[static_cast<std::size_t>(axis)] = size * step;
  x = reshape_to(pad_with(apart, zero_of(x), low, high), dims);
  return slice_axis(x, axis, 0, (size - Dim(1)) * step + Dim(1));
}

// Adds zeros before and after an axis; negative amounts cut.
Value extended(Value x, int axis, const Dim& low, const Dim& high) {
  const Dim cut_low = max(Dim(0) - low, 0), cut_high = max(Dim(0) - high, 0);
  x = slice_axis(x, axis, cut_low, x.shape()[axis] - cut_low - cut_high);
  Dims before(static_cast<std::size_t>(x.rank()), 0), after = before;
  before[static_cast<std::size_t>(axis)] = max(low, 0);
  after[static_cast<std::size_t>(axis)] = max(high, 0);
  return pad_with(x, zero_of(x), before, after);
}

// Converts [c, m / groups, k...] to the weights [m, c / groups, k...] of the inverse convolution.
Value transposed_weights(NodeContext& c, Value w, std::int64_t groups) {
  const Shape s = w.shape();
  Dims split = {groups, floor_div(s[0], groups), s[1]};
  if (s[0].is_number() && s[0].number() % groups != 0)
    c.fail(cat("input 1 ('W') is ", w.type(),
               ", expected a first size that is a multiple of 'group', ", groups));
  Dims joined_dims = {s[1] * Dim(groups), floor_div(s[0], groups)};
  Axes order = {0, 2, 1}, spatial;
  for (int i = 2; i < w.rank(); ++i) {
    split.push_back(s[i]);
    joined_dims.push_back(s[i]);
    order.push_back(i + 1);
    spatial.push_back(i);
  }
  return reverse_axes(reshape_to(transpose_by(reshape_to(w, split), order), joined_dims), spatial);
}

struct TransposedPads {
  Dims low, high;  // removed from the full result
};

// Pads by attribute, or those needed to get the requested sizes. `full` is the result's size
// without pads.
TransposedPads transposed_pads(NodeContext& c, const SpatialAttributes& a, const Dims& full,
                               const Shape& x) {
  TransposedPads out{a.pads_low, a.pads_high};
  std::string_view mode = c.text("auto_pad", "NOTSET");
  const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  auto shape = c.integers("output_shape");
  if (!shape && !same) return out;
  for (std::size_t i = 0; i < full.size(); ++i) {
    // The shape may include the first two axes.
    Dim want = x[static_cast<int>(i) + 2] * a.strides[i];
    if (shape && shape->size() < full.size())
      c.fail(cat("attribute 'output_shape' has ", amount(shape->size(), "entry", "entries"),
                 ", expected ", full.size()));
    if (shape) want = (*shape)[shape->size() - full.size() + i];
    const Dim total = full[i] - want, half = floor_div(total, 2);
    out.low[i] = mode == "SAME_UPPER" ? half : total - half;
    out.high[i] = total - out.low[i];
  }
  return out;
}

Values conv_transpose(NodeContext& c) {
  Value x = c.in(0), w = c.in(1);
  if (w.rank() < 3) c.bad_input(1, "W", "at least three axes");
  const std::int64_t groups = c.integer("group", 1);
  if (groups < 1) c.bad_attribute("group", groups, "a positive integer");
  const Dims window = window_of_weights(c, w);
  const std::size_t n = window.size();
  if (x.rank() != static_cast<int>(n) + 2)
    c.fail(cat("inputs 'X' and 'W' are ", x.type(), " and ", w.type(), ", expected equal ranks"));
  SpatialAttributes a{window, list_or_ones(c, "strides", n), list_or_ones(c, "dilations", n),
                      Dims(n, 0), Dims(n, 0)};
  if (auto pads = c.integers("pads")) given_pads(c, a, *pads);
  auto more = c.integers("output_padding").value_or(std::vector<std::int64_t>(n, 0));
  if (more.size() != n)
    c.fail(cat("attribute 'output_padding' has ", amount(more.size(), "entry", "entries"),
               ", expected ", n));
  for (const std::int64_t m : more)
    if (m < 0) c.fail(cat("attribute 'output_padding' contains ", m, ", expected 0 or more"));
  Dims full;
  for (std::size_t i = 0; i < n; ++i)
    full.push_back((x.shape()[static_cast<int>(i) + 2] - Dim(1)) * a.strides[i] +
                   reach_of(window[i], a.dilations[i]) + Dim(more[i]));
  const TransposedPads pads = transposed_pads(c, a, full, x.shape());
  for (std::size_t i = 0; i < n; ++i) {
    const int axis = static_cast<int>(i) + 2;
    const Dim around = reach_of(window[i], a.dilations[i]) - Dim(1);
    x = spread_out(x, axis, a.strides[i]);
    x = extended(x, axis, around - pads.low[i], around - pads.high[i] + Dim(more[i]));
  }
  a = {window, ones(n), a.dilations, Dims(n, 0), Dims(n, 0)};
  Value y = convolution(x, transposed_weights(c, w, groups), a, groups);
  if (c.has(2)) y = y + along_channels(c.in(2), y.shape());
  return {y};
}

struct Columns {
  SpatialAttributes window;
  Dims image, blocks;
};

// Bounds for data-dependent sizes, besides the limit of open sizes: a block has at most as many
// elements as x has channels, and all blocks in a row are at least as long as the image.
Columns columns_of(NodeContext& c, Value x) {
  const std::vector<NodeContext::Element> image = c.elements(1), window = c.elements(2);
  const std::size_t n = image.size();
  if (window.size() != n || x.rank() != 3 || n == 0)
    c.fail(cat("'image_shape' has ", amount(n, "element", "elements"), ", 'block_shape' ",
               window.size(), ", and 'input' is ", x.type(),
               ", expected two lists of one length, at least 1, and three axes"));
  const auto size = [&](const NodeContext::Element& e, std::int64_t low, const Dim& most,
                        std::string_view list) {
    return at_least(c, e.known ? *e.known : c.measured(e.open, most), low,
                    cat("a size in '", list, "'"));
  };
  const Dim channels = x.shape()[1], places = x.shape()[2], limit = c.open_limit(n);
  Columns out{{Dims(n, 1), list_or_ones(c, "strides", n), list_or_ones(c, "dilations", n),
               Dims(n, 0), Dims(n, 0)},
              {},
              {}};
  SpatialAttributes& a = out.window;
  for (std::size_t i = 0; i < n; ++i)
    a.window[i] = size(window[i], 1, min(channels, limit), "block_shape");
  if (auto pads = c.integers("pads")) given_pads(c, a, *pads);
  for (std::size_t i = 0; i < n; ++i) {
    const Dim reach = reach_of(a.window[i], a.dilations[i]);
    // Without blocks one axis is too short for a window, and the others may have any size.
    const Dim most = places.low() < 1 ? limit : min(places * a.strides[i] + reach, limit);
    out.image.push_back(size(image[i], 0, most, "image_shape"));
    const Dim padded = out.image[i] + a.pads_low[i] + a.pads_high[i];
    out.blocks.push_back(max(floor_div(padded - reach, a.strides[i]) + Dim(1), 0));
  }
  const auto require = [&](const Dim& have, const Dim& needed, std::string_view what) {
    c.graph().require_equal(
        have, needed,
        cat("input 0 is ", x.type(), " and has ", have, " ", what, ", expected ", needed,
            " for 'image_shape' ", Shape(out.image), " and 'block_shape' ", Shape(a.window)));
  };
  require(channels, floor_div(channels, product(a.window)) * product(a.window), "channels");
  require(places, product(out.blocks), "blocks");
  return out;
}

// Sums [n, c * window, blocks] into images [n, c, ...].
Values column_to_image(NodeContext& c) {
  Value x = c.in(0);
  const Columns in = columns_of(c, x);
  const SpatialAttributes& a = in.window;
  const Dims &image = in.image, &window = a.window;
  const std::size_t n = image.size();
  hone::Graph& g = c.graph();
  auto number = [&](const Dim& d) { return size_value(g, d, DType::i64); };
  Value index, exists;  // [window..., blocks...]
  for (std::size_t i = 0; i < n; ++i) {
    const auto axis = static_cast<int>(i), rank = static_cast<int>(2 * n);
    Value k = along(counted(g, DType::i64, window[i]), axis, rank);
    Value o = along(counted(g, DType::i64, in.blocks[i]), axis + rank / 2, rank);
    Value at = minus(plus(times(o, number(a.strides[i])), times(k, number(a.dilations[i]))),
                     number(a.pads_low[i]));
    Value inside = both(joined(ops::le, number(0), at), joined(ops::lt, at, number(image[i])));
    exists = exists ? both(exists, inside) : inside;
    index = index ? plus(times(index, number(image[i])), at) : at;
  }
  const Dim pixels = product(image), channels = floor_div(x.shape()[1], product(window));
  Value place = flatten(where(exists, index, number(pixels)));  // outside: dropped
  Value zeros = filled(g, x.dtype(), {x.shape()[0], channels, pixels}, 0);
  Value updates = reshape_to(x, {x.shape()[0], channels, place.shape()[0]});
  Value y = ops::scatter(Values{zeros, place, updates},
                         {{"axis", std::int64_t{2}}, {"kind", std::string("add")}});
  Dims dims = {x.shape()[0], channels};
  dims.insert(dims.end(), image.begin(), image.end());
  return {reshape_to(y, dims)};
}

// Indices refer to the image whose size follows from the window; if a larger one is requested, that
// image is at its start.
Values max_unpool(NodeContext& c) {
  Value x = c.in(0);
  const Dims window = kernel_shape(c);
  const std::size_t n = window.size();
  if (x.rank() != static_cast<int>(n) + 2)
    c.fail(cat("input 0 ('X') is ", x.type(), ", expected ", n + 2,
               " axes for a 'kernel_shape' of ", amount(n, "entry", "entries")));
  SpatialAttributes a{window, list_or_ones(c, "strides", n), ones(n), Dims(n, 0), Dims(n, 0)};
  if (auto pads = c.integers("pads")) given_pads(c, a, *pads);
  Dims image = {x.shape()[0], x.shape()[1]};
  for (std::size_t i = 0; i < n; ++i)
    image.push_back((x.shape()[static_cast<int>(i) + 2] - Dim(1)) * a.strides[i] + window[i] -
                    a.pads_low[i] - a.pads_high[i]);
  require_within(c.in(1), 0, product(image) - Dim(1), "an index");
  Value zeros = filled(c.graph(), x.dtype(), {product(image)}, 0);
  Value y = ops::scatter(Values{zeros, flatten(c.in(1)), flatten(x)},
                         {{"axis", std::int64_t{0}}, {"kind", std::string("set")}});
  y = reshape_to(y, image);
  if (!c.has(2)) return {y};
  const std::vector<NodeContext::Element> wanted = c.elements(2);
  if (wanted.size() != image.size())
    c.fail(cat("input 2 ('output_shape') has ", amount(wanted.size(), "element", "elements"),
               ", expected ", image.size(), " sizes"));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    Dim size = image[i];
    if (wanted[i].known)
      size = *wanted[i].known;
    else if (i < 2)
      require_within(wanted[i].open, size, size, "images or channels in 'output_shape'");
    else
      size = c.measured(wanted[i].open, c.open_limit(n));
    y = extended(y, static_cast<int>(i), 0, size - image[i]);
  }
  return {y};
}

// [n, offset groups, k, 2, q] moves the positions that a convolution reads; a mask weights them.
Values deformable_conv(NodeContext& c) {
  const Value x = c.in(0), w = c.in(1);
  if (x.rank() != 4 || w.rank() != 4)
    c.unsupported(
        cat("inputs 'X' and 'W' are ", x.type(), " and ", w.type(), ", expected four axes each"));
  const std::int64_t groups = c.integer("group", 1), moved = c.integer("offset_group", 1);
  if (groups < 1 || moved < 1)
    c.fail(
        cat("group and offset_group are ", groups, " and ", moved, ", expected positive integers"));
  const Dims window = window_of_weights(c, w);
  SpatialAttributes a = spatial_attributes(c, window, x.shape());
  const Dim n = x.shape()[0], channels = x.shape()[1], taps = product(window);
  const Dim h = c.in(2).shape()[2], width = c.in(2).shape()[3], places = h * width;
  const DType wide = sum_dtype(x.dtype());
  hone::Graph& g = c.graph();
  Value offset = reshape_to(cast_to(c.in(2), wide), {n * Dim(moved), taps, 2, places});
  auto number = [&](const Dim& d) { return size_value(g, d, wide); };
  std::vector<SampledAxis> axes;
  for (int i = 0; i < 2; ++i) {
    const auto at = static_cast<std::size_t>(i);
    // [kh, kw, h, w]: the position along axis i that a plain convolution reads.
    Value k = along(counted(g, wide, window[at]), i, 4),
          o = along(counted(g, wide, i == 0 ? h : width), 2 + i, 4);
    Value plain = minus(plus(times(o, number(a.strides[at])), times(k, number(a.dilations[at]))),
                        number(a.pads_low[at]));
    plain = reshape_to(broadcast_to(plain, {window[0], window[1], h, width}), {1, taps, places});
    Value read = plus(take_axis(offset, 2, i), plain);
    axes.push_back({x.shape()[i + 2], reshape_to(read, {n * Dim(moved), taps * places})});
  }
  Value image = reshape_to(
      cast_to(x, wide), {n * Dim(moved), floor_div(channels, moved), x.shape()[2] * x.shape()[3]});
  Value values = sampled(image, axes);  // [n moved, channels / moved, taps places]
  if (c.has(4)) {
    Value mask = reshape_to(cast_to(c.in(4), wide), {n * Dim(moved), 1, taps * places});
    values = times(values, mask);
  }
  const Dim per_group = floor_div(channels, groups), outputs = w.shape()[0];
  values = reshape_to(values, {n, groups, per_group, taps, places});
  Value weights =
      reshape_to(cast_to(w, wide), {groups, floor_div(outputs, groups), per_group, taps});
  Value y =
      dot_general(values, weights, {{1, 0}}, {{2, 2}, {3, 3}});  // [groups, n, places, outputs]
  y = reshape_to(transpose_by(y, Axes{1, 0, 3, 2}), {n, outputs, h, width});
  if (c.has(3)) y = y + along_channels(cast_to(c.in(3), wide), y.shape());
  return {cast_to(y, x.dtype())};
}

constexpr ImportEntry scatter_table[] = {
    {"ConvTranspose", conv_transpose},
    {"Col2Im", column_to_image, 18},
    {"MaxUnpool", max_unpool, 9},
    {"DeformConv", deformable_conv, 19},
};

}  // namespace

std::span<const ImportEntry> scatter_imports() { return scatter_table; }

}  // namespace hone::onnx
