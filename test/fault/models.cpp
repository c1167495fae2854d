#include "test/fault/models.h"

#include "ops/common.h"
#include "ops/ops.h"
#include "verify/sample.h"

namespace hone::test {

namespace {

Value weight(Function& f, std::vector<std::int64_t> dims, std::uint64_t seed) {
  Dims sizes(dims.begin(), dims.end());
  return constant(f.graph(),
                  sample_array(Type(DType::f32, Shape(sizes)), {}, Fill::random, 1000 + seed));
}

Value along_rows(Value bias, const Shape& shape) { return broadcast_to(bias, shape); }

Value dense(Function& f, Value x, int outputs, std::uint64_t seed) {
  const std::int64_t inputs = x.shape()[-1].number();
  Value y = ops::matmul(x, weight(f, {inputs, outputs}, seed));
  return y + along_rows(weight(f, {outputs}, seed + 1), y.shape());
}

// Three layers: buffers that follow each other in one arena, and one that outlives the next.
void layers(Function& f) {
  Value x = f.add_param(f32({6, 20}), "x");
  Value h = ops::softmax(ops::relu(dense(f, x, 24, 1)), {{"axis", 1}});
  Value first = h;
  h = ops::softmax(ops::gelu(dense(f, h * 8.0, 24, 3)), {{"axis", 1}});
  f.add_result(dense(f, h, 10, 5), "y");
  f.add_result(
      ops::reduce_max(ops::transpose(h - first, {{"perm", Dims{1, 0}}}), {{"axes", Dims{1}}}),
      "peak");
}

Value convolution(Value x, Value w, std::int64_t pad, std::int64_t groups = 1) {
  return ops::conv(std::vector<Value>{x, w}, {{"strides", Dims{1, 1}},
                                              {"dilations", Dims{1, 1}},
                                              {"pads_low", Dims{pad, pad}},
                                              {"pads_high", Dims{pad, pad}},
                                              {"groups", groups},
                                              {"channels_last", 0}});
}

Value per_channel(Function& f, std::int64_t channels, const Shape& shape, std::uint64_t seed) {
  return broadcast_to(reshape_to(weight(f, {channels}, seed), {Dim(channels), Dim(1), Dim(1)}),
                      shape);
}

void image(Function& f) {
  Value x = f.add_param(f32({1, 3, 11, 9}), "x");
  Value y = convolution(x, weight(f, {8, 3, 3, 3}, 1), 1);
  y = ops::batch_norm(std::vector<Value>{y, weight(f, {8}, 2), weight(f, {8}, 3), weight(f, {8}, 4),
                                         weight(f, {8}, 5)},
                      {{"axis", 1}, {"epsilon", 1.5}});
  y = ops::relu(y);
  Value z = convolution(y, weight(f, {8, 8, 3, 3}, 6), 1);
  z = ops::relu(z + per_channel(f, 8, z.shape(), 7) + y);
  z = ops::reduce_window(z, {{"kind", std::string("max")},
                             {"window", Dims{1, 1, 2, 2}},
                             {"strides", Dims{1, 1, 2, 2}},
                             {"dilations", Dims{1, 1, 1, 1}},
                             {"pads_low", Dims{0, 0, 0, 0}},
                             {"pads_high", Dims{0, 0, 1, 1}}});
  f.add_result(ops::reduce_sum(z, {{"axes", Dims{2, 3}}}), "y");
}

// Each channel is convolved separately.
void depthwise(Function& f) {
  Value x = f.add_param(f32({1, 16, 10, 12}), "x");
  Value y = convolution(x, weight(f, {16, 1, 3, 3}, 1), 1, 16);
  f.add_result(ops::relu(y + per_channel(f, 16, y.shape(), 2)), "y");
}

// Square, so that swapped axes still have valid sizes.
void rows(Function& f) {
  Value x = f.add_param(f32({12, 12}), "x"), scale = f.add_param(f32({12}), "scale"),
        bias = f.add_param(f32({12}), "bias");
  Value y = ops::layer_norm(std::vector<Value>{x, scale, bias}, {{"axis", 1}, {"epsilon", 1e-5}});
  y = ops::softmax(y, {{"axis", 1}});
  Value t = ops::transpose(y, {{"perm", Dims{1, 0}}});
  f.add_result(ops::matmul(y, t) - x, "y");
  f.add_result(ops::mean(ops::tanh(x) * ops::sigmoid(t), {{"axes", Dims{0}}}), "mean");
  f.add_result(ops::log(ops::sqrt(ops::exp(x) / (x * x + 1.0))), "chain");
  f.add_result(ops::maximum(x, broadcast_to(bias, x.shape())), "floor");
}

// Elements from other positions, integers, comparisons.
void places(Function& f) {
  Value x = f.add_param(f32({10, 7}), "x"), i = f.add_param(i64({40}), "i");
  Value taken = ops::gather(std::vector<Value>{x, i}, {{"axis", 0}});
  Value part =
      ops::slice(x, {{"starts", Dims{2, 1}}, {"steps", Dims{1, 2}}, {"sizes", Dims{5, 3}}});
  Value padded = ops::pad(std::vector<Value>{part, scalar(f.graph(), 0.5, DType::f32)},
                          {{"low", Dims{0, 1}}, {"high", Dims{0, 3}}});
  Value joined = concat_values(Values{taken, padded}, 0);
  f.add_result(ops::exp(joined), "joined");
  Value n = i * i + i;
  Value five = constant_like(i, 5);
  f.add_result(ops::select(std::vector<Value>{ops::lt(i, five), ops::rem(n, five), i}), "chosen");
  f.add_result(ops::sort(x, {{"axis", 1}, {"descending", 1}}), "ordered");
  f.add_result(ops::maximum(taken, ops::reverse(taken, {{"axes", Dims{0}}})), "larger");
  f.add_result(ops::reduce_max(ops::minimum(joined, joined * 0.5), {{"axes", Dims{0, 1}}}), "peak");
}

// f16 intermediate values.
void narrow(Function& f) {
  Value x = f.add_param(f32({9, 33}), "x");
  Value h = ops::cast(x * 3.0, {{"dtype", DType::f16}});
  f.add_result(ops::cast(h, {{"dtype", DType::f32}}) * 2.0, "rounded");
  f.add_result(ops::softmax(h, {{"axis", 1}}), "y");
}

FunctionRef body(const std::vector<Type>& params, const std::function<Values(Function&)>& build) {
  Function f;
  for (std::size_t i = 0; i < params.size(); ++i) f.add_param(params[i], cat("p", i));
  for (Value v : build(f)) f.add_result(v);
  return std::make_shared<const Function>(std::move(f));
}

void choice(Function& f) {
  const Type t = f32({4, 5});
  Value x = f.add_param(t, "x");
  Value sum = ops::reduce_sum(x, {{"axes", Dims{0, 1}}});
  Value positive = ops::lt(scalar(f.graph(), 0, DType::f32), sum);
  FunctionRef yes = body({t}, [](Function& g) { return Values{ops::exp(g.param(0)) * 2.0}; });
  FunctionRef no = body({t}, [](Function& g) { return Values{ops::tanh(g.param(0)) - 1.0}; });
  Value y = ops::if_else(std::vector<Value>{positive, x}, {{"then", yes}, {"else", no}});
  f.add_result(ops::softmax(y, {{"axis", 1}}), "y");
}

void open_sizes(Function& f) {
  const Dim n = Dim::symbol("n", 1, 64);
  Value x = f.add_param(f32({n, 16}), "x");
  Value h = ops::relu(dense(f, x, 16, 1));
  f.add_result(ops::softmax(h + x, {{"axis", 1}}), "y");
  f.add_result(ops::reduce_sum(h, {{"axes", Dims{0}}}), "sum");
}

void update(Function& f) {
  Value w = f.add_param(f32({30, 20}), "w", true), g = f.add_param(f32({30, 20}), "g");
  f.add_result(w - g * 0.1, "updated");
  f.add_result(ops::sqrt(ops::reduce_sum(g * g, {{"axes", Dims{0, 1}}})), "norm");
  f.add_result(g - g, "none");
}

// A row of a donated parameter is replaced after the old rows were read.
void cache(Function& f) {
  Value all = f.add_param(f32({64, 40}), "all", true), next = f.add_param(f32({1, 40}), "next"),
        at = f.add_param(i64({2}), "at");
  f.add_result(ops::dynamic_update(std::vector<Value>{all, ops::tanh(next), at}), "all");
  f.add_result(ops::reduce_max(all, {{"axes", Dims{0}}}), "old");
}

// So large that a kernel runs in parts and is judged on few elements.
void large_product(Function& f) {
  Value x = f.add_param(f32({512, 1024}), "x");
  Value y = ops::relu(ops::matmul(x, weight(f, {1024, 512}, 1)));
  f.add_result(y - y, "y");
}

SmallModel model(const std::string& name, void (*build)(Function&)) {
  Function f;
  build(f);
  SmallModel m{name, {name, {{{}, f}}, {}}, {}};
  for (std::uint64_t seed : {71, 72}) {
    std::vector<Array> inputs;
    for (const Type& t : f.param_types())
      inputs.push_back(sample_array(t, {{"n", 3 + static_cast<std::int64_t>(seed % 2) * 14}},
                                    Fill::random, seed + inputs.size()));
    m.inputs.push_back(std::move(inputs));
  }
  return m;
}

}  // namespace

std::vector<SmallModel> small_models() {
  return {model("layers", layers),         model("image", image),   model("rows", rows),
          model("places", places),         model("narrow", narrow), model("choice", choice),
          model("open_sizes", open_sizes), model("update", update), model("cache", cache),
          model("depthwise", depthwise)};
}

SmallModel large_model() { return model("large_product", large_product); }

}  // namespace hone::test
