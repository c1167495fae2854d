#include "kernel/convolution.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "codegen/c/skeleton.h"
#include "kernel/blocking.h"

namespace hone::c {

namespace {

// Three spatial axes, the missing ones in front, of size 1.
constexpr std::size_t axes = 3;
template <class T>
using Space = std::array<T, axes>;
using Point = Space<std::string>;

Space<std::int64_t> in_space(std::span<const std::int64_t> list, std::int64_t missing) {
  Space<std::int64_t> out;
  out.fill(missing);
  std::copy(list.begin(), list.end(), out.end() - static_cast<std::ptrdiff_t>(list.size()));
  return out;
}

Point named(std::string_view name) { return {cat(name, 0), cat(name, 1), cat(name, 2)}; }

class ConvolutionWriter {
 public:
  ConvolutionWriter(const Site& site, const Convolution& c)
      : site_(site),
        out_(site.out),
        c_(c),
        scratch_(scratch_of(c)),
        type_(memory_type(c.accumulate)),
        missing_(axes - c.window.size()),
        window_(in_space(c.window, 1)),
        strides_(in_space(c.strides, 1)),
        dilations_(in_space(c.dilations, 1)),
        box_(in_space(c.tile, 1)),
        chunk_(in_space(c.chunk, 1)),
        copy_strides_(in_space(scratch_.strides, 0)) {
    in_size_ = sizes(c.in_size, 1);
    out_size_ = sizes(c.out_size, 1);
    pads_ = sizes(c.pads_low, 0);
    const int lanes = site.vector_bytes / byte_size(c.accumulate);
    HONE_ASSERT(c.block % lanes == 0, "block of ", c.block, " for ", lanes, " lanes");
    tile_.emplace(out_, site.helpers, c.accumulate, static_cast<int>(box_[0] * box_[1] * box_[2]),
                  c.block / lanes, lanes);
  }

  void write() {
    out_.line(type_, " *const sums = (", type_, " *)(void *)scratch;");
    if (!in_place() || needs_copies())
      out_.line(type_, " *const copy = sums + ", scratch_.sums, ";");
    out_.open("for (int64_t chunk = begin; chunk < end; ++chunk)");
    box_of_chunk();
    const std::int64_t panels = panel_count(c_);
    const std::int64_t blocks = ceil_ratio(panels, c_.chunk_panels);
    out_.line("const int64_t panel_begin = ", rest_, " % ", blocks, " * ", c_.chunk_panels, ";");
    if (uses_image()) out_.line("const int64_t image = ", rest_, " / ", blocks, ";");
    if (!in_place()) copy_chunk();
    out_.open("for (int64_t panel = panel_begin, panel_end = ",
              least(cat("panel_begin + ", c_.chunk_panels), cat(panels)),
              "; panel < panel_end; ++panel)");
    for (std::size_t i = 0; i < axes; ++i)
      out_.open("for (int64_t at", i, " = begin", i, "; at", i, " < end", i, "; at", i,
                " += ", box_[i], ")");
    write_tile();
    for (std::size_t i = 0; i < axes + 2; ++i) out_.close();
  }

 private:
  Point sizes(const Dims& dims, std::int64_t missing) const {
    Point out;
    out.fill(index(missing));
    for (std::size_t i = 0; i < dims.size(); ++i)
      out[missing_ + i] = site_.renderer.factor(dims[i]);
    return out;
  }

  std::string least(const std::string& a, const std::string& b) {
    return cat(site_.helpers.use("min_i64"), "(", a, ", ", b, ")");
  }
  std::string most(const std::string& a, const std::string& b) {
    return cat(site_.helpers.use("max_i64"), "(", a, ", ", b, ")");
  }

  bool uses_image() const { return !(c_.images == Dim(1)); }
  std::string image() const { return uses_image() ? "image" : "0"; }
  bool in_place() const { return !c_.in_place_strides.empty(); }

  // Output pixels [begin, end) of the chunk; what is left of its number is in rest_.
  void box_of_chunk() {
    rest_ = "chunk";
    for (std::size_t i = axes; i-- > 0;) {
      const std::string count = cat("count", i), begin = cat("begin", i);
      out_.line("const int64_t ", count, " = (", out_size_[i], " + ", chunk_[i] - 1, ") / ",
                chunk_[i], ";");
      out_.line("const int64_t ", begin, " = ", rest_, " % ", count, " * ", chunk_[i], ";");
      out_.line("const int64_t end", i, " = ", least(cat(begin, " + ", chunk_[i]), out_size_[i]),
                ";");
      out_.line("const int64_t rest", i, " = ", rest_, " / ", count, ";");
      rest_ = cat("rest", i);
    }
  }

  // ---- padded copies of the input

  // Input pixels that `outputs` pixels along an axis see.
  std::int64_t extent_of(std::int64_t outputs, std::size_t axis) const {
    return (outputs - 1) * strides_[axis] + (window_[axis] - 1) * dilations_[axis] + 1;
  }

  // Channels of the input to copy.
  struct Channels {
    std::string first;
    std::int64_t count = 0;
  };
  Channels all_channels() const { return {"0", c_.in_channels}; }

  void copy_chunk() {
    Point first = named("first"), count = named("seen");
    for (std::size_t i = 0; i < axes; ++i) {
      out_.line("const int64_t ", first[i], " = begin", i, " * ", strides_[i], " - ", pads_[i],
                ";");
      out_.line("const int64_t ", count[i], " = (end", i, " - begin", i, " - 1) * ", strides_[i],
                " + ", extent_of(1, i), ";");
    }
    copy_window(first, count, all_channels());
  }

  // `count` pixels from `first` on; where there are none, zeros.
  void copy_window(const Point& first, const Point& count, const Channels& channels) {
    out_.open("for (int64_t z = 0; z < ", count[0], "; ++z)");
    out_.open("for (int64_t y = 0; y < ", count[1], "; ++y)");
    out_.line(type_, " *const to = copy + z * ", copy_strides_[0], " + y * ", copy_strides_[1],
              ";");
    out_.line("const int64_t from_z = ", first[0], " + z, from_y = ", first[1], " + y;");
    out_.line("const bool exists = (from_z >= 0) & (from_z < ", in_size_[0], ") & (from_y >= 0) & ",
              "(from_y < ", in_size_[1], ");");
    out_.line("const int64_t left = exists ? ",
              least(most(cat("-(", first[2], ")"), "0"), count[2]), " : 0;");
    out_.line("const int64_t right = exists ? ",
              most(least(cat(in_size_[2], " - (", first[2], ")"), count[2]), "left"), " : 0;");
    clear("0", "left", channels);
    copy_pixels({"from_z", "from_y", cat("(", first[2], ")")}, channels);
    clear("right", count[2], channels);
    out_.close();
    out_.close();
  }

  void clear(const std::string& begin, const std::string& end, const Channels& channels) {
    if (channels.count == c_.in_channels) {
      out_.line("memset(to + ", begin, " * ", c_.in_channels, ", 0, (size_t)(", end, " - ", begin,
                ") * ", c_.in_channels * byte_size(c_.accumulate), ");");
      return;
    }
    out_.line("for (int64_t x = ", begin, "; x < ", end, "; ++x) memset(to + x * ", c_.in_channels,
              " + ", channels.first, ", 0, ", channels.count * byte_size(c_.accumulate), ");");
  }

  // Pixels [left, right) of a row.
  void copy_pixels(const Point& first, const Channels& channels) {
    if (c_.input_is_dense && channels.count == c_.in_channels) {
      Point at = first;
      at[2] = cat("(", first[2], " + left)");
      const std::string count = cat("(right - left) * ", c_.in_channels);
      // Only a row that exists has an address.
      out_.open("if (left < right)");
      out_.line("const ", element_type(), " *const from = ", address(at, "0"), ";");
      out_.line("HONE_INDEPENDENT");
      out_.line("for (int64_t i = 0; i < ", count, "; ++i) to[left * ", c_.in_channels, " + i] = (",
                type_, ")", site_.renderer.converted(c_.input.value, "from[i]"), ";");
      out_.close();
      return;
    }
    out_.open("for (int64_t x = left; x < right; ++x)");
    out_.line(type_, " *const pixel = to + x * ", c_.in_channels, " + ", channels.first, ";");
    const std::vector<std::string> vars =
        input_vars({first[0], first[1], cat("(", first[2], " + x)")}, channels.first);
    write_elements(site_, c_.input, vars, vars.size() - 1, index(channels.count), c_.accumulate,
                   "pixel");
    out_.close();
  }

  std::string_view element_type() const {
    const auto param = static_cast<std::size_t>(c_.input.value.attrs().integer("param"));
    return memory_type(site_.kernel.params[param].dtype);
  }

  std::vector<std::string> input_vars(const Point& at, const std::string& channel) const {
    std::vector<std::string> vars = {image()};
    for (std::size_t i = missing_; i < axes; ++i) vars.push_back(at[i]);
    vars.push_back(channel);
    return vars;
  }

  std::string address(const Point& at, const std::string& channel) {
    const std::vector<std::string> vars = input_vars(at, channel);
    site_.renderer.forget();
    for (std::size_t i = 0; i < vars.size(); ++i)
      site_.renderer.set_variable(c_.input.vars[i], vars[i]);
    return site_.renderer.address(c_.input.value);
  }

  // ---- tiles

  void write_tile() {
    in_place() ? view_in_place() : view_of_chunk();
    out_.open();
    tile_->declare();
    tile_->zero();
    c_.is_depthwise() ? depthwise_sums() : dense_sums();
    tile_->store("sums");
    out_.close();
    store_outputs();
  }

  // Each view defines `view`: the input pixel of the first tap of output pixel `start`, and gives
  // start_ and the taps [first_tap_, last_tap_) of each axis that lie inside of the image.
  void view_of_chunk() {
    std::string place = "copy";
    for (std::size_t i = 0; i < axes; ++i) {
      start_[i] = cat("at", i);
      first_tap_[i] = "0";
      last_tap_[i] = cat(window_[i]);
      place += cat(" + (at", i, " - begin", i, ") * ", strides_[i] * copy_strides_[i]);
    }
    out_.line("const ", type_, " *const view = ", place, ";");
  }

  bool clips(std::size_t axis) const {
    return sees_padding(axis) && box_[axis] == 1 && axis + 1 < axes;
  }
  // Some tile must see a copy of its window.
  bool needs_copies() const {
    for (std::size_t i = 0; i < axes; ++i)
      if (sees_padding(i) && !clips(i)) return true;
    return false;
  }

  // A tile of several pixels along an axis must see only pixels that exist, else its window is
  // copied; for one pixel the taps are clipped instead.
  void view_in_place() {
    Point origin = named("origin"), seen, extent;
    std::string inside, copied = "copy";
    for (std::size_t i = 0; i < axes; ++i) {
      start_[i] = cat("at", i);
      first_tap_[i] = "0";
      last_tap_[i] = cat(window_[i]);
      // The last tile overlaps the one before it.
      if (box_[i] > 1) {
        start_[i] = cat("start", i);
        out_.line("const int64_t ", start_[i], " = ",
                  least(cat("at", i), cat(out_size_[i], " - ", box_[i])), ";");
      }
      if (i < missing_) {
        origin[i] = "0";
      } else {
        out_.line("const int64_t ", origin[i], " = ", start_[i], " * ", strides_[i], " - ",
                  pads_[i], ";");
        // No address depends on the place along an axis of one pixel.
        out_.line("(void)", origin[i], ";");
      }
      extent[i] = cat(extent_of(box_[i], i));
      if (clips(i))
        clip_taps(origin[i], i);
      else if (sees_padding(i))
        inside += cat(inside.empty() ? "" : " & ", "(", origin[i], " >= 0) & (", origin[i], " + ",
                      extent[i], " <= ", in_size_[i], ")");
      seen[i] = cat("(", origin[i], " + ", first_tap_[i], " * ", dilations_[i], ")");
      copied += cat(" + ", first_tap_[i], " * ", dilations_[i] * copy_strides_[i]);
    }
    const std::string place = address(seen, "0");
    if (inside.empty()) {
      out_.line("const ", type_, " *const view = ", place, ";");
      return;
    }
    out_.line("const ", type_, " *view;");
    out_.open("if (", inside, ")");
    out_.line("view = ", place, ";");
    out_.close(" else {");
    out_.indent();
    Channels channels = all_channels();
    if (c_.is_depthwise()) channels = {cat("panel * ", c_.block), c_.block};
    copy_window(origin, extent, channels);
    out_.line("view = ", copied, ";");
    out_.close();
  }

  void clip_taps(const std::string& origin, std::size_t axis) {
    const std::int64_t d = dilations_[axis];
    first_tap_[axis] = cat("first_tap", axis);
    last_tap_[axis] = cat("last_tap", axis);
    out_.line("const int64_t ", first_tap_[axis], " = (", most("-" + origin, "0"), " + ", d - 1,
              ") / ", d, ";");
    const std::string behind =
        cat(most(cat(in_size_[axis], " - 1 - ", origin, " + ", d), "0"), " / ", d);
    out_.line("const int64_t ", last_tap_[axis], " = ", least(behind, cat(window_[axis])), ";");
  }

  // Some output pixel has a tap outside of the image.
  bool sees_padding(std::size_t axis) const {
    if (axis < missing_) return false;
    const Dim &in = c_.in_size[axis - missing_], &out = c_.out_size[axis - missing_];
    const Dim& low = c_.pads_low[axis - missing_];
    if (!in.is_number() || !out.is_number() || !(low == Dim(0))) return true;
    return (out.number() - 1) * strides_[axis] + (window_[axis] - 1) * dilations_[axis] >=
           in.number();
  }

  // Places of the tile's pixels in the input.
  std::vector<std::int64_t> pixel_offsets() const {
    std::vector<std::int64_t> out;
    for (std::int64_t z = 0; z < box_[0]; ++z)
      for (std::int64_t y = 0; y < box_[1]; ++y)
        for (std::int64_t x = 0; x < box_[2]; ++x)
          out.push_back(z * strides_[0] * copy_strides_[0] + y * strides_[1] * copy_strides_[1] +
                        x * strides_[2] * copy_strides_[2]);
    return out;
  }

  // Taps along the last axis follow each other in the copy as they do in the weights.
  bool rows_merge() const { return dilations_[2] == 1 && c_.groups == 1; }

  std::string weights() {
    const std::string name = site_.renderer.buffer(c_.packed_weights);
    const std::int64_t depth = c_.is_depthwise() ? 1 : c_.in_channels / c_.groups;
    return cat(name, " + panel * ", window_[0] * window_[1] * window_[2] * depth * c_.block);
  }

  void dense_sums() {
    const std::int64_t depth = c_.in_channels / c_.groups;
    const std::int64_t run = rows_merge() ? window_[2] * depth : depth;
    const std::int64_t runs = rows_merge() ? 1 : window_[2];
    const std::int64_t panels = panel_count(c_) / c_.groups;
    std::string first = "view";
    if (c_.groups > 1) first += cat(" + panel / ", panels, " * ", depth);
    out_.line("const ", type_, " *const weights = ", weights(), ";");
    over_taps(runs, [&](const std::string& place) {
      out_.line("const ", type_, " *const w = weights + ((z * ", window_[1], " + y) * ", runs,
                " + x) * ", run * c_.block, ";");
      tile_->multiply_add({cat(first, " + ", place), cat(run), pixel_offsets(), 1,
                           [&](const std::string& k) { return cat("w + ", k, " * ", c_.block); },
                           ""});
    });
  }

  // Lanes lie along channels; each pixel of a row serves all the taps that it takes part in.
  void depthwise_sums() {
    out_.line("const ", type_, " *const weights = ", weights(), ";");
    over_taps(1, [&](const std::string& place) {
      out_.line("const ", type_, " *const in = view + panel * ", c_.block, " + ", place, ";");
      out_.line("const ", type_, " *const taps = weights + (z * ", window_[1], " + y) * ",
                window_[2] * c_.block, ";");
      for (std::int64_t x = 0; x < window_[2]; ++x) {
        std::vector<std::int64_t> offsets = pixel_offsets();
        for (std::int64_t& o : offsets) o += x * dilations_[2] * copy_strides_[2];
        tile_->multiply_add_side_by_side("in", cat("taps + ", x * c_.block), offsets);
      }
    });
  }

  // Loops z, y and x over the taps of a view; of the last axis, [0, last_count). The body is given
  // the place of a tap relative to the view.
  void over_taps(std::int64_t last_count, const std::function<void(const std::string&)>& body) {
    const std::string_view names[] = {"z", "y", "x"};
    std::string place;
    int opened = 0;
    for (std::size_t i = 0; i < axes; ++i) {
      const bool is_last = i + 1 == axes;
      const std::string first = is_last ? "0" : first_tap_[i];
      const std::string end = is_last ? cat(last_count) : last_tap_[i];
      place += cat(i ? " + " : "", "(", names[i], " - ", first, ") * ",
                   dilations_[i] * copy_strides_[i]);
      out_.open("for (int64_t ", names[i], " = ", first, "; ", names[i], " < ", end, "; ++",
                names[i], ")");
      ++opened;
    }
    body(place);
    for (; opened > 0; --opened) out_.close();
  }

  // ---- results

  // Output pixels from `at` on, of a tile that was computed from `start` on.
  void store_outputs() {
    const std::int64_t in_group = c_.is_depthwise() ? c_.out_channels : c_.out_channels / c_.groups;
    const std::int64_t panels = panel_count(c_) / (c_.is_depthwise() ? 1 : c_.groups);
    out_.line("const int64_t n = panel % ", panels, " * ", c_.block, ";");
    std::string channel = "n", columns = cat(c_.block);
    if (panels != panel_count(c_)) channel = cat("(panel / ", panels, " * ", in_group, " + n)");
    if (in_group % c_.block != 0) {
      out_.line("const int64_t columns = ", least(cat(in_group, " - n"), cat(c_.block)), ";");
      columns = "columns";
    }
    Point pixel = {"z", "y", "x"};
    for (std::size_t i = 0; i < axes; ++i)
      out_.open("for (int64_t ", pixel[i], " = at", i,
                ", last = ", least(cat(start_[i], " + ", box_[i]), cat("end", i)), "; ", pixel[i],
                " < last; ++", pixel[i], ")");
    out_.line("const ", type_, " *const of_pixel = sums + (((z - ", start_[0], ") * ", box_[1],
              " + y - ", start_[1], ") * ", box_[2], " + x - ", start_[2], ") * ", c_.block, ";");
    write_results(site_, c_.epilogue, input_vars(pixel, channel), columns, "of_pixel");
    for (std::size_t i = 0; i < axes; ++i) out_.close();
  }

  const Site& site_;
  Text& out_;
  const Convolution& c_;
  ConvolutionScratch scratch_;
  std::string type_, rest_;
  std::size_t missing_;
  std::optional<Tile> tile_;
  Space<std::int64_t> window_, strides_, dilations_, box_, chunk_, copy_strides_;
  Point in_size_, out_size_, pads_, start_, first_tap_, last_tap_;
};

}  // namespace

void write_convolution(const Site& site, const Convolution& c) {
  ConvolutionWriter(site, c).write();
}

}  // namespace hone::c
