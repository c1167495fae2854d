#include "kernel/tiles/convolution.h"

#include <algorithm>

#include "base/checked.h"
#include "kernel/nest/blocking.h"

namespace hone {

namespace {

using Sizes = std::vector<std::int64_t>;

std::int64_t volume(const Sizes& s) {
  std::int64_t n = 1;
  for (std::int64_t x : s) n *= x;
  return n;
}

struct Choice {
  Sizes box;
  std::int64_t vectors = 1;
  double cycles = 0;  // of a whole image and one input element

  void offer(Sizes tile, std::int64_t width, double cost) {
    if (cycles > 0 && cost > 0.97 * cycles) return;
    box = std::move(tile);
    vectors = width;
    cycles = cost;
  }
};

std::int64_t boxes(const Sizes& out, const Sizes& box) {
  std::int64_t n = 1;
  for (std::size_t i = 0; i < out.size(); ++i) n *= ceil_ratio(out[i], box[i]);
  return n;
}

// Boxes of at most `most` pixels: rows of the last axis first, several of them if it is short.
void offer_boxes(const Sizes& out, std::int64_t most, std::int64_t vectors, double panels,
                 Choice& best) {
  Sizes box(out.size(), 1);
  const std::size_t last = out.size() - 1;
  for (std::int64_t wide = std::min(most, out[last]); wide >= 1; --wide) {
    box[last] = even_part(out[last], wide);
    if (last > 0) box[last - 1] = even_part(out[last - 1], most / box[last]);
    TileShape tile{volume(box), vectors};
    best.offer(box, vectors, tile.cycles() * panels * static_cast<double>(boxes(out, box)));
  }
}

Sizes typical_sizes(const Dims& dims) {
  Sizes out;
  for (const Dim& d : dims) out.push_back(tiling_size(d));
  return out;
}

Choice best_tile(const Convolution& c, const Sizes& out, const TargetInfo& target, int lanes) {
  Choice best;
  if (c.is_depthwise()) {
    // Sums of a row of pixels; its input pixels and the weights need the same number of registers
    // again.
    Sizes box(out.size(), 1);
    box.back() = even_part(out.back(), target.vector_registers / 4);
    best.offer(box, 1, 1);
    return best;
  }
  for (std::int64_t vectors : tile_widths) {
    std::int64_t most = TileShape::most_rows(vectors, target);
    if (most < 1) continue;
    auto panels = ceil_ratio(c.out_channels / c.groups, vectors * lanes) * c.groups;
    offer_boxes(out, most, vectors, static_cast<double>(panels), best);
  }
  return best;
}

// True if the window of a tile, with padding, is longer than the image rows whose layout it uses.
bool windows_overlap(const Convolution& c, const Sizes& tile) {
  for (std::size_t i = 1; i < c.in_place_strides.size(); ++i) {
    const std::int64_t row = c.input_extent(i, tile[i]) * c.in_place_strides[i];
    for (std::size_t outer = 0; outer < i; ++outer)
      if (c.input_extent(outer, tile[outer]) > 1 && row > c.in_place_strides[outer]) return true;
  }
  return false;
}

std::int64_t scratch_bytes(const Convolution& c, const ConvolutionTuning& t) {
  const ConvolutionScratch s = scratch_of(c, t);
  return (s.sums + s.copy) * byte_size(c.accumulate);
}

bool may_read_in_place(const Convolution& c, const ConvolutionTuning& t, const TargetInfo& target) {
  if (c.in_place_strides.empty() || windows_overlap(c, t.tile)) return false;
  // Vectors of depthwise channels must not reach past the last one.
  if (c.is_depthwise() && c.in_channels % t.columns != 0) return false;
  ConvolutionTuning in_place = t;
  in_place.in_place = true;
  return scratch_bytes(c, in_place) <= target.l2_bytes / 2;
}

// Cuts the whole image and all panels, which t holds, into chunks.
void cut_chunks(const Convolution& c, const Sizes& out, double tile_cycles,
                const TargetInfo& target, ConvolutionTuning& t) {
  const std::int64_t panels = panel_count(c, t);
  const double per_box = static_cast<double>(volume(c.window)) *
                         static_cast<double>(c.in_channels / c.groups) * tile_cycles;
  auto cycles = [&] {
    return per_box * static_cast<double>(boxes(t.chunk, t.tile)) *
           static_cast<double>(t.chunk_panels);
  };
  auto chunks = [&] {
    return boxes(out, t.chunk) * ceil_ratio(panels, t.chunk_panels) * certain_size(c.images);
  };
  auto halve = [&](std::size_t axis) {
    std::int64_t tiles = ceil_ratio(out[axis], t.tile[axis]);
    t.chunk[axis] = even_part(tiles, t.chunk[axis] / t.tile[axis] / 2) * t.tile[axis];
  };
  // The outermost axis with more than one tile: there the parts of the input overlap least.
  auto longest = [&] {
    for (std::size_t i = 0; i < out.size(); ++i)
      if (t.chunk[i] > t.tile[i]) return i;
    return out.size();
  };
  while (!t.in_place && longest() < out.size() && scratch_bytes(c, t) > target.l2_bytes / 4)
    halve(longest());
  // Each part of the image reads all weights, each part of the panels reads all of the image.
  const std::int64_t weights = volume(c.window) * c.in_channels / c.groups * c.out_channels;
  std::int64_t image = c.in_channels;
  for (std::size_t i = 0; i < out.size(); ++i) image *= c.input_extent(i, out[i]);
  while (chunks() < enough_chunks && cycles() > 2 * least_chunk_cycles) {
    const bool parts_panels = t.chunk_panels > 1 && !c.is_depthwise();
    const bool parts_image = longest() < out.size();
    const std::int64_t more_weights = boxes(out, t.chunk) * weights,
                       more_image = ceil_ratio(panels, t.chunk_panels) * image;
    if (parts_image && (!parts_panels || more_weights <= more_image))
      halve(longest());
    else if (parts_panels)
      t.chunk_panels = even_part(panels, t.chunk_panels / 2);
    else
      break;
  }
}

}  // namespace

std::int64_t ConvolutionTuning::rows() const { return volume(tile); }

Tuning ConvolutionTuning::named() const {
  Tuning out = {{"columns", columns}, {"chunk_panels", chunk_panels}, {"in_place", in_place}};
  for (std::size_t i = 0; i < tile.size(); ++i) {
    out.push_back({cat("tile", i), tile[i]});
    out.push_back({cat("chunk", i), chunk[i]});
  }
  return out;
}

ConvolutionTuning tuned(const Convolution& c, const TargetInfo& target, const Tuning& given) {
  const int lanes = target.lanes(byte_size(c.accumulate));
  const Sizes out = typical_sizes(c.out_size);
  const Choice best = best_tile(c, out, target, lanes);
  auto wanted = [&](const std::string& name, std::int64_t otherwise) {
    return value_or(given, name, otherwise);
  };
  ConvolutionTuning t;
  t.columns = whole_tiles(wanted("columns", best.vectors * lanes), lanes);
  t.chunk_panels = panel_count(c, t);
  for (std::size_t i = 0; i < out.size(); ++i) {
    t.tile.push_back(std::max<std::int64_t>(1, wanted(cat("tile", i), best.box[i])));
    t.chunk.push_back(round_up(out[i], t.tile[i]));
  }
  // In short rows, copying the first and last tile costs more than copying the whole row.
  constexpr std::int64_t few_tiles = 6;
  const bool copies_less = c.is_depthwise() && ceil_ratio(out.back(), t.tile.back()) < few_tiles;
  t.in_place = may_read_in_place(c, t, target) && wanted("in_place", !copies_less) != 0;
  // Limited by its multiply-adds or by their latency.
  const double cycles = c.is_depthwise()
                            ? 1 / static_cast<double>(boxes(out, t.tile) * t.chunk_panels)
                            : TileShape{t.rows(), t.columns / lanes}.cycles();
  cut_chunks(c, out, cycles, target, t);
  // A chunk that extends beyond the last tile is the same as one that ends there.
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t size = wanted(cat("chunk", i), t.chunk[i]);
    t.chunk[i] = whole_tiles(c.out_size[i].is_number() ? std::min(size, out[i]) : size, t.tile[i]);
  }
  t.chunk_panels =
      std::clamp<std::int64_t>(wanted("chunk_panels", t.chunk_panels), 1, panel_count(c, t));
  return t;
}

std::vector<Tuning> space_of(const Convolution& c, const TargetInfo& target) {
  const int lanes = target.lanes(byte_size(c.accumulate));
  const ConvolutionTuning best = tuned(c, target);
  std::vector<Tuning> out = {best.named()};
  auto offer = [&](const Tuning& change) {
    const Tuning t = tuned(c, target, change).named();
    if (std::find(out.begin(), out.end(), t) == out.end()) out.push_back(t);
  };
  const Sizes sizes = typical_sizes(c.out_size);
  if (c.is_depthwise()) {
    for (std::int64_t registers : {6, 3})
      offer({{cat("tile", sizes.size() - 1),
              even_part(sizes.back(), target.vector_registers / registers)}});
  } else {
    const Choice least = best_tile(c, sizes, target, lanes);
    for (std::int64_t vectors : tile_widths) {
      const std::int64_t most = TileShape::most_rows(vectors, target);
      if (most < 1) continue;
      const auto panels = ceil_ratio(c.out_channels / c.groups, vectors * lanes) * c.groups;
      Choice tile;
      offer_boxes(sizes, most, vectors, static_cast<double>(panels), tile);
      if (tile.cycles > 1.25 * least.cycles) continue;
      Tuning change = {{"columns", vectors * lanes}};
      for (std::size_t i = 0; i < sizes.size(); ++i)
        change.push_back({cat("tile", i), tile.box[i]});
      offer(change);
    }
  }
  offer({{"in_place", !best.in_place}});
  offer({{"chunk_panels", best.chunk_panels / 2}});
  offer({{"chunk0", best.chunk[0] / 2}});
  offer({{"chunk0", best.chunk[0] * 2}});
  return out;
}

ConvolutionScratch scratch_of(const Convolution& c, const ConvolutionTuning& t) {
  const std::int64_t bytes = byte_size(c.accumulate);
  ConvolutionScratch s;
  s.sums = round_up(t.rows() * t.columns, 64 / bytes);
  const std::size_t axes = t.chunk.size();
  if (t.in_place) s.strides = c.in_place_strides;
  s.strides.resize(axes);
  // Vectors of depthwise channels may reach past the last one.
  std::int64_t stride = c.in_channels, end = c.in_channels + t.columns;
  for (std::size_t i = axes; i-- > 0;) {
    const std::int64_t size = c.input_extent(i, t.in_place ? t.tile[i] : t.chunk[i]);
    if (!t.in_place) s.strides[i] = stride;
    end += (size - 1) * s.strides[i];
    stride *= size;
    if (i + 1 == axes) stride = spread_stride(stride, bytes);
  }
  s.copy = round_up(end, 64 / bytes);
  return s;
}

std::int64_t panel_count(const Convolution& c, const ConvolutionTuning& t) {
  if (c.is_depthwise()) return ceil_ratio(c.out_channels, t.columns);
  return c.groups * ceil_ratio(c.out_channels / c.groups, t.columns);
}

Type packed_type(const Convolution& c, const ConvolutionTuning& t) {
  Dims dims;
  if (!c.is_depthwise()) dims.push_back(c.groups);
  dims.push_back(panel_count(c, t) / (c.is_depthwise() ? 1 : c.groups));
  for (std::int64_t w : c.window) dims.push_back(w);
  if (!c.is_depthwise()) dims.push_back(c.in_channels / c.groups);
  dims.push_back(t.columns);
  return {c.packed_dtype, Shape(dims)};
}

}  // namespace hone
