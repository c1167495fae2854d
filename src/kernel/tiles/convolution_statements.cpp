#include <algorithm>

#include "kernel/nest/block_writer.h"
#include "kernel/nest/blocking.h"
#include "kernel/tiles/convolution.h"
#include "ops/ops.h"

namespace hone {

namespace {

using Kind = Stmt::Kind;

// Loops over all points of a box, the last axis fastest.
void for_points(BlockWriter& out, LoopKind kind, std::span<const Dim> extents, Dims& at,
                const std::function<void(const Dims&)>& body) {
  if (at.size() == extents.size()) return body(at);
  out.loop(kind, extents[at.size()], [&](const Dim& i) {
    at.push_back(i);
    for_points(out, kind, extents, at, body);
    at.pop_back();
  });
}

class ConvolutionWriter {
 public:
  ConvolutionWriter(Kernel& kernel, Lowering& lowering, const Convolution& c,
                    const ConvolutionTuning& t, const TargetInfo& target)
      : kernel_(kernel),
        lowering_(lowering),
        out_(lowering),
        c_(c),
        t_(t),
        scratch_(scratch_of(c, t)),
        axes_(c.window.size()),
        vectors_(t.columns / target.lanes(byte_size(c.accumulate))),
        panels_(panel_count(c, t)),
        panels_of_group_(panels_ / (c.is_depthwise() ? 1 : c.groups)) {}

  void write() {
    const std::int64_t bytes = byte_size(c_.accumulate);
    sums_ = static_cast<int>(kernel_.params.size());
    kernel_.memory = {{c_.accumulate, scratch_.sums, 0},
                      {c_.accumulate, scratch_.copy, scratch_.sums * bytes}};
    kernel_.scratch_bytes = (scratch_.sums + scratch_.copy) * bytes;
    kernel_.tiles = {{c_.accumulate, static_cast<int>(t_.rows()), static_cast<int>(t_.columns)}};
    // Boxes change fastest (the last axis first), then blocks of panels, then images.
    Dims sizes = {c_.images, ceil_ratio(panels_, t_.chunk_panels)};
    for (std::size_t i = 0; i < axes_; ++i) sizes.push_back(ceil_div(c_.out_size[i], t_.chunk[i]));
    kernel_.chunks = product(sizes);
    out_.loop(LoopKind::grid, kernel_.chunks,
              [&](const Dim& chunk) { chunk_of(lowering_.positions().split(chunk, sizes)); });
    kernel_.graph = lowering_.shared_graph();
    kernel_.body = out_.take();
  }

 private:
  // Output pixels of one image.
  struct Box {
    Dim image;
    Dims begin, count;
  };
  // The part of the input that a tile reads: taps [first, first + count) of each axis except the
  // last. `at`: the element of tap `first` of its first pixel, channel 0, in `param`.
  struct View {
    int param = -1;
    Dim at = 0;
    Dims first, count;
  };

  int copy() const { return sums_ + 1; }
  Graph& graph() const { return lowering_.graph(); }
  std::size_t last() const { return axes_ - 1; }

  // The part of `count` in a block that starts at `begin`.
  Dim part_of(const Dim& count, const Dim& begin, std::int64_t block) {
    if (count.is_number() && count.number() % block == 0) return block;
    return out_.keep(min(Dim(block), count - begin));
  }

  void chunk_of(const Dims& at) {
    Box box;
    box.image = out_.keep(at[0]);
    const Dim first = out_.keep(at[1] * Dim(t_.chunk_panels));
    for (std::size_t i = 0; i < axes_; ++i) {
      box.begin.push_back(out_.keep(at[2 + i] * Dim(t_.chunk[i])));
      box.count.push_back(part_of(c_.out_size[i], box.begin[i], t_.chunk[i]));
    }
    if (!t_.in_place) copy_chunk(box);
    out_.loop(LoopKind::serial, part_of(panels_, first, t_.chunk_panels), [&](const Dim& i) {
      const Dim panel = out_.keep(first + i);
      Dims tiles, number;
      for (std::size_t k = 0; k < axes_; ++k) tiles.push_back(ceil_div(box.count[k], t_.tile[k]));
      for_points(out_, LoopKind::serial, tiles, number, [&](const Dims& j) {
        Dims pixel;
        for (std::size_t k = 0; k < axes_; ++k)
          pixel.push_back(out_.keep(box.begin[k] + j[k] * Dim(t_.tile[k])));
        tile(box, panel, pixel);
      });
    });
  }

  // ---- padded copies of the input

  // Channels of the input to copy.
  struct Channels {
    Dim first = 0;
    std::int64_t count = 0;
  };
  Channels all_channels() const { return {0, c_.in_channels}; }

  void copy_chunk(const Box& box) {
    Dims first, count;
    for (std::size_t i = 0; i < axes_; ++i) {
      first.push_back(box.begin[i] * Dim(c_.strides[i]) - c_.pads_low[i]);
      count.push_back(
          out_.keep((box.count[i] - Dim(1)) * Dim(c_.strides[i]) + Dim(c_.input_extent(i, 1))));
    }
    copy_window(box.image, first, count, all_channels());
  }

  // Copies `count` pixels from `first` on; missing pixels become zeros.
  void copy_window(const Dim& image, const Dims& first, const Dims& count,
                   const Channels& channels) {
    Dims outer(count.begin(), count.end() - 1), at;
    for_points(out_, LoopKind::serial, outer, at, [&](const Dims& row) {
      Dim to = 0;
      Dims from;
      Value exists;
      for (std::size_t i = 0; i < row.size(); ++i) {
        to = to + row[i] * Dim(scratch_.strides[i]);
        from.push_back(first[i] + row[i]);
        if (!sees_padding(i)) continue;
        for (Value v : {out_.at_most(0, from[i]), lowering_.below(from[i], c_.in_size[i])})
          exists = both(exists, v);
      }
      to = out_.keep(to);
      from.push_back(first[last()]);
      if (!exists) return copy_row(image, from, count[last()], channels, to);
      out_.branch(
          exists, [&] { copy_row(image, from, count[last()], channels, to); },
          [&] { clear(0, count[last()], channels, to); });
    });
  }

  Value both(Value a, Value b) const { return a ? lowering_.apply(ops::bit_and, {a, b}) : b; }

  // Copies `count` pixels from `first` on, which may lie outside of an existing row.
  void copy_row(const Dim& image, Dims first, const Dim& count, const Channels& channels,
                const Dim& to) {
    Dim left = 0, right = count;
    if (sees_padding(last())) {
      left = out_.keep(min(max(Dim(0) - first[last()], Dim(0)), count));
      right = out_.keep(max(min(c_.in_size[last()] - first[last()], count), left));
    }
    clear(0, left, channels, to);
    const Dim pixels = out_.keep(right - left), width = c_.in_channels;
    first[last()] = first[last()] + left;
    const Dim start = to + left * width;
    if (c_.input_is_dense && channels.count == c_.in_channels) {
      // Whole pixels are contiguous in the input, too.
      const Dim place = input_place(image, first);
      lanes(pixels * width, [&](const Dim& i) { store_copy(start + i, input_load(place + i)); });
    } else {
      out_.loop(LoopKind::serial, pixels, [&](const Dim& x) {
        Dims at = first;
        at[last()] = at[last()] + x;
        lanes(channels.count, [&](const Dim& i) {
          const Dim channel = channels.first + i;
          store_copy(start + x * width + channel,
                     c_.input_is_dense
                         ? input_load(input_place(image, at) + channel)
                         : spliced(graph(), c_.input, input_position(image, at, channel)));
        });
      });
    }
    clear(right, count, channels, to);
  }

  void clear(const Dim& begin, const Dim& end, const Channels& channels, const Dim& to) {
    if (begin == end) return;
    const Dim width = c_.in_channels, pixels = out_.keep(end - begin);
    const Value zero = lowering_.number(0, c_.accumulate);
    if (channels.count == c_.in_channels)
      return lanes(pixels * width, [&](const Dim& i) { store_copy(to + begin * width + i, zero); });
    out_.loop(LoopKind::serial, pixels, [&](const Dim& x) {
      lanes(channels.count,
            [&](const Dim& i) { store_copy(to + (begin + x) * width + channels.first + i, zero); });
    });
  }

  void store_copy(const Dim& place, Value v) {
    out_.add({.kind = Kind::store,
              .param = copy(),
              .offset = place,
              .value = lowering_.convert(v, c_.accumulate)});
  }

  void lanes(const Dim& count, const std::function<void(const Dim&)>& body) {
    out_.loop(LoopKind::lanes, count, body);
  }

  static Dims input_position(const Dim& image, const Dims& at, const Dim& channel) {
    Dims out = {image};
    for (const Dim& d : at) out.push_back(d);
    out.push_back(channel);
    return out;
  }
  // For an input that is a load: the position of channel 0 of a pixel.
  Dim input_place(const Dim& image, const Dims& at) const {
    return place_of_load(c_.input.value, c_.input, input_position(image, at, 0));
  }
  Value input_load(const Dim& place) const {
    return lowering_.load(load_param(c_.input.value), c_.input.value.dtype(), place);
  }

  // True if some output pixel has a tap outside of the image.
  bool sees_padding(std::size_t axis) const {
    const Dim &in = c_.in_size[axis], &out = c_.out_size[axis];
    if (!in.is_number() || !out.is_number() || !(c_.pads_low[axis] == Dim(0))) return true;
    return (out.number() - 1) * c_.strides[axis] + (c_.window[axis] - 1) * c_.dilations[axis] >=
           in.number();
  }

  // ---- tiles

  void tile(const Box& box, const Dim& panel, const Dims& at) {
    out_.add({.kind = Kind::tile_fill,
              .value = lowering_.number(0, c_.accumulate),
              .tile = 0,
              .columns = t_.columns});
    Dims start = at;
    t_.in_place ? sums_in_place(box, panel, start) : sums(view_of_chunk(box, at), panel);
    results(box, panel, at, start);
  }

  View whole_view(int param) const {
    View view{param, 0, {}, {}};
    for (std::size_t i = 0; i < axes_; ++i) {
      view.first.push_back(0);
      view.count.push_back(c_.window[i]);
    }
    return view;
  }

  View view_of_chunk(const Box& box, const Dims& at) const {
    View view = whole_view(copy());
    for (std::size_t i = 0; i < axes_; ++i)
      view.at = view.at + (at[i] - box.begin[i]) * Dim(c_.strides[i] * scratch_.strides[i]);
    return view;
  }

  // A tile of several pixels along an axis must read only existing pixels, or else its window is
  // copied; for one pixel the taps are clipped instead. The last tile overlaps the previous one,
  // and begins before the first pixel if there are fewer pixels than it has.
  void sums_in_place(const Box& box, const Dim& panel, Dims& start) {
    View view = whole_view(load_param(c_.input.value));
    Dims origin, seen, extent;
    Value inside;
    for (std::size_t i = 0; i < axes_; ++i) {
      const Dim& out = c_.out_size[i];
      if (t_.tile[i] > 1 && !(out.is_number() && out.number() % t_.tile[i] == 0))
        start[i] = out_.keep_signed(min(start[i], out - Dim(t_.tile[i])));
      origin.push_back(start[i] * Dim(c_.strides[i]) - c_.pads_low[i]);
      extent.push_back(c_.input_extent(i, t_.tile[i]));
      if (sees_padding(i) && t_.tile[i] == 1 && i != last()) {
        clip_taps(view, origin[i], i);
      } else if (sees_padding(i)) {
        inside = both(inside, out_.at_most(0, origin[i]));
        inside = both(inside, out_.at_most(origin[i] + extent[i], c_.in_size[i]));
      }
      seen.push_back(origin[i] + view.first[i] * Dim(c_.dilations[i]));
    }
    view.at = input_place(box.image, seen);
    if (!inside) return sums(view, panel);
    View copied = view;
    copied.param = copy();
    copied.at = 0;
    for (std::size_t i = 0; i < axes_; ++i)
      copied.at = copied.at + view.first[i] * Dim(c_.dilations[i] * scratch_.strides[i]);
    Channels channels = all_channels();
    if (c_.is_depthwise()) channels = {panel * Dim(t_.columns), t_.columns};
    out_.branch(
        inside, [&] { sums(view, panel); },
        [&] {
          copy_window(box.image, origin, extent, channels);
          sums(copied, panel);
        });
  }

  void clip_taps(View& view, const Dim& origin, std::size_t axis) {
    const Dim d = c_.dilations[axis];
    view.first[axis] = out_.keep(floor_div(max(Dim(0) - origin, Dim(0)) + d - Dim(1), d));
    const Dim behind = floor_div(max(c_.in_size[axis] - Dim(1) - origin + d, Dim(0)), d);
    view.count[axis] = out_.keep(max(min(behind, Dim(c_.window[axis])) - view.first[axis], Dim(0)));
  }

  // Positions of the tile's pixels in the input.
  std::vector<std::int64_t> pixel_offsets() const {
    std::vector<std::int64_t> out = {0};
    for (std::size_t i = 0; i < axes_; ++i) {
      std::vector<std::int64_t> next;
      for (std::int64_t from : out)
        for (std::int64_t k = 0; k < t_.tile[i]; ++k)
          next.push_back(from + k * c_.strides[i] * scratch_.strides[i]);
      out = std::move(next);
    }
    return out;
  }

  // Multiplications over the taps of a view, each along channels or, if depthwise, along the last
  // axis: there lanes run along channels, and a pixel of a row serves all taps that use it.
  void sums(const View& view, const Dim& panel) {
    const std::int64_t depth = c_.is_depthwise() ? 1 : c_.in_channels / c_.groups;
    // Taps along the last axis are as contiguous in the copy as in the weights.
    const bool merges = c_.is_depthwise() || (c_.dilations[last()] == 1 && c_.groups == 1);
    const std::int64_t runs = merges ? 1 : c_.window[last()];
    const std::int64_t run = c_.window[last()] / runs * depth;
    Dims counts(view.count.begin(), view.count.end() - 1), at;
    counts.push_back(runs);
    for_points(out_, LoopKind::serial, counts, at, [&](const Dims& tap) {
      Stmt s{.kind = Kind::tile_multiply, .extent = run, .tile = 0, .columns = t_.columns};
      s.a = {view.param, view.at, pixel_offsets(), 1};
      Dim number = 0;
      std::int64_t weights = run * t_.columns;  // of a whole panel, after the loop
      for (std::size_t i = 0; i < axes_; ++i) {
        const std::int64_t count = i == last() ? runs : c_.window[i];
        number = number * Dim(count) + (i == last() ? tap[i] : view.first[i] + tap[i]);
        weights *= count;
        s.a.offset = s.a.offset + tap[i] * Dim(c_.dilations[i] * scratch_.strides[i]);
      }
      s.b = {
          c_.packed_weights, panel * Dim(weights) + number * Dim(run * t_.columns), {}, t_.columns};
      if (c_.is_depthwise()) {
        s.a_has_columns = true;
        s.a.offset = s.a.offset + panel * Dim(t_.columns);
        s.a.stride = c_.dilations[last()] * scratch_.strides[last()];
      } else if (c_.groups > 1) {
        s.a.offset = s.a.offset + floor_div(panel, panels_of_group_) * Dim(depth);
      }
      out_.add(std::move(s));
    });
  }

  // ---- results

  // Output pixels starting at `at`, of a tile computed from `start` on.
  void results(const Box& box, const Dim& panel, const Dims& at, const Dims& start) {
    const std::int64_t in_group = c_.is_depthwise() ? c_.out_channels : c_.out_channels / c_.groups;
    const bool has_groups = panels_of_group_ != panels_;
    const Dim n = out_.keep((has_groups ? mod(panel, panels_of_group_) : panel) * Dim(t_.columns));
    const Dim channel = has_groups ? floor_div(panel, panels_of_group_) * Dim(in_group) + n : n;
    // `from`: the first pixel of the tile to store.
    auto elements = [&](LoopKind kind, const Dims& from, const Dims& count, const auto& element) {
      for_columns(n, in_group, [&](const Dim& columns) {
        Dims place;
        for_points(out_, kind, count, place, [&](const Dims& i) {
          Dims pixel, sizes;
          Dim row = 0;
          for (std::size_t k = 0; k < axes_; ++k) {
            const Dim of_tile = from[k] - start[k] + i[k];
            row = row * Dim(t_.tile[k]) + of_tile;
            pixel.push_back(from[k] + i[k]);
          }
          lanes(columns, [&](const Dim& column) {
            for (Stmt& s : spliced_stores(graph(), c_.epilogue,
                                          input_position(box.image, pixel, channel + column),
                                          element(row, column)))
              out_.add(std::move(s));
          });
        });
      });
    };
    auto from_tile = [&] {
      Dims count;
      for (std::int64_t n_pixels : t_.tile) count.push_back(n_pixels);
      elements(LoopKind::unrolled, start, count, [&](const Dim& row, const Dim& column) {
        return element_of_tile(lowering_, 0, c_.accumulate, row, column);
      });
    };
    auto from_memory = [&] {
      Stmt store{.kind = Kind::tile_store, .tile = 0, .columns = t_.columns};
      store.a = {sums_, 0, {}, 1};
      for (std::int64_t i = 0; i < t_.rows(); ++i) store.a.rows.push_back(i * t_.columns);
      out_.add(std::move(store));
      Dims count;
      for (std::size_t i = 0; i < axes_; ++i) {
        const Dim end = min(start[i] + Dim(t_.tile[i]), box.begin[i] + box.count[i]);
        count.push_back(is_even(i) ? Dim(t_.tile[i]) : out_.keep(end - at[i]));
      }
      elements(LoopKind::serial, at, count, [&](const Dim& row, const Dim& column) {
        return lowering_.load(sums_, c_.accumulate, row * Dim(t_.columns) + column);
      });
    };
    if (!is_short(c_.epilogue, t_.rows(), vectors_)) return from_memory();
    // True if all pixels of the tile are stored.
    Value whole;
    for (std::size_t i = 0; i < axes_; ++i)
      if (!is_even(i))
        whole = both(whole, out_.at_most(at[i] + Dim(t_.tile[i]), box.begin[i] + box.count[i]));
    whole ? out_.branch(whole, from_tile, from_memory) : from_tile();
  }

  // Tiles end where the axis does.
  bool is_even(std::size_t axis) const {
    const Dim& out = c_.out_size[axis];
    return out.is_number() && out.number() % t_.tile[axis] == 0;
  }

  // Writes the body for a panel that starts at column n of `all`: twice, in two branches, if the
  // last panel is narrower than the others.
  void for_columns(const Dim& n, std::int64_t all,
                   const std::function<void(const Dim& columns)>& body) {
    if (all % t_.columns == 0) return body(t_.columns);
    auto narrow = [&] { body(all % t_.columns); };
    if (all < t_.columns) return narrow();
    out_.branch(out_.at_most(n + Dim(t_.columns), all), [&] { body(t_.columns); }, narrow);
  }

  Kernel& kernel_;
  Lowering& lowering_;
  BlockWriter out_;
  const Convolution& c_;
  const ConvolutionTuning& t_;
  ConvolutionScratch scratch_;
  std::size_t axes_;
  std::int64_t vectors_, panels_, panels_of_group_;
  int sums_ = 0;
};

}  // namespace

void write_convolution(Kernel& kernel, Lowering& lowering, const Convolution& c,
                       const ConvolutionTuning& t, const TargetInfo& target) {
  ConvolutionWriter(kernel, lowering, c, t, target).write();
}

}  // namespace hone
