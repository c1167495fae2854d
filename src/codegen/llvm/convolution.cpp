#include "kernel/convolution.h"

#include <array>
#include <utility>

#include "base/error.h"
#include "codegen/llvm/skeleton.h"

namespace hone::llvm {

namespace {

// Three spatial axes, the missing ones in front, of size 1.
constexpr std::size_t axes = 3;
template <class T>
using Space = std::array<T, axes>;
using Point = Space<Value>;

Space<std::int64_t> in_space(std::span<const std::int64_t> list, std::int64_t missing) {
  Space<std::int64_t> out;
  out.fill(missing);
  std::copy(list.begin(), list.end(), out.end() - static_cast<std::ptrdiff_t>(list.size()));
  return out;
}

class ConvolutionEmitter {
 public:
  ConvolutionEmitter(Module& m, const Kernel& kernel, const KernelArguments& in,
                     const LoadHole& input, const StoreHole& epilogue)
      : m_(m),
        c_(std::get<Convolution>(kernel.body)),
        in_(in),
        input_(input),
        epilogue_(epilogue),
        scratch_(scratch_of(c_)),
        window_(in_space(c_.window, 1)),
        strides_(in_space(c_.strides, 1)),
        dilations_(in_space(c_.dilations, 1)),
        tile_box_(in_space(c_.tile, 1)),
        chunk_(in_space(c_.chunk, 1)),
        copy_size_(in_space(scratch_.size, 1)),
        copy_strides_(in_space(scratch_.strides, 0)) {
    auto sizes = [&](const Dims& dims, std::int64_t missing) {
      Point out;
      out.fill(m.index(missing));
      for (std::size_t i = 0; i < dims.size(); ++i)
        out[axes - dims.size() + i] = size_of(m, in, kernel.sizes, dims[i]);
      return out;
    };
    in_size_ = sizes(c_.in_size, 1);
    out_size_ = sizes(c_.out_size, 1);
    pads_ = sizes(c_.pads_low, 0);
    tile_.dtype = c_.accumulate;
    tile_.rows = static_cast<int>(tile_box_[0] * tile_box_[1] * tile_box_[2]);
    tile_.lanes = m.target().lanes(static_cast<int>(byte_size(c_.accumulate)));
    tile_.vectors = c_.block / tile_.lanes;
    HONE_ASSERT(tile_.block() == c_.block, "block of ", c_.block, " for ", tile_.lanes, " lanes");
  }

  void emit() {
    m_.loop(in_.begin, in_.end, 1, [&](Value chunk) { emit_chunk(chunk); });
  }

 private:
  // Output pixels [begin, end) of one image.
  struct Box {
    Value image;
    Point begin, end;
  };

  void emit_chunk(Value chunk) {
    Box box;
    for (std::size_t i = axes; i-- > 0;) {
      Value count = divide_index(out_size_[i] + (chunk_[i] - 1), m_.index(chunk_[i]));
      box.begin[i] = modulo_index(chunk, count) * chunk_[i];
      box.end[i] = minimum(box.begin[i] + chunk_[i], out_size_[i]);
      chunk = divide_index(chunk, count);
    }
    const std::int64_t panels = panel_count(c_);
    const std::int64_t blocks = (panels + c_.chunk_panels - 1) / c_.chunk_panels;
    Value first = modulo_index(chunk, m_.index(blocks)) * c_.chunk_panels;
    box.image = divide_index(chunk, m_.index(blocks));
    if (!in_place()) copy_chunk(box);
    m_.loop(first, minimum(first + c_.chunk_panels, m_.index(panels)), 1,
            [&](Value panel) { emit_panel(box, panel); });
  }

  // ---- padded copies of the input

  bool in_place() const { return !c_.in_place_strides.empty(); }

  Pointer copy() const { return offset(in_.scratch, tile_.dtype, scratch_.sums); }

  // Input pixels that `outputs` pixels along an axis see.
  Value extent_of(Value outputs, std::size_t axis) const {
    return (outputs - 1) * strides_[axis] + ((window_[axis] - 1) * dilations_[axis] + 1);
  }

  // Channels of the input to copy.
  struct Channels {
    Value first;
    std::int64_t count = 0;
  };
  Channels all_channels() const { return {m_.index(0), c_.in_channels}; }

  void copy_chunk(const Box& box) {
    Point first, count;
    for (std::size_t i = 0; i < axes; ++i) {
      first[i] = box.begin[i] * strides_[i] - pads_[i];
      count[i] = extent_of(box.end[i] - box.begin[i], i);
    }
    copy_window(box.image, first, count, all_channels());
  }

  // `count` pixels from `first` on; where there are none, zeros.
  void copy_window(Value image, const Point& first, const Point& count, const Channels& channels) {
    m_.loop(m_.index(0), count[0], 1, [&](Value z) {
      m_.loop(m_.index(0), count[1], 1, [&](Value y) {
        Pointer to = offset(copy(), tile_.dtype, z * copy_strides_[0] + y * copy_strides_[1]);
        copy_row(image, {first[0] + z, first[1] + y, first[2]}, count[2], channels, to);
      });
    });
  }

  Value lies_inside(Value at, std::size_t axis) {
    return greater_equal(at, 0) & less(at, in_size_[axis]);
  }

  // `count` pixels from `first` on, which may lie outside of the input.
  void copy_row(Value image, const Point& first, Value count, const Channels& channels,
                Pointer to) {
    Value zero = m_.index(0);
    Value row_exists = lies_inside(first[0], 0) & lies_inside(first[1], 1);
    Value left = minimum(maximum(-first[2], zero), count);
    Value right = maximum(minimum(in_size_[2] - first[2], count), left);
    left = select(row_exists, left, zero);
    right = select(row_exists, right, zero);
    auto clear = [&](Value begin, Value end) {
      Value nothing = m_.zero(tile_.vector_type());
      for_each_vector(begin, end, channels, to,
                      [&](Value, Value, int, std::optional<Value>) { return nothing; });
    };
    clear(zero, left);
    for_each_vector(left, right, channels, to,
                    [&](Value x, Value channel, int lanes, std::optional<Value> mask) {
                      Values vars = input_vars(image, {first[0], first[1], first[2] + x}, channel);
                      return input_vector(vars, lanes, mask);
                    });
    clear(right, count);
  }

  // Stores what `make` gives for the vectors of pixels [begin, end) of a row. Whole pixels that
  // follow each other in the input too are one run of vectors.
  void for_each_vector(
      Value begin, Value end, const Channels& channels, Pointer row,
      const std::function<Value(Value x, Value channel, int lanes, std::optional<Value>)>& make) {
    const int lanes = tile_.lanes;
    auto put = [&](Value x, Value channel, const std::optional<Value>& mask) {
      Pointer to = offset(row, tile_.dtype, x * c_.in_channels + channel);
      Value v = make(x, channel, lanes, mask);
      mask ? store_masked(tile_.dtype, to, v, *mask) : store(tile_.dtype, to, v);
    };
    if (c_.input_is_dense && channels.count == c_.in_channels)
      return for_vectors(m_, lanes, (end - begin) * c_.in_channels,
                         [&](Value i, std::optional<Value> mask) { put(begin, i, mask); });
    m_.loop(begin, end, 1, [&](Value x) {
      for_vectors(m_, lanes, m_.index(channels.count),
                  [&](Value i, std::optional<Value> mask) { put(x, channels.first + i, mask); });
    });
  }

  Value input_vector(Values vars, int lanes, const std::optional<Value>& mask) {
    if (!c_.input_is_dense)
      return input_.elements(vars, static_cast<int>(vars.size()) - 1, lanes, mask);
    Value channel = std::exchange(vars.back(), m_.index(0));
    Pointer p = offset(input_.address(vars), input_.dtype, channel);
    return mask ? load_masked(input_.dtype, p, *mask) : load(input_.dtype, p, lanes);
  }

  Values input_vars(Value image, const Point& at, Value channel) const {
    Values vars = {image};
    for (std::size_t i = axes - c_.window.size(); i < axes; ++i) vars.push_back(at[i]);
    vars.push_back(channel);
    return vars;
  }

  // ---- tiles

  void emit_panel(const Box& box, Value panel) {
    m_.loop(box.begin[0], box.end[0], tile_box_[0], [&](Value z) {
      m_.loop(box.begin[1], box.end[1], tile_box_[1], [&](Value y) {
        m_.loop(box.begin[2], box.end[2], tile_box_[2],
                [&](Value x) { emit_tile(box, panel, {z, y, x}); });
      });
    });
  }

  // What a tile sees of the input.
  struct View {
    Point start;        // its first output pixel
    Point first, last;  // taps [first, last) of each axis lie inside of the image, or are copied
    Pointer at;         // the input pixel of tap `first` of output pixel `start`
  };

  void emit_tile(const Box& box, Value panel, const Point& at) {
    View view = in_place() ? view_in_place(box, panel, at) : view_of_chunk(box, at);
    Values sums = c_.is_depthwise() ? depthwise_sums(view, panel) : sums_of(view, panel);
    store_outputs(box, panel, at, view.start, sums);
  }

  View view_of_chunk(const Box& box, const Point& at) {
    View view{at, {}, {}, copy()};
    for (std::size_t i = 0; i < axes; ++i) {
      view.first[i] = m_.index(0);
      view.last[i] = m_.index(window_[i]);
      view.at =
          offset(view.at, tile_.dtype, (at[i] - box.begin[i]) * (strides_[i] * copy_strides_[i]));
    }
    return view;
  }

  // A tile of several pixels along an axis must see only pixels that exist, else its window is
  // copied; for one pixel the taps are clipped instead.
  View view_in_place(const Box& box, Value panel, const Point& at) {
    View view{at, {}, {}, {}};
    Point origin, seen, extent;
    std::optional<Value> inside;
    for (std::size_t i = 0; i < axes; ++i) {
      view.first[i] = m_.index(0);
      view.last[i] = m_.index(window_[i]);
      // The last tile overlaps the one before it.
      if (tile_box_[i] > 1) view.start[i] = minimum(at[i], out_size_[i] - tile_box_[i]);
      origin[i] = view.start[i] * strides_[i] - pads_[i];
      extent[i] = extent_of(m_.index(tile_box_[i]), i);
      if (!sees_padding(i)) continue;
      if (tile_box_[i] == 1 && i + 1 < axes) {
        clip_taps(view, origin[i], i);
      } else {
        Value fits = greater_equal(origin[i], 0) & less_equal(origin[i] + extent[i], in_size_[i]);
        inside = inside ? *inside & fits : fits;
      }
    }
    Pointer copied = copy();
    for (std::size_t i = 0; i < axes; ++i) {
      seen[i] = origin[i] + view.first[i] * dilations_[i];
      copied = offset(copied, tile_.dtype, view.first[i] * (dilations_[i] * copy_strides_[i]));
    }
    view.at = input_.address(input_vars(box.image, seen, m_.index(0)));
    if (!inside) return view;
    Channels channels = all_channels();
    if (c_.is_depthwise()) channels = {panel * c_.block, c_.block};
    m_.if_(~*inside, [&] { copy_window(box.image, origin, extent, channels); });
    view.at = select(*inside, view.at, copied);
    return view;
  }

  void clip_taps(View& view, Value origin, std::size_t axis) {
    Value d = m_.index(dilations_[axis]), zero = m_.index(0);
    view.first[axis] = divide_index(maximum(-origin, zero) + (dilations_[axis] - 1), d);
    Value behind = divide_index(maximum(in_size_[axis] - 1 - origin + d, zero), d);
    view.last[axis] = minimum(behind, m_.index(window_[axis]));
  }

  // Some output pixel has a tap outside of the image.
  bool sees_padding(std::size_t axis) const {
    const std::size_t missing = axes - c_.window.size();
    if (axis < missing) return false;
    const Dim &in = c_.in_size[axis - missing], &out = c_.out_size[axis - missing];
    const Dim& low = c_.pads_low[axis - missing];
    if (!in.is_number() || !out.is_number() || !(low == Dim(0))) return true;
    return (out.number() - 1) * strides_[axis] + (window_[axis] - 1) * dilations_[axis] >=
           in.number();
  }

  // Places of the tile's pixels in the input.
  std::vector<std::int64_t> pixel_offsets() const {
    std::vector<std::int64_t> out;
    for (std::int64_t z = 0; z < tile_box_[0]; ++z)
      for (std::int64_t y = 0; y < tile_box_[1]; ++y)
        for (std::int64_t x = 0; x < tile_box_[2]; ++x)
          out.push_back(z * strides_[0] * copy_strides_[0] + y * strides_[1] * copy_strides_[1] +
                        x * strides_[2] * copy_strides_[2]);
    return out;
  }

  // Taps along the last axis follow each other in the copy as they do in the weights.
  bool rows_merge() const { return dilations_[2] == 1 && c_.groups == 1; }

  Values sums_of(const View& view, Value panel) {
    const std::int64_t depth = c_.in_channels / c_.groups;
    const std::int64_t panels = panel_count(c_) / c_.groups;
    const std::int64_t run = rows_merge() ? window_[2] * depth : depth;
    const std::int64_t runs_in_row = rows_merge() ? 1 : window_[2];
    Value group = divide_index(panel, m_.index(panels));
    Pointer first = offset(view.at, tile_.dtype, group * depth);
    Pointer weights = offset(in_.buffers[static_cast<std::size_t>(c_.packed_weights)], tile_.dtype,
                             panel * (window_[0] * window_[1] * window_[2] * depth * c_.block));
    TileRows rows{first, pixel_offsets(), 1};
    return over_taps(view, runs_in_row, [&](Values sums, Value place, Value z, Value y, Value x) {
      Value number = (z * window_[1] + y) * runs_in_row + x;
      TileRows here = rows;
      here.base = offset(first, tile_.dtype, place);
      TileColumns columns =
          packed_columns(tile_, offset(weights, tile_.dtype, number * (run * c_.block)));
      return multiply_add(m_, tile_, sums, here, columns, m_.index(run));
    });
  }

  // Carries sums through loops over the taps of a view. The body is given the place of a tap
  // relative to the view's first one; of the last axis, taps [0, last_count).
  Values over_taps(
      const View& view, std::int64_t last_count,
      const std::function<Values(Values, Value place, Value z, Value y, Value x)>& body) {
    auto loop = [&](std::size_t axis, Value begin, Value end, bool is_single, Values start,
                    const std::function<Values(Value tap, Value place, Values)>& turn) {
      auto at = [&](Value tap, Values sums) {
        return turn(tap, (tap - begin) * (dilations_[axis] * copy_strides_[axis]), std::move(sums));
      };
      if (is_single) return at(begin, std::move(start));
      return m_.loop(begin, end, 1, std::move(start),
                     [&](Value tap, const Values& now) { return at(tap, now); });
    };
    auto single = [&](std::size_t axis) {
      return window_[axis] == 1 && !(in_place() && sees_padding(axis));
    };
    Values zero = zero_tile(m_, tile_);
    return loop(
        0, view.first[0], view.last[0], single(0), zero, [&](Value z, Value at_z, Values a) {
          return loop(1, view.first[1], view.last[1], single(1), std::move(a),
                      [&](Value y, Value at_y, Values b) {
                        return loop(2, m_.index(0), m_.index(last_count), last_count == 1,
                                    std::move(b), [&](Value x, Value at_x, Values c) {
                                      return body(std::move(c), at_z + at_y + at_x, z, y, x);
                                    });
                      });
        });
  }

  // Lanes lie along channels; each pixel of a row serves all the taps that it takes part in.
  Values depthwise_sums(const View& view, Value panel) {
    Pointer first = offset(view.at, tile_.dtype, panel * c_.block);
    Pointer weights = offset(in_.buffers[static_cast<std::size_t>(c_.packed_weights)], tile_.dtype,
                             panel * (window_[0] * window_[1] * window_[2] * c_.block));
    const std::vector<std::int64_t> offsets = pixel_offsets();
    return over_taps(view, 1, [&](Values sums, Value place, Value z, Value y, Value) {
      Value tap = (z * window_[1] + y) * window_[2];
      return depthwise_row(std::move(sums), offset(first, tile_.dtype, place),
                           offset(weights, tile_.dtype, tap * c_.block), offsets);
    });
  }

  Values depthwise_row(Values sums, Pointer row, Pointer weights,
                       const std::vector<std::int64_t>& offsets) {
    for (std::int64_t x = 0; x < window_[2]; ++x)
      for (int v = 0; v < tile_.vectors; ++v) {
        const std::int64_t lane = std::int64_t{v} * tile_.lanes;
        Value w = load(tile_.dtype, offset(weights, tile_.dtype, x * c_.block + lane), tile_.lanes);
        for (int r = 0; r < tile_.rows; ++r) {
          std::int64_t place =
              offsets[static_cast<std::size_t>(r)] + x * dilations_[2] * copy_strides_[2] + lane;
          Value in = load(tile_.dtype, offset(row, tile_.dtype, place), tile_.lanes);
          Value& sum = sums[static_cast<std::size_t>(r * tile_.vectors + v)];
          sum = is_float(tile_.dtype) ? fma(in, w, sum) : in * w + sum;
        }
      }
    return sums;
  }

  // ---- results

  // Output pixels from `at` on, of a tile that was computed from `start` on.
  void store_outputs(const Box& box, Value panel, const Point& at, const Point& start,
                     const Values& sums) {
    const std::int64_t in_group = c_.is_depthwise() ? c_.out_channels : c_.out_channels / c_.groups;
    const std::int64_t panels = panel_count(c_) / (c_.is_depthwise() ? 1 : c_.groups);
    Value group = divide_index(panel, m_.index(panels));
    Value n = modulo_index(panel, m_.index(panels)) * c_.block;
    Point end;
    for (std::size_t i = 0; i < axes; ++i) end[i] = minimum(start[i] + tile_box_[i], box.end[i]);
    auto put = [&](const Point& pixel, int v, Value sum, const std::optional<Value>& mask) {
      Value channel = group * in_group + n + std::int64_t{v} * tile_.lanes;
      epilogue_(input_vars(box.image, pixel, channel), sum, mask);
    };
    auto store_part = [&](const ColumnMasks& masks) {
      m_.loop(at[0], end[0], 1, [&](Value z) {
        m_.loop(at[1], end[1], 1, [&](Value y) {
          Value row = ((z - start[0]) * tile_box_[1] + (y - start[1])) * tile_box_[2];
          store_rows(m_, tile_, in_.scratch, row + (at[2] - start[2]), row + (end[2] - start[2]),
                     masks, [&](Value r, int v, Value sum, std::optional<Value> mask) {
                       put({z, y, start[2] + (r - row)}, v, sum, mask);
                     });
        });
      });
    };
    auto store_all = [&](const ColumnMasks& masks) {
      store_whole(m_, tile_, sums, masks,
                  [&](Value row, int v, Value sum, std::optional<Value> mask) {
                    put(pixel_of(start, row), v, sum, mask);
                  });
    };
    const bool is_short_one = is_short(c_.epilogue, tile_);
    std::optional<Value> whole = is_whole(at, start, end);
    auto for_columns = [&](const std::function<void(const ColumnMasks&)>& body) {
      for_panel(m_, tile_, n, m_.index(in_group), in_group, body);
    };
    auto from_memory = [&] {
      store_tile(tile_, in_.scratch, sums);
      for_columns(store_part);
    };
    if (!is_short_one) return from_memory();
    if (!whole) return for_columns(store_all);
    m_.if_(*whole, [&] { for_columns(store_all); }, from_memory);
  }

  // Whether all pixels of a tile are wanted; nothing when that is so for every tile.
  std::optional<Value> is_whole(const Point& at, const Point& start, const Point& end) const {
    std::optional<Value> whole;
    const std::size_t missing = axes - c_.window.size();
    for (std::size_t i = missing; i < axes; ++i) {
      const Dim& out = c_.out_size[i - missing];
      if (out.is_number() && out.number() % tile_box_[i] == 0) continue;
      Value here = equal(at[i], start[i]) & equal(start[i] + tile_box_[i], end[i]);
      whole = whole ? *whole & here : here;
    }
    return whole;
  }

  // The output pixel of a row of the tile that starts at `start`.
  Point pixel_of(const Point& start, Value row) const {
    Value plane = divide_index(row, m_.index(tile_box_[2]));
    return {start[0] + divide_index(plane, m_.index(tile_box_[1])),
            start[1] + modulo_index(plane, m_.index(tile_box_[1])),
            start[2] + modulo_index(row, m_.index(tile_box_[2]))};
  }

  Module& m_;
  const Convolution& c_;
  const KernelArguments& in_;
  const LoadHole& input_;
  const StoreHole& epilogue_;
  ConvolutionScratch scratch_;
  RegisterTile tile_;
  Space<std::int64_t> window_, strides_, dilations_, tile_box_, chunk_, copy_size_, copy_strides_;
  Point in_size_, out_size_, pads_;
};

}  // namespace

void emit_convolution(Module& m, const Kernel& kernel, const KernelArguments& in,
                      const LoadHole& input, const StoreHole& epilogue) {
  ConvolutionEmitter(m, kernel, in, input, epilogue).emit();
}

}  // namespace hone::llvm
