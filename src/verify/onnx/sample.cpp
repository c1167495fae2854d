// Operators that read between the elements of an image.
#include <cmath>

#include "verify/onnx/call.h"

namespace hone::onnx {

namespace {

enum class Beyond : std::uint8_t { zeros, border, reflection };

// What lies at a place of an axis of `size` elements; nothing: beyond it.
std::optional<double> inside(double at, std::int64_t size, Beyond how, bool corners) {
  const double low = corners ? 0 : -0.5, high = static_cast<double>(size) - (corners ? 1 : 0.5);
  if (how == Beyond::zeros) return at;
  if (how == Beyond::border) return std::fmin(std::fmax(at, 0), static_cast<double>(size) - 1);
  const double span = high - low;
  if (span == 0) return 0;
  const double off = std::fabs(at - low), turns = std::floor(off / span), rest = off - turns * span;
  return std::fmod(turns, 2) == 0 ? low + rest : high - rest;
}

class Sampler {
 public:
  Sampler(const Numbers& x, Beyond beyond, bool corners)
      : x_(x), height_(x.dims[2]), width_(x.dims[3]), beyond_(beyond), corners_(corners) {}

  double nearest(std::int64_t plane, double v, double u) const {
    for (double at : {v, u}) {
      const double off = std::fabs(at - std::floor(at) - 0.5);
      if (off < 1e-4) throw NotJudged();  // the page does not say which of two is taken
    }
    return element(plane, std::nearbyint(v), std::nearbyint(u));
  }

  double linear(std::int64_t plane, double v, double u) const {
    const double top = std::floor(v), left = std::floor(u), down = v - top, right = u - left;
    return element(plane, top, left) * (1 - down) * (1 - right) +
           element(plane, top, left + 1) * (1 - down) * right +
           element(plane, top + 1, left) * down * (1 - right) +
           element(plane, top + 1, left + 1) * down * right;
  }

  // In elements, of a coordinate from -1 to 1.
  double place(double at, std::int64_t size) const {
    const auto n = static_cast<double>(size);
    const double here = corners_ ? (at + 1) / 2 * (n - 1) : ((at + 1) * n - 1) / 2;
    return inside(here, size, beyond_, corners_).value_or(0);
  }
  std::int64_t height() const { return height_; }
  std::int64_t width() const { return width_; }

 private:
  double element(std::int64_t plane, double row, double column) const {
    if (beyond_ != Beyond::zeros) {
      row = within(row, height_);
      column = within(column, width_);
    }
    if (row < 0 || column < 0 || row >= static_cast<double>(height_) ||
        column >= static_cast<double>(width_))
      return 0;
    return x_.values.at(
        static_cast<std::size_t>((plane * height_ + static_cast<std::int64_t>(row)) * width_ +
                                 static_cast<std::int64_t>(column)));
  }
  double within(double at, std::int64_t size) const {
    if (beyond_ == Beyond::border)
      return std::fmin(std::fmax(at, 0), static_cast<double>(size) - 1);
    return std::fmin(std::fmax(*inside(at, size, beyond_, corners_), 0),
                     static_cast<double>(size) - 1);
  }

  const Numbers& x_;
  std::int64_t height_, width_;
  Beyond beyond_;
  bool corners_;
};

std::vector<Numbers> grid_sample(Call& c) {
  const Numbers &x = c.in(0), &grid = c.in(1);
  if (x.dims.size() != 4 || grid.dims.size() != 4 || grid.dims[3] != 2) throw NotJudged();
  const std::string mode = c.text("mode", c.opset() < 20 ? "bilinear" : "linear"),
                    padding = c.text("padding_mode", "zeros");
  const bool is_nearest = mode == "nearest", corners = c.integer("align_corners", 0) != 0;
  if (!is_nearest && mode != "linear" && mode != "bilinear") throw NotJudged();
  const Sampler from(x,
                     padding == "zeros"    ? Beyond::zeros
                     : padding == "border" ? Beyond::border
                                           : Beyond::reflection,
                     corners);
  Numbers out{x.dtype, {x.dims[0], x.dims[1], grid.dims[1], grid.dims[2]}, {}};
  for_index(out.dims, [&](const Sizes& i) {
    const auto at =
        static_cast<std::size_t>(((i[0] * grid.dims[1] + i[2]) * grid.dims[2] + i[3]) * 2);
    const double u = from.place(grid.values.at(at), from.width()),
                 v = from.place(grid.values.at(at + 1), from.height());
    if (std::isnan(u) || std::isnan(v)) throw NotJudged();
    const std::int64_t plane = i[0] * x.dims[1] + i[1];
    out.values.push_back(is_nearest ? from.nearest(plane, v, u) : from.linear(plane, v, u));
  });
  return {out};
}

constexpr MeaningRow sample_rows[] = {{"GridSample", grid_sample}};

}  // namespace

std::span<const MeaningRow> sample_meanings() { return sample_rows; }

}  // namespace hone::onnx
