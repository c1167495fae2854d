// Resize and Upsample.
#include <algorithm>
#include <cmath>

#include "verify/onnx/call.h"

namespace hone::onnx {

namespace {

// One axis: scaled from `in` to `out` places. The region of a crop is [from, to].
struct Stretch {
  std::int64_t in, out;
  double scale;
  double from = 0, to = 1;
};

struct Tap {
  std::int64_t at;
  double weight;
};
// What a place of the result reads of an axis.
struct Taps {
  std::vector<Tap> list;
  bool is_outside = false;  // of a crop's source
  bool is_open = false;     // rounding decides what is read
};

struct Options {
  std::string mode, coordinates, nearest;
  double cubic = -0.75, outside = 0;
  bool drops_outside = false, smooths = false;
};

class Resizer {
 public:
  explicit Resizer(Options options) : how_(std::move(options)) {}

  Taps taps(std::int64_t o, const Stretch& s) const {
    const double x = coordinate(static_cast<double>(o), s);
    if (how_.coordinates == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(s.in) - 1))
      return {{}, true};
    if (how_.mode == "nearest") return nearest(x, s.in);
    if (how_.mode != "linear" && how_.mode != "cubic") throw NotJudged();
    // A filter against aliases is as wide as a place of the result is in the source.
    const double narrow = how_.smooths ? std::fmin(s.scale, 1) : 1,
                 reach = (how_.mode == "linear" ? 1 : 2) / narrow;
    if (!(reach < 4096)) throw NotJudged();
    const auto first = static_cast<std::int64_t>(std::floor(x - reach)),
               last = static_cast<std::int64_t>(std::ceil(x + reach));
    Taps out;
    double sum = 0;
    for (std::int64_t i = first; i <= last; ++i) {
      Tap t{inside(i, s.in), weight((static_cast<double>(i) - x) * narrow)};
      if (how_.drops_outside && t.at != i) t.weight = 0;
      sum += t.weight;
      out.list.push_back(t);
    }
    for (Tap& t : out.list)
      if (how_.drops_outside || how_.smooths) t.weight /= sum;
    return out;
  }
  double outside() const { return how_.outside; }

 private:
  static std::int64_t inside(std::int64_t i, std::int64_t size) {
    return std::clamp<std::int64_t>(i, 0, size - 1);
  }

  double weight(double distance) const {
    const double t = std::fabs(distance), a = how_.cubic;
    if (how_.mode == "linear") return std::fmax(1 - t, 0);
    if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
    return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
  }

  double coordinate(double x, const Stretch& s) const {
    const auto in = static_cast<double>(s.in), n = static_cast<double>(s.out);
    const std::string& c = how_.coordinates;
    if (c == "asymmetric") return x / s.scale;
    if (c == "tf_half_pixel_for_nn") return (x + 0.5) / s.scale;
    // The resized length is not rounded, as the suite has it: 2.4 where 4 is scaled by 0.6.
    const double length = std::fabs(in * s.scale - n) < 1e-9 ? n : in * s.scale;
    if (c == "align_corners") return length == 1 ? 0 : x * (in - 1) / (length - 1);
    if (c == "tf_crop_and_resize") {
      if (length <= 1) return 0.5 * (s.from + s.to) * (in - 1);
      return s.from * (in - 1) + x * (s.to - s.from) * (in - 1) / (length - 1);
    }
    const double half = (x + 0.5) / s.scale - 0.5;
    if (c == "half_pixel") return half;
    if (c == "pytorch_half_pixel") {
      if (length > 1) return half;
      // The page says 0, ONNX's reference implementation -0.5.
      if (how_.mode == "cubic" || how_.smooths) throw NotJudged();
      return 0;
    }
    if (c != "half_pixel_symmetric") throw NotJudged();
    return in / 2 * (1 - n / length) + half;
  }

  // Rounding decides where the coordinate is next to a border and not on it.
  Taps nearest(double x, std::int64_t size) const {
    const bool rounds = how_.nearest.starts_with("round");
    const double from = rounds ? x - 0.5 : x, off = std::fabs(from - std::nearbyint(from));
    if (off > 0 && off < 1e-4) return {{}, false, true};
    double y = 0;
    if (how_.nearest == "floor")
      y = std::floor(x);
    else if (how_.nearest == "ceil")
      y = std::ceil(x);
    else if (how_.nearest == "round_prefer_ceil")
      y = std::floor(x + 0.5);
    else if (how_.nearest == "round_prefer_floor")
      y = std::ceil(x - 0.5);
    else
      throw NotJudged();
    return {{{inside(static_cast<std::int64_t>(y), size), 1}}};
  }

  Options how_;
};

Numbers along(const Numbers& x, std::size_t axis, const Stretch& s, const Resizer& r) {
  Numbers out{x.dtype, x.dims, {}};
  out.dims[axis] = s.out;
  std::vector<Taps> taps;
  for (std::int64_t o = 0; o < s.out; ++o) taps.push_back(r.taps(o, s));
  for_index(out.dims, [&](const Sizes& index) {
    const Taps& here = taps[static_cast<std::size_t>(index[axis])];
    if (here.is_open) return out.add_open();
    double sum = here.is_outside ? r.outside() : 0;
    bool is_open = false;
    for (const Tap& t : here.list) {
      Sizes from = index;
      from[axis] = t.at;
      if (t.weight == 0) continue;
      sum += t.weight * at(x, from);
      is_open = is_open || x.is_open(static_cast<std::size_t>(place(from, strides_of(x.dims))));
    }
    if (is_open) return out.add_open();
    out.values.push_back(sum);
  });
  return out;
}

// Of the axes that are named: sizes, or scales, which are kept as they are.
std::vector<Stretch> stretches_of(Call& c, const std::vector<std::size_t>& axes) {
  const Sizes& dims = c.in(0).dims;
  const std::string keeps = c.text("keep_aspect_ratio_policy", "stretch");
  const bool has_sizes = c.has(3) && c.in(3).count() > 0;
  if (!has_sizes && !(c.has(2) && c.in(2).count() > 0)) throw NotJudged();
  std::vector<Stretch> out;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    Stretch s{dims[axes[i]], 0, 0};
    if (has_sizes) {
      s.out = c.list(3).at(i);
      s.scale = static_cast<double>(s.out) / static_cast<double>(s.in);
    } else {
      s.scale = c.in(2).values.at(i);
      if (!(s.scale > 0)) throw NotJudged();
      s.out = static_cast<std::int64_t>(std::floor(static_cast<double>(s.in) * s.scale));
    }
    out.push_back(s);
  }
  if (!has_sizes || keeps == "stretch" || out.empty()) return out;
  double scale = out[0].scale;  // of all: the smallest or the largest
  for (const Stretch& s : out)
    scale = keeps == "not_larger" ? std::fmin(scale, s.scale) : std::fmax(scale, s.scale);
  if (keeps != "not_larger" && keeps != "not_smaller") throw NotJudged();
  for (Stretch& s : out) {
    const double size = scale * static_cast<double>(s.in);
    if (std::fabs(size - std::floor(size) - 0.5) < 1e-6) throw NotJudged();
    s.scale = scale;
    s.out = static_cast<std::int64_t>(std::floor(size + 0.5));
  }
  return out;
}

std::vector<Numbers> resize(Call& c) {
  const Options how{c.text("mode", "nearest"),
                    c.text("coordinate_transformation_mode", "half_pixel"),
                    c.text("nearest_mode", "round_prefer_floor"),
                    c.real("cubic_coeff_a", -0.75),
                    c.real("extrapolation_value", 0),
                    c.integer("exclude_outside", 0) != 0,
                    c.integer("antialias", 0) != 0};
  const bool is_crop = how.coordinates == "tf_crop_and_resize";
  const Resizer r(how);
  std::vector<std::size_t> axes;
  const auto given = c.integers("axes");
  for (int i = 0; !given && i < c.rank(); ++i) axes.push_back(static_cast<std::size_t>(i));
  if (given)
    for (std::int64_t a : *given) axes.push_back(c.axis(a, c.rank()));
  std::vector<Stretch> all = stretches_of(c, axes);
  Numbers now = c.in(0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    Stretch& s = all[i];
    if (is_crop) {
      s.from = c.in(1).values.at(i);
      s.to = c.in(1).values.at(axes.size() + i);
    }
    if (s.scale == 1 && s.out == s.in && (!is_crop || (s.from == 0 && s.to == 1))) continue;
    now = along(now, axes[i], s, r);
  }
  return {now};
}

// By repeating elements, or from the two on both sides. Resize of version 10 does the same.
std::vector<Numbers> upsample(Call& c) {
  Options how{c.text("mode", "nearest"), "asymmetric", "floor"};
  if (how.mode == "bilinear") how.mode = "linear";
  const Numbers& x = c.in(0);
  std::vector<double> scales = c.reals("scales");
  if (c.has(1)) scales = c.in(1).values;
  if (scales.size() != x.dims.size()) throw NotJudged();
  const Resizer r(how);
  Numbers now = x;
  for (std::size_t i = 0; i < scales.size(); ++i) {
    if (!(scales[i] > 0)) throw NotJudged();
    const double size = std::floor(static_cast<double>(x.dims[i]) * scales[i]);
    if (scales[i] != 1)
      now = along(now, i, {x.dims[i], static_cast<std::int64_t>(size), scales[i]}, r);
  }
  return {now};
}

std::vector<Numbers> resize_of_any_version(Call& c) {
  return c.opset() < 11 ? upsample(c) : resize(c);
}

constexpr MeaningRow resize_rows[] = {{"Resize", resize_of_any_version}, {"Upsample", upsample}};

}  // namespace

std::span<const MeaningRow> resize_meanings() { return resize_rows; }

}  // namespace hone::onnx
