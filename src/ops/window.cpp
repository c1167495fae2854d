#include "ops/window.h"

#include <algorithm>

#include "base/checked.h"
#include "ops/check.h"
#include "ops/gradients.h"
#include "ops/samples.h"

namespace hone {

namespace {

// The outputs of one tap along one axis, and their positions and those of their inputs.
struct TapAxis {
  std::int64_t count, output, input, step;
};

TapAxis tap_axis(const WindowShape& s, std::size_t i, std::int64_t place) {
  std::int64_t shift = place * s.dilations[i] - s.pads_low[i], step = s.strides[i];
  std::int64_t first = std::max<std::int64_t>(0, floor_div(step - 1 - shift, step));
  std::int64_t last = std::min(s.output[i] - 1, floor_div(s.input[i] - 1 - shift, step));
  return {std::max<std::int64_t>(0, last - first + 1), first, first * step + shift, step};
}

}  // namespace

std::vector<WindowTap> window_taps(const WindowShape& s) {
  Sizes out_strides = row_major(s.output), in_strides = row_major(s.input),
        place_strides = row_major(s.window);
  std::vector<WindowTap> taps;
  for (std::int64_t k = 0; k < count_of(s.window); ++k) {
    std::array<std::int64_t, 2> first{};
    Sizes counts, out_steps, in_steps;
    for (std::size_t i = 0; i < s.window.size(); ++i) {
      TapAxis a = tap_axis(s, i, k / place_strides[i] % s.window[i]);
      counts.push_back(a.count);
      out_steps.push_back(out_strides[i]);
      in_steps.push_back(in_strides[i] * a.step);
      first[0] += a.output * out_strides[i];
      first[1] += a.input * in_strides[i];
    }
    taps.push_back({Rows<2>(counts, {out_steps, in_steps}), first});
  }
  return taps;
}

namespace {

std::vector<Type> infer_window(const Call& c) {
  expect_operands(c, 1);
  expect_dtype(c, 0, Accept::numeric);
  word_attr(c, "kind", {"sum", "max", "min"});
  return {Type(c.type(0).dtype, windowed_shape(c))};
}

std::vector<Wide> eval_window(const Evaluation& e) {
  const Wide& x = *e.inputs[0];
  Join how = join_of(e.attrs.get<std::string>("kind"));
  Wide y = starts(how, x.dtype, e.result_dims());
  WindowShape shape{x.dims,
                    y.dims,
                    e.sizes(e.attrs.dims("window")),
                    e.sizes(e.attrs.dims("strides")),
                    e.sizes(e.attrs.dims("dilations")),
                    e.sizes(e.attrs.dims("pads_low"))};
  for (const WindowTap& tap : window_taps(shape))
    tap.rows.each(tap.first, [&](auto& at, auto& step, std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i)
        join_element(how, y, at[0] + i * step[0], x, at[1] + i * step[1]);
    });
  return one_result(std::move(y));
}

}  // namespace

Shape windowed_shape(const Call& c) {
  Shape to = c.shape(0);
  auto rank = static_cast<std::size_t>(to.rank());
  std::vector<std::int64_t> window = numbers_attr(c, "window", rank, 1),
                            strides = numbers_attr(c, "strides", rank, 1),
                            dilations = numbers_attr(c, "dilations", rank, 1);
  const Dims &low = sizes_attr(c, "pads_low", rank, 0), &high = sizes_attr(c, "pads_high", rank, 0);
  for (std::size_t i = 0; i < rank; ++i)
    to.dims[i] = window_positions(c, to.dims[i], low[i] + high[i], window[i], strides[i],
                                  dilations[i], static_cast<int>(i));
  return to;
}

constinit const Op ops::reduce_window = {
    .name = "reduce_window",
    .doc =
        "The sum, max or min (attribute kind) over a window that slides over all axes. "
        "Attributes window, strides, dilations, pads_low, pads_high have one entry for each "
        "axis of x (1 and 0 where nothing slides). Pads join nothing; an all-pad window gives "
        "what reducing nothing gives. Narrow floats are summed in f32 and rounded once.",
    .kind = OpKind::reduction,
    .infer = infer_window,
    .grad = grads::window,
    .eval = eval_window,
    .samples = []() -> Samples {
      auto over = [](std::string kind, Dims window, Dims strides, Dims dilations, Dims low,
                     Dims high) -> Attrs {
        return {{"kind", std::move(kind)},       {"window", std::move(window)},
                {"strides", std::move(strides)}, {"dilations", std::move(dilations)},
                {"pads_low", std::move(low)},    {"pads_high", std::move(high)}};
      };
      Dims one = {1, 1, 1, 1}, none = {0, 0, 0, 0};
      return {{{f32({1, 2, 5, 6})}, over("max", {1, 1, 3, 2}, {1, 1, 2, 2}, one, none, none)},
              {{f32({2, 5, 5, 3})},
               over("sum", {1, 3, 3, 1}, {1, 1, 2, 1}, one, {0, 1, 1, 0}, {0, 1, 0, 0})},
              {{f16({9})}, over("sum", {4}, {1}, {2}, {0}, {1})},
              {{i64({7})}, over("min", {3}, {2}, {1}, {1}, {1})},
              {{f32({sample_symbol(), 4})}, over("max", {1, 2}, {1, 2}, {1, 1}, {0, 0}, {0, 0})},
              {{f32({0, 4})}, over("sum", {1, 2}, {1, 1}, {1, 1}, {0, 0}, {0, 0})},
              {{f32({})}, over("sum", {}, {}, {}, {}, {})}};
    },
};

}  // namespace hone
