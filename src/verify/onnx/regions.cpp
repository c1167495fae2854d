// Operators that read or write regions of images, and those that turn pairs of elements.
#include <algorithm>
#include <cmath>

#include "verify/onnx/call.h"

namespace hone::onnx {

namespace {

// Between the four elements around a place of a plane; beyond its ends there are zeros.
double between(const Numbers& x, std::int64_t n, std::int64_t channel, double row, double column) {
  const double top = std::floor(row), left = std::floor(column), down = row - top,
               right = column - left;
  const auto element = [&](double r, double k) -> double {
    if (r < 0 || k < 0 || r >= static_cast<double>(x.dims[2]) ||
        k >= static_cast<double>(x.dims[3]))
      return 0;
    return at(x, {n, channel, static_cast<std::int64_t>(r), static_cast<std::int64_t>(k)});
  };
  return (element(top, left) * (1 - right) + element(top, left + 1) * right) * (1 - down) +
         (element(top + 1, left) * (1 - right) + element(top + 1, left + 1) * right) * down;
}

// ---- regions of interest

struct Region {
  double start[2], bin[2];  // of rows and columns, in elements
  std::int64_t grid[2];     // samples of a bin
  std::int64_t batch;
};

Region region_of(Call& c, std::int64_t r, const std::int64_t (&out)[2], bool half) {
  const Numbers& boxes = c.in(1);
  const double scale = c.real("spatial_scale", 1);
  const std::int64_t samples = c.integer("sampling_ratio", 0);
  Region region;
  for (const int i : {0, 1}) {
    const double shift = half ? 0.5 : 0;
    region.start[i] = at(boxes, {r, 1 - i}) * scale - shift;
    double size = at(boxes, {r, 3 - i}) * scale - shift - region.start[i];
    if (!half) size = std::fmax(size, 1);
    if (!(size > 0)) throw NotJudged();
    region.bin[i] = size / static_cast<double>(out[i]);
    if (std::fabs(region.bin[i] - std::nearbyint(region.bin[i])) < 1e-6 && samples <= 0 &&
        region.bin[i] != std::nearbyint(region.bin[i]))
      throw NotJudged();  // rounding decides how many samples there are
    region.grid[i] = samples > 0 ? samples : static_cast<std::int64_t>(std::ceil(region.bin[i]));
    check_work(static_cast<double>(region.grid[i]) * 1e3);
  }
  region.batch = c.list(2).at(static_cast<std::size_t>(r));
  if (region.batch < 0 || region.batch >= c.in(0).dims[0]) throw NotJudged();
  return region;
}

std::vector<Numbers> roi_align(Call& c) {
  const Numbers& x = c.in(0);
  const bool half = c.text("coordinate_transformation_mode",
                           c.opset() < 16 ? "output_half_pixel" : "half_pixel") == "half_pixel";
  // Of the largest the page does not say what is compared.
  if (c.text("mode", "avg") != "avg" || x.dims.size() != 4) throw NotJudged();
  const std::int64_t size[2] = {c.integer("output_height", 1), c.integer("output_width", 1)};
  Numbers out{x.dtype, {c.in(1).dims.at(0), x.dims[1], size[0], size[1]}, {}};
  std::vector<Region> regions;
  for (std::int64_t r = 0; r < out.dims[0]; ++r) regions.push_back(region_of(c, r, size, half));
  for_index(out.dims, [&](const Sizes& index) {
    const Region& r = regions[static_cast<std::size_t>(index[0])];
    const auto sampled = [&](int i, std::int64_t k) {
      return r.start[i] + static_cast<double>(index[static_cast<std::size_t>(i) + 2]) * r.bin[i] +
             (static_cast<double>(k) + 0.5) * r.bin[i] / static_cast<double>(r.grid[i]);
    };
    double sum = 0;
    for (std::int64_t i = 0; i < r.grid[0]; ++i)
      for (std::int64_t k = 0; k < r.grid[1]; ++k) {
        double v = sampled(0, i), u = sampled(1, k);
        const auto height = static_cast<double>(x.dims[2]), width = static_cast<double>(x.dims[3]);
        if (v < -1 || u < -1 || v > height || u > width) continue;
        v = std::clamp(v, 0.0, height - 1);
        u = std::clamp(u, 0.0, width - 1);
        sum += between(x, r.batch, index[1], v, u);
      }
    out.values.push_back(sum / static_cast<double>(r.grid[0] * r.grid[1]));
  });
  return {out};
}

// ---- images of columns

std::vector<Numbers> col_to_image(Call& c) {
  const Numbers& x = c.in(0);
  const Sizes image = c.list(1), block = c.list(2);
  const std::size_t n = image.size();
  if (x.dims.size() != 3 || block.size() != n) throw NotJudged();
  const Sizes strides = c.integers("strides").value_or(Sizes(n, 1)),
              dilations = c.integers("dilations").value_or(Sizes(n, 1)),
              pads = c.integers("pads").value_or(Sizes(2 * n, 0));
  Sizes steps;
  for (std::size_t i = 0; i < n; ++i)
    steps.push_back((image[i] + pads.at(i) + pads.at(n + i) - dilations[i] * (block[i] - 1) - 1) /
                        strides[i] +
                    1);
  const std::int64_t channels = x.dims[1] / std::max<std::int64_t>(product(block), 1);
  if (product(steps) != x.dims[2]) throw NotJudged();
  Numbers out{x.dtype, {x.dims[0], channels}, {}};
  out.dims.insert(out.dims.end(), image.begin(), image.end());
  out.values.assign(static_cast<std::size_t>(out.count()), 0);
  const Sizes to = strides_of(out.dims);
  std::size_t from = 0;
  for_index({x.dims[0], channels}, [&](const Sizes& plane) {
    for_index(block, [&](const Sizes& k) {
      for_index(steps, [&](const Sizes& step) {
        const double here = x.values.at(from++);
        Sizes target = plane;
        for (std::size_t i = 0; i < n; ++i) {
          target.push_back(step[i] * strides[i] + k[i] * dilations[i] - pads[i]);
          if (target.back() < 0 || target.back() >= image[i]) return;
        }
        out.values[static_cast<std::size_t>(place(target, to))] += here;
      });
    });
  });
  return {out};
}

// Puts each element where the pool took it from; the rest is zero.
std::vector<Numbers> max_unpool(Call& c) {
  const Numbers &x = c.in(0), &places = c.in(1);
  const auto kernel = c.integers("kernel_shape");
  if (c.has(2) || !kernel || x.dims.size() != kernel->size() + 2) throw NotJudged();
  const std::size_t n = kernel->size();
  const Sizes strides = c.integers("strides").value_or(Sizes(n, 1)),
              pads = c.integers("pads").value_or(Sizes(2 * n, 0));
  Numbers out{x.dtype, {x.dims[0], x.dims[1]}, {}};
  for (std::size_t i = 0; i < n; ++i)
    out.dims.push_back((x.dims[i + 2] - 1) * strides[i] - pads.at(i) - pads.at(n + i) +
                       (*kernel)[i]);
  out.values.assign(static_cast<std::size_t>(out.count()), 0);
  std::vector<bool> taken(out.values.size(), false);
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const double to = places.values.at(i);
    if (!(to >= 0)) throw NotJudged();
    const auto k = static_cast<std::size_t>(to);
    if (taken.at(k)) throw NotJudged();  // which of two stays is not said
    taken[k] = true;
    out.values[k] = x.values[i];
  }
  return {out};
}

// ---- grids and offsets

// Places from -1 to 1 of the target, of which each row of `theta` makes a coordinate.
std::vector<Numbers> affine_grid(Call& c) {
  const Numbers& theta = c.in(0);
  const Sizes size = c.list(1);
  const bool corners = c.integer("align_corners", 0) != 0;
  const std::size_t n = size.size() - 2;
  if (size.size() < 4 || size.size() > 5) throw NotJudged();
  Numbers out{theta.dtype, {size[0]}, {}};
  out.dims.insert(out.dims.end(), size.begin() + 2, size.end());
  out.dims.push_back(static_cast<std::int64_t>(n));
  for_index(out.dims, [&](const Sizes& index) {
    const std::int64_t row = index.back();
    double sum = at(theta, {index[0], row, static_cast<std::int64_t>(n)});
    for (std::size_t i = 0; i < n; ++i) {  // the last axis first
      const auto steps = static_cast<double>(size[size.size() - 1 - i]),
                 k = static_cast<double>(index[n - i]);
      if (corners && steps == 1) throw NotJudged();
      const double here = corners ? 2 * k / (steps - 1) - 1 : (2 * k + 1) / steps - 1;
      sum += here * at(theta, {index[0], row, static_cast<std::int64_t>(i)});
    }
    out.values.push_back(sum);
  });
  return {out};
}

// A convolution whose places of the source are shifted each by its own offset.
std::vector<Numbers> deform_conv(Call& c) {
  const Numbers &x = c.in(0), &weight = c.in(1), &offset = c.in(2);
  if (x.dims.size() != 4) throw NotJudged();
  const Sizes kernel(weight.dims.begin() + 2, weight.dims.end());
  if (c.integers("kernel_shape").value_or(kernel) != kernel) throw NotJudged();
  const Sizes strides = c.integers("strides").value_or(Sizes(2, 1)),
              dilations = c.integers("dilations").value_or(Sizes(2, 1)),
              pads = c.integers("pads").value_or(Sizes(4, 0));
  const std::int64_t groups = c.integer("group", 1), shifts = c.integer("offset_group", 1),
                     each = weight.dims[1], per_shift = x.dims[1] / shifts,
                     places = product(kernel);
  Numbers out{x.dtype, {x.dims[0], weight.dims[0], offset.dims.at(2), offset.dims.at(3)}, {}};
  check_work(static_cast<double>(out.count()) * static_cast<double>(each * places));
  for_index(out.dims, [&](const Sizes& index) {
    double sum = c.has(3) ? c.in(3).values.at(static_cast<std::size_t>(index[1])) : 0;
    const std::int64_t first = index[1] / (weight.dims[0] / groups) * each;
    for (std::int64_t i = 0; i < each; ++i)
      for_index(kernel, [&](const Sizes& k) {
        const std::int64_t channel = first + i, shift = channel / per_shift,
                           at_kernel = shift * places + k[0] * kernel[1] + k[1];
        const auto moved = [&](std::size_t axis) {
          const auto a = static_cast<std::int64_t>(axis);
          return static_cast<double>(index[axis + 2] * strides[axis] + k[axis] * dilations[axis] -
                                     pads[axis]) +
                 at(offset, {index[0], at_kernel * 2 + a, index[2], index[3]});
        };
        const double part = between(x, index[0], channel, moved(0), moved(1)),
                     mask = c.has(4) ? at(c.in(4), {index[0], at_kernel, index[2], index[3]}) : 1;
        sum += part * mask * at(weight, {index[1], i, k[0], k[1]});
      });
    out.values.push_back(sum);
  });
  return {out};
}

// ---- signals and embeddings

std::vector<Numbers> short_time_transform(Call& c) {
  const Numbers& x = c.in(0);
  const bool one_sided = c.integer("onesided", 1) != 0,
             is_complex = x.dims.size() == 3 && x.dims[2] == 2;
  const std::int64_t step = c.list(1).at(0), batch = x.dims.at(0), length = x.dims.at(1),
                     parts = is_complex ? 2 : 1;
  if (!c.has(2) && !c.has(3)) throw NotJudged();
  const std::int64_t n = c.has(3) ? c.list(3).at(0) : c.in(2).dims.at(0);
  if ((is_complex && one_sided) || n < 1 || n > length || step < 1) throw NotJudged();
  Numbers out{x.dtype, {batch, (length - n) / step + 1, one_sided ? n / 2 + 1 : n, 2}, {}};
  check_work(static_cast<double>(out.count()) * static_cast<double>(n));
  for_index(out.dims, [&](const Sizes& index) {
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const auto from = static_cast<std::size_t>((index[0] * length + index[1] * step + i) * parts);
      const double by = c.has(2) ? c.in(2).values.at(static_cast<std::size_t>(i)) : 1,
                   re = by * x.values.at(from), im = is_complex ? by * x.values.at(from + 1) : 0,
                   turn =
                       -2 * M_PI * static_cast<double>(index[2] * i % n) / static_cast<double>(n);
      sum += index[3] == 0 ? re * std::cos(turn) - im * std::sin(turn)
                           : re * std::sin(turn) + im * std::cos(turn);
    }
    out.values.push_back(sum);
  });
  return {out};
}

// Turns pairs of elements by an angle for each place of a sequence.
std::vector<Numbers> rotary_embedding(Call& c) {
  const Numbers& x = c.in(0);
  const bool is_flat = x.dims.size() == 3, interleaved = c.integer("interleaved", 0) != 0;
  const std::int64_t given = c.integer("num_heads", 0);
  if ((x.dims.size() != 4 && !is_flat) || (is_flat && given < 1)) throw NotJudged();
  const std::int64_t heads = is_flat ? given : x.dims[1], length = x.dims[is_flat ? 1 : 2],
                     width = is_flat ? x.dims[2] / given : x.dims[3];
  std::int64_t turned = c.integer("rotary_embedding_dim", 0);
  if (turned == 0) turned = width;
  if (turned > width || c.in(1).dims.empty() || c.in(1).dims.back() != turned / 2)
    throw NotJudged();
  Numbers out = x;
  for_index({x.dims[0], heads, length, turned / 2}, [&](const Sizes& i) {
    const std::int64_t first = is_flat ? ((i[0] * length + i[2]) * heads + i[1]) * width
                                       : ((i[0] * heads + i[1]) * length + i[2]) * width;
    const auto a = static_cast<std::size_t>(first + (interleaved ? 2 * i[3] : i[3])),
               b = static_cast<std::size_t>(first +
                                            (interleaved ? 2 * i[3] + 1 : i[3] + turned / 2));
    const auto angle = [&](std::size_t input) {
      if (!c.has(3)) return at(c.in(input), {i[0], i[2], i[3]});
      const double row = at(c.in(3), {i[0], i[2]});
      if (!(row >= 0 && row < static_cast<double>(c.in(input).dims.at(0)))) throw NotJudged();
      return at(c.in(input), {static_cast<std::int64_t>(row), i[3]});
    };
    const double cos = angle(1), sin = angle(2);
    out.values[a] = cos * x.values[a] - sin * x.values[b];
    out.values[b] = sin * x.values[a] + cos * x.values[b];
  });
  return {out};
}

constexpr MeaningRow region_rows[] = {{"RoiAlign", roi_align},
                                      {"Col2Im", col_to_image},
                                      {"MaxUnpool", max_unpool, Kind::copies},
                                      {"AffineGrid", affine_grid},
                                      {"DeformConv", deform_conv},
                                      {"STFT", short_time_transform},
                                      {"RotaryEmbedding", rotary_embedding}};

}  // namespace

std::span<const MeaningRow> region_meanings() { return region_rows; }

}  // namespace hone::onnx
