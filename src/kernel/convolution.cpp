#include "kernel/convolution.h"

#include "base/checked.h"
#include "kernel/blocking.h"

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

// Boxes of at most `most` pixels: rows of the last axis first, several of them where it is short.
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
    // Sums of a row of pixels; the pixels that they are made of and the weights need as many
    // registers again.
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

std::int64_t input_extent(const Convolution& c, std::size_t axis, std::int64_t outputs) {
  return (outputs - 1) * c.strides[axis] + (c.window[axis] - 1) * c.dilations[axis] + 1;
}

// The window of a tile, with its padding, is longer than the rows of the image that it is laid out
// like.
bool windows_overlap(const Convolution& c) {
  for (std::size_t i = 1; i < c.in_place_strides.size(); ++i) {
    const std::int64_t row = input_extent(c, i, c.tile[i]) * c.in_place_strides[i];
    for (std::size_t outer = 0; outer < i; ++outer)
      if (input_extent(c, outer, c.tile[outer]) > 1 && row > c.in_place_strides[outer]) return true;
  }
  return false;
}

}  // namespace

void choose_blocking(Convolution& c, const TargetInfo& target) {
  const std::int64_t bytes = byte_size(c.accumulate);
  const int lanes = target.lanes(bytes);
  const Sizes out = typical_sizes(c.out_size);
  const Choice tile = best_tile(c, out, target, lanes);
  c.block = static_cast<int>(tile.vectors) * lanes;
  c.tile = tile.box;
  const std::int64_t panels = panel_count(c);
  c.chunk_panels = panels;
  c.chunk.clear();
  for (std::size_t i = 0; i < out.size(); ++i) c.chunk.push_back(round_up(out[i], c.tile[i]));
  // Vectors of depthwise channels must not reach past the last one, and in short rows the copies of
  // the first and last tile cost more than one of the whole.
  constexpr std::int64_t few_tiles = 6;
  bool copies_less = c.is_depthwise() && (c.in_channels % c.block != 0 ||
                                          ceil_ratio(out.back(), c.tile.back()) < few_tiles);
  if (copies_less || windows_overlap(c) || scratch_bytes(c) > target.l2_bytes / 2)
    c.in_place_strides.clear();
  const double per_box = static_cast<double>(volume(c.window)) *
                         static_cast<double>(c.in_channels / c.groups) * tile.cycles /
                         static_cast<double>(boxes(out, c.tile)) / static_cast<double>(panels);
  auto cycles = [&] {
    return per_box * static_cast<double>(boxes(c.chunk, c.tile)) *
           static_cast<double>(c.chunk_panels);
  };
  auto chunks = [&] {
    return boxes(out, c.chunk) * ceil_ratio(panels, c.chunk_panels) * certain_size(c.images);
  };
  auto halve = [&](std::size_t axis) {
    std::int64_t tiles = ceil_ratio(out[axis], c.tile[axis]);
    c.chunk[axis] = even_part(tiles, c.chunk[axis] / c.tile[axis] / 2) * c.tile[axis];
  };
  // The outermost axis with more than one tile; there the parts of the input overlap least.
  auto longest = [&] {
    for (std::size_t i = 0; i < out.size(); ++i)
      if (c.chunk[i] > c.tile[i]) return i;
    return out.size();
  };
  const bool copies = c.in_place_strides.empty();
  while (copies && longest() < out.size() && scratch_bytes(c) > target.l2_bytes / 4)
    halve(longest());
  // Each part of the image reads all weights, each part of the panels all of the image.
  const std::int64_t weights = volume(c.window) * c.in_channels / c.groups * c.out_channels;
  std::int64_t image = c.in_channels;
  for (std::size_t i = 0; i < out.size(); ++i) image *= input_extent(c, i, out[i]);
  while (chunks() < enough_chunks && cycles() > 2 * least_chunk_cycles) {
    const bool parts_panels = c.chunk_panels > 1 && !c.is_depthwise();
    const bool parts_image = longest() < out.size();
    const std::int64_t more_weights = boxes(out, c.chunk) * weights,
                       more_image = ceil_ratio(panels, c.chunk_panels) * image;
    if (parts_image && (!parts_panels || more_weights <= more_image))
      halve(longest());
    else if (parts_panels)
      c.chunk_panels = even_part(panels, c.chunk_panels / 2);
    else
      break;
  }
}

ConvolutionScratch scratch_of(const Convolution& c) {
  const std::int64_t bytes = byte_size(c.accumulate);
  ConvolutionScratch s;
  s.sums = round_up(volume(c.tile) * c.block, 64 / bytes);
  const std::size_t axes = c.chunk.size();
  const bool in_place = !c.in_place_strides.empty();
  s.size.resize(axes);
  s.strides = c.in_place_strides;
  s.strides.resize(axes);
  // Vectors of depthwise channels may reach past the last one.
  std::int64_t stride = c.in_channels, end = c.in_channels + c.block;
  for (std::size_t i = axes; i-- > 0;) {
    s.size[i] = input_extent(c, i, in_place ? c.tile[i] : c.chunk[i]);
    if (!in_place) s.strides[i] = stride;
    end += (s.size[i] - 1) * s.strides[i];
    stride *= s.size[i];
    if (i + 1 == axes) stride = spread_stride(stride, bytes);
  }
  s.copy = round_up(end, 64 / bytes);
  return s;
}

std::int64_t scratch_bytes(const Convolution& c) {
  ConvolutionScratch s = scratch_of(c);
  return (s.sums + s.copy) * byte_size(c.accumulate);
}

std::int64_t panel_count(const Convolution& c) {
  if (c.is_depthwise()) return ceil_ratio(c.out_channels, c.block);
  return c.groups * ceil_ratio(c.out_channels / c.groups, c.block);
}

Dim chunks_of(const Convolution& c) {
  Dim n = c.images * ceil_ratio(panel_count(c), c.chunk_panels);
  for (std::size_t i = 0; i < c.chunk.size(); ++i) n = n * ceil_div(c.out_size[i], c.chunk[i]);
  return n;
}

Type packed_type(const Convolution& c) {
  Dims dims;
  if (!c.is_depthwise()) dims.push_back(c.groups);
  dims.push_back(panel_count(c) / (c.is_depthwise() ? 1 : c.groups));
  for (std::int64_t w : c.window) dims.push_back(w);
  if (!c.is_depthwise()) dims.push_back(c.in_channels / c.groups);
  dims.push_back(c.block);
  return {c.accumulate, Shape(dims)};
}

}  // namespace hone
