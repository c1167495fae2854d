// Average pooling: a composite over one window reduction.
#include "ops/check.h"
#include "ops/eval.h"
#include "ops/samples.h"

namespace hone {

namespace {

std::vector<Type> infer_avg_pool(const Call& c) {
  expect_operands(c, 1);
  expect_dtype(c, 0, Accept::real);
  integer_attr(c, "include_pads", 0);
  return {Type(c.type(0).dtype, windowed_shape(c))};
}

Attrs sum_attrs(const Attrs& attrs) {
  Attrs out;
  for (const Attrs::Entry& e : attrs.entries())
    if (e.first != AttrName("include_pads")) out.set(e.first, e.second);
  out.set("kind", std::string("sum"));
  return out;
}

// The number of elements of x in each window, in the shape of the result.
Value elements_under(const Call& c, DType dtype) {
  const Dims& window = c.attrs.dims("window");
  bool padded = false;
  for (AttrName name : {AttrName("pads_low"), AttrName("pads_high")})
    for (const Dim& d : c.attrs.dims(name)) padded = padded || d != Dim(0);
  const Shape& full = c.results[0].shape;
  if (!padded || c.attrs.integer("include_pads"))
    return broadcast_to(size_value(c.graph, product(window), dtype), full);
  // Axes without a sliding window have the same count everywhere.
  Shape ones = c.shape(0);
  for (int i = 0; i < ones.rank(); ++i)
    if (window[static_cast<std::size_t>(i)] == Dim(1) && ones[i] == full[i]) ones[i] = 1;
  Value count =
      ops::reduce_window(broadcast_to(scalar(c.graph, 1, dtype), ones), sum_attrs(c.attrs));
  return broadcast_to(count, full);
}

Values expand_avg_pool(const Call& c) {
  DType wide = sum_dtype(c.type(0).dtype);
  Value sum = ops::reduce_window(cast_to(c.operands[0], wide), sum_attrs(c.attrs));
  return {cast_to(sum / elements_under(c, wide), c.type(0).dtype)};
}

// Each window separately; padding has no elements.
std::vector<Wide> eval_avg_pool(const Evaluation& e) {
  const Wide& x = *e.inputs[0];
  Wide y(x.dtype, e.result_dims());
  Sizes window = e.sizes(e.attrs.dims("window")), strides = e.sizes(e.attrs.dims("strides")),
        dilations = e.sizes(e.attrs.dims("dilations")), low = e.sizes(e.attrs.dims("pads_low")),
        from = row_major(x.dims), to = row_major(y.dims), places = row_major(window);
  for (std::int64_t i = 0; i < y.count(); ++i) {
    long double sum = 0;
    std::int64_t size = count_of(window), under = 0;
    for (std::int64_t w = 0; w < size; ++w) {
      std::int64_t at = 0;
      bool inside = true;
      for (std::size_t k = 0; k < window.size(); ++k) {
        std::int64_t place =
            i / to[k] % y.dims[k] * strides[k] + w / places[k] % window[k] * dilations[k] - low[k];
        inside = inside && place >= 0 && place < x.dims[k];
        at += place * from[k];
      }
      under += inside;
      if (inside) sum += x.reals[static_cast<std::size_t>(at)];
    }
    bool all = e.attrs.integer("include_pads") != 0;
    y.reals[static_cast<std::size_t>(i)] = static_cast<double>(sum / (all ? size : under));
  }
  return one_result(std::move(y));
}

}  // namespace

constinit const Op ops::avg_pool = {
    .name = "avg_pool",
    .doc =
        "The mean over a window that slides over all axes; attributes as for reduce_window. "
        "include_pads = 1 divides by the size of the window, 0 by the number of elements under "
        "it.",
    .kind = OpKind::reduction,
    .infer = infer_avg_pool,
    .expand = expand_avg_pool,
    .eval = eval_avg_pool,
    .samples = []() -> Samples {
      auto over = [](Dims window, Dims strides, Dims low, Dims high, int include) -> Attrs {
        Dims one(window.size(), 1);
        return {{"window", std::move(window)},  {"strides", std::move(strides)},
                {"dilations", std::move(one)},  {"pads_low", std::move(low)},
                {"pads_high", std::move(high)}, {"include_pads", include}};
      };
      Dims none = {0, 0, 0, 0};
      return {{{f32({1, 2, 4, 5})}, over({1, 1, 2, 2}, {1, 1, 2, 2}, none, none, 0)},
              {{f32({1, 2, 4, 5})}, over({1, 1, 3, 2}, {1, 1, 1, 2}, {0, 0, 1, 1}, none, 0)},
              {{f16({1, 5, 5, 3})}, over({1, 3, 3, 1}, {1, 2, 2, 1}, {0, 1, 1, 0}, none, 1)},
              {{f32({sample_symbol(), 1, 6})}, over({1, 1, 2}, {1, 1, 2}, {0, 0, 1}, {0, 0, 1}, 0)},
              {{f32({0, 1, 6})}, over({1, 1, 2}, {1, 1, 2}, {0, 0, 0}, {0, 0, 0}, 0)}};
    },
};

}  // namespace hone
