#include "kernel/convolution.h"

#include <array>

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
    copy_input(box);
    m_.loop(first, minimum(first + c_.chunk_panels, m_.index(panels)), 1,
            [&](Value panel) { emit_panel(box, panel); });
  }

  // ---- the padded copy of the input

  Pointer copy() const { return offset(in_.scratch, tile_.dtype, scratch_.sums); }

  void copy_input(const Box& box) {
    Point first, count;  // input pixels from `first`, padding included
    for (std::size_t i = 0; i < axes; ++i) {
      first[i] = box.begin[i] * strides_[i] - pads_[i];
      count[i] =
          (box.end[i] - box.begin[i] - 1) * strides_[i] + ((window_[i] - 1) * dilations_[i] + 1);
    }
    m_.loop(m_.index(0), count[0], 1, [&](Value z) {
      m_.loop(m_.index(0), count[1], 1, [&](Value y) {
        Pointer to = offset(copy(), tile_.dtype, z * copy_strides_[0] + y * copy_strides_[1]);
        copy_row(box.image, {first[0] + z, first[1] + y, first[2]}, count[2], to);
      });
    });
  }

  Value lies_inside(Value at, std::size_t axis) {
    return greater_equal(at, 0) & less(at, in_size_[axis]);
  }

  // `count` pixels from `first` on, which may lie outside of the input.
  void copy_row(Value image, const Point& first, Value count, Pointer to) {
    Value zero = m_.index(0);
    Value row_exists = lies_inside(first[0], 0) & lies_inside(first[1], 1);
    Value left = minimum(maximum(-first[2], zero), count);
    Value right = maximum(minimum(in_size_[2] - first[2], count), left);
    left = select(row_exists, left, zero);
    right = select(row_exists, right, zero);
    clear(to, left);
    Point from = {first[0], first[1], first[2] + left};
    copy_pixels(image, from, right - left, pixel(to, left));
    clear(pixel(to, right), count - right);
  }

  Pointer pixel(Pointer row, Value x) const { return offset(row, tile_.dtype, x * c_.in_channels); }

  void clear(Pointer to, Value pixels) {
    Value zero = m_.zero(tile_.vector_type());
    for_vectors(m_, tile_.lanes, pixels * c_.in_channels, [&](Value i, std::optional<Value> mask) {
      put(offset(to, tile_.dtype, i), zero, mask);
    });
  }

  void copy_pixels(Value image, const Point& from, Value pixels, Pointer to) {
    if (c_.input_is_dense) {
      Pointer start = input_.address(input_vars(image, from, m_.index(0)));
      for_vectors(
          m_, tile_.lanes, pixels * c_.in_channels, [&](Value i, std::optional<Value> mask) {
            Pointer p = offset(start, input_.dtype, i);
            Value v =
                mask ? load_masked(input_.dtype, p, *mask) : load(input_.dtype, p, tile_.lanes);
            put(offset(to, tile_.dtype, i), v, mask);
          });
      return;
    }
    m_.loop(m_.index(0), pixels, 1, [&](Value x) {
      Point at = {from[0], from[1], from[2] + x};
      for_vectors(m_, tile_.lanes, m_.index(c_.in_channels),
                  [&](Value i, std::optional<Value> mask) {
                    Values vars = input_vars(image, at, i);
                    int along = static_cast<int>(vars.size()) - 1;
                    put(offset(pixel(to, x), tile_.dtype, i),
                        input_.elements(vars, along, tile_.lanes, mask), mask);
                  });
    });
  }

  void put(Pointer p, Value v, const std::optional<Value>& mask) {
    mask ? store_masked(tile_.dtype, p, v, *mask) : store(tile_.dtype, p, v);
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

  void emit_tile(const Box& box, Value panel, const Point& at) {
    Pointer first = copy();
    for (std::size_t i = 0; i < axes; ++i)
      first = offset(first, tile_.dtype, (at[i] - box.begin[i]) * (strides_[i] * copy_strides_[i]));
    Values sums = c_.is_depthwise() ? depthwise_sums(first, panel) : sums_of(first, panel);
    store_tile(tile_, in_.scratch, sums);
    store_outputs(box, panel, at);
  }

  // Places of the tile's pixels in the copy.
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

  Values sums_of(Pointer first, Value panel) {
    const std::int64_t depth = c_.in_channels / c_.groups;
    const std::int64_t panels = panel_count(c_) / c_.groups;
    const std::int64_t run = rows_merge() ? window_[2] * depth : depth;
    const std::int64_t runs_in_row = rows_merge() ? 1 : window_[2];
    Value group = divide_index(panel, m_.index(panels));
    first = offset(first, tile_.dtype, group * depth);
    Pointer weights = offset(in_.buffers[static_cast<std::size_t>(c_.packed_weights)], tile_.dtype,
                             panel * (window_[0] * window_[1] * window_[2] * depth * c_.block));
    TileRows rows{first, pixel_offsets(), 1};
    auto one_run = [&](Values sums, Value z, Value y, Value x) {
      Value place = z * (dilations_[0] * copy_strides_[0]) +
                    y * (dilations_[1] * copy_strides_[1]) + x * (dilations_[2] * copy_strides_[2]);
      Value number = (z * window_[1] + y) * runs_in_row + x;
      TileRows here = rows;
      here.base = offset(first, tile_.dtype, place);
      TileColumns columns =
          packed_columns(tile_, offset(weights, tile_.dtype, number * (run * c_.block)));
      return multiply_add(m_, tile_, sums, here, columns, m_.index(run));
    };
    return over_taps(zero_tile(m_, tile_), {window_[0], window_[1], runs_in_row}, one_run);
  }

  // Carries sums through loops over all taps; an axis of one tap needs none.
  Values over_taps(Values sums, const Space<std::int64_t>& taps,
                   const std::function<Values(Values, Value, Value, Value)>& body) {
    auto loop = [&](std::int64_t count, Values start,
                    const std::function<Values(Value, Values)>& turn) {
      if (count == 1) return turn(m_.index(0), std::move(start));
      return m_.loop(m_.index(0), m_.index(count), 1, std::move(start),
                     [&](Value i, const Values& now) { return turn(i, now); });
    };
    return loop(taps[0], std::move(sums), [&](Value z, Values a) {
      return loop(taps[1], std::move(a), [&](Value y, Values b) {
        return loop(taps[2], std::move(b),
                    [&](Value x, Values c) { return body(std::move(c), z, y, x); });
      });
    });
  }

  // Lanes lie along channels; each pixel of a row serves all the taps that it takes part in.
  Values depthwise_sums(Pointer first, Value panel) {
    first = offset(first, tile_.dtype, panel * c_.block);
    Pointer weights = offset(in_.buffers[static_cast<std::size_t>(c_.packed_weights)], tile_.dtype,
                             panel * (window_[0] * window_[1] * window_[2] * c_.block));
    const std::vector<std::int64_t> offsets = pixel_offsets();
    return over_taps(zero_tile(m_, tile_), {window_[0], window_[1], 1},
                     [&](Values sums, Value z, Value y, Value) {
                       Value place = z * (dilations_[0] * copy_strides_[0]) +
                                     y * (dilations_[1] * copy_strides_[1]);
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

  void store_outputs(const Box& box, Value panel, const Point& at) {
    const std::int64_t in_group = c_.is_depthwise() ? c_.out_channels : c_.out_channels / c_.groups;
    const std::int64_t panels = panel_count(c_) / (c_.is_depthwise() ? 1 : c_.groups);
    Value group = divide_index(panel, m_.index(panels));
    Value n = modulo_index(panel, m_.index(panels)) * c_.block;
    auto store_box = [&](const ColumnMasks& masks) {
      m_.loop(at[0], minimum(at[0] + tile_box_[0], box.end[0]), 1, [&](Value z) {
        m_.loop(at[1], minimum(at[1] + tile_box_[1], box.end[1]), 1, [&](Value y) {
          Value row = ((z - at[0]) * tile_box_[1] + (y - at[1])) * tile_box_[2];
          Value count = minimum(box.end[2] - at[2], m_.index(tile_box_[2]));
          store_rows(m_, tile_, in_.scratch, row, row + count, masks,
                     [&](Value r, int v, Value sum, std::optional<Value> mask) {
                       Value channel = group * in_group + n + std::int64_t{v} * tile_.lanes;
                       epilogue_(input_vars(box.image, {z, y, at[2] + (r - row)}, channel), sum,
                                 mask);
                     });
        });
      });
    };
    for_panel(m_, tile_, n, m_.index(in_group), in_group, store_box);
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
