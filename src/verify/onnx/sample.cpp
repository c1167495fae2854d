// Operators that read between the elements of an image, or choose boxes in one.
#include <algorithm>
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

struct Box {
  double low[2], high[2];

  double area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
};

// Two opposite corners, or a middle with width and height.
Box box_at(const Numbers& boxes, std::int64_t at, bool from_center) {
  const double* v = boxes.values.data() + at * 4;
  if (from_center) return {{v[1] - v[3] / 2, v[0] - v[2] / 2}, {v[1] + v[3] / 2, v[0] + v[2] / 2}};
  return {{std::fmin(v[0], v[2]), std::fmin(v[1], v[3])},
          {std::fmax(v[0], v[2]), std::fmax(v[1], v[3])}};
}

// What both have, of what one of them has.
double overlap(const Box& a, const Box& b) {
  if (a.area() <= 0 || b.area() <= 0 || a.high[0] < a.low[0] || b.high[0] < b.low[0])
    throw NotJudged();
  double both = 1;
  for (int i : {0, 1})
    both *= std::fmax(0, std::fmin(a.high[i], b.high[i]) - std::fmax(a.low[i], b.low[i]));
  return both / (a.area() + b.area() - both);
}

// Of each batch and class the boxes from the best score on that none before overlaps too much.
std::vector<Numbers> non_max_suppression(Call& c) {
  const Numbers &boxes = c.in(0), &scores = c.in(1);
  const std::int64_t most = c.has(2) ? c.list(2).at(0) : 0;
  const double limit = c.has(3) ? c.in(3).values.at(0) : 0,
               least = c.has(4) ? c.in(4).values.at(0) : -INFINITY;
  const bool from_center = c.integer("center_point_box", 0) != 0;
  if (!(limit >= 0 && limit <= 1)) throw NotJudged();
  const std::int64_t batches = scores.dims.at(0), classes = scores.dims.at(1),
                     count = scores.dims.at(2);
  Numbers out{DType::i64, {0, 3}, {}};
  for (std::int64_t row = 0; row < batches * classes; ++row) {
    std::vector<std::int64_t> order, kept;
    const auto score = [&](std::int64_t i) {
      return scores.values.at(static_cast<std::size_t>(row * count + i));
    };
    for (std::int64_t i = 0; i < count; ++i)
      if (score(i) > least) order.push_back(i);
    std::ranges::stable_sort(order, [&](auto a, auto b) { return score(a) > score(b); });
    for (std::size_t k = 0; k + 1 < order.size(); ++k)
      if (score(order[k]) == score(order[k + 1])) throw NotJudged();
    for (std::int64_t i : order) {
      const auto box = [&](std::int64_t at) {
        return box_at(boxes, row / classes * count + at, from_center);
      };
      bool is_free = static_cast<std::int64_t>(kept.size()) < most;
      for (std::int64_t k : kept) {
        const double common = overlap(box(i), box(k));
        if (std::fabs(common - limit) < 1e-5) throw NotJudged();
        is_free = is_free && common <= limit;
      }
      if (!is_free) continue;
      kept.push_back(i);
      for (std::int64_t n : {row / classes, row % classes, i})
        out.values.push_back(static_cast<double>(n));
      ++out.dims[0];
    }
  }
  return {out};
}

constexpr MeaningRow sample_rows[] = {{"GridSample", grid_sample},
                                      {"NonMaxSuppression", non_max_suppression}};

}  // namespace

std::span<const MeaningRow> sample_meanings() { return sample_rows; }

}  // namespace hone::onnx
