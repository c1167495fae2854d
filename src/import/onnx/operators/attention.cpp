// Attention and related operators: rotary positions, caches, linear attention.
#include <cmath>
#include <limits>

#include "base/amount.h"
#include "import/common/build.h"
#include "import/onnx/node/broadcast.h"
#include "import/onnx/node/context.h"
#include "import/onnx/node/steps.h"
#include "import/onnx/operators/list.h"
#include "ops/require.h"

namespace hone::onnx {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Converts [b, s, heads * d] to [b, heads, s, d].
Value with_heads(NodeContext& c, Value x, std::int64_t heads, std::string_view attribute) {
  if (x.rank() == 4) return x;
  if (x.rank() != 3) c.fail(cat("an input is ", x.type(), ", expected 3 or 4 axes"));
  if (heads < 1)
    c.fail(cat("attribute '", attribute, "' is ", heads,
               ", expected a positive integer for inputs of 3 axes"));
  const Shape& s = x.shape();
  return transpose_by(reshape_to(x, {s[0], s[1], heads, floor_div(s[2], heads)}), Axes{0, 2, 1, 3});
}

// Converts [b, heads, s, d] to [b, s, heads * d].
Value without_heads(Value x) {
  const Shape s = x.shape();
  return reshape_to(transpose_by(x, Axes{0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
}

// Groups heads by shared key: [b, q_heads, l, d] to [b, kv_heads, q_heads / kv_heads, l, d].
Value grouped(NodeContext& c, Value q, const Dim& kv_heads) {
  const Shape& s = q.shape();
  if (kv_heads.is_number() && s[1].is_number() &&
      (kv_heads.number() < 1 || s[1].number() % kv_heads.number() != 0))
    c.fail(cat("the queries have ", amount(s[1], "head", "heads"), ", expected a multiple of the ",
               kv_heads, " heads of the keys"));
  return reshape_to(q, {s[0], kv_heads, floor_div(s[1], kv_heads), s[2], s[3]});
}

// Products with keys [b, h, s, d] or values [b, h, s, v] that are shared by groups of heads.
Value scores_of(NodeContext& c, Value q, Value k) {
  Value product = dot_general(grouped(c, q, k.shape()[1]), k, {{0, 0}, {1, 1}}, {{4, 3}});
  return reshape_to(product, {q.shape()[0], q.shape()[1], q.shape()[2], k.shape()[2]});
}

Value mixed(NodeContext& c, Value probability, Value v) {
  Value product = dot_general(grouped(c, probability, v.shape()[1]), v, {{0, 0}, {1, 1}}, {{4, 2}});
  const Shape& p = probability.shape();
  return reshape_to(product, {p[0], p[1], p[2], v.shape()[3]});
}

// The node's masks: an additive bias over [.., queries, keys], null when everything is allowed.
class Mask {
 public:
  Mask(NodeContext& c, DType dtype, const Shape& scores)
      : c_(c), dtype_(dtype), scores_(scores), queries_(scores[-2]), keys_(scores[-1]) {}

  // The node's mask operand; keys beyond its length are forbidden.
  Value whole(Value mask) const {
    const bool boolean = mask.dtype() == DType::b1;
    if (!boolean) mask = cast_to(mask, dtype_);
    const Dim missing = max(keys_ - mask.shape()[-1], 0);
    Dims low(static_cast<std::size_t>(mask.rank()), 0), high = low;
    if (mask.shape()[-1] != Dim(1) || keys_ == Dim(1)) high.back() = missing;
    Value none =
        boolean ? integer(c_.graph(), 0, DType::b1) : scalar(c_.graph(), -infinity, dtype_);
    return repeat_open_axes(c_, pad_with(mask, none, low, high), scores_);
  }
  void add_given(Value mask) {
    mask = whole(mask);
    add(mask.dtype() == DType::b1 ? as_bias(mask) : mask);
  }

  // diff = position of the query - position of the key, within the bounds that are not negative.
  // `offset` is the position of the first query: a scalar, or one per batch.
  void add_window(Value offset, std::int64_t left, std::int64_t right) {
    Value rows = iota_value(c_.graph(), DType::i64, {queries_, keys_}, 0);
    Value columns = iota_value(c_.graph(), DType::i64, {queries_, keys_}, 1);
    Value at = offset.rank() == 0 ? offset : reshape_to(offset, {offset.shape()[0], 1, 1, 1});
    Value diff = plus(rows - columns, at);
    Value allowed;
    if (left >= 0) allowed = ops::le(diff, integer_like(diff, left));
    if (right >= 0) {
      Value ahead = ops::le(integer_like(diff, -right), diff);
      allowed = allowed ? ops::bit_and(allowed, ahead) : ahead;
    }
    if (allowed) add(as_bias(allowed));
  }

  // Allows only the first lengths[b] keys.
  void add_lengths(Value lengths) {
    Value columns = iota_value(c_.graph(), DType::i64, {1, 1, 1, keys_}, 3);
    Value many = reshape_to(cast_to(lengths, DType::i64), {lengths.shape()[0], 1, 1, 1});
    add(as_bias(joined(ops::lt, columns, many)));
  }

  Value bias() const { return bias_; }

 private:
  Value as_bias(Value allowed) const {
    return where(allowed, scalar(c_.graph(), 0, dtype_), scalar(c_.graph(), -infinity, dtype_));
  }
  void add(Value v) { bias_ = bias_ ? plus(bias_, v) : v; }

  NodeContext& c_;
  DType dtype_;
  Shape scores_;  // [b, heads, queries, keys]
  Dim queries_, keys_;
  Value bias_;
};

// Rows for which all keys are forbidden give 0, whatever the scores are.
Value zero_where_nothing(Value y, Value bias) {
  if (!bias) return y;
  Value most = max_over(bias, {bias.rank() - 1}, true);
  Value nothing = ops::eq(most, constant_like(most, -infinity));
  return where(nothing, scalar(y.graph(), 0, y.dtype()), y);
}
Value probabilities(Value scores, Value bias) {
  Value p = ops::softmax(scores, {{"axis", std::int64_t{scores.rank() - 1}}});
  return zero_where_nothing(p, bias);
}

struct Operands {
  Value q, k, v;
};

// Queries, keys and values with heads; past keys and values come first.
Operands attention_operands(NodeContext& c) {
  const std::int64_t q_heads = c.integer("q_num_heads", 0), kv_heads = c.integer("kv_num_heads", 0);
  Operands o{with_heads(c, c.in(0), q_heads, "q_num_heads"),
             with_heads(c, c.in(1), kv_heads, "kv_num_heads"),
             with_heads(c, c.in(2), kv_heads, "kv_num_heads")};
  if (c.has(4) != c.has(5))
    c.fail("only one of 'past_key' and 'past_value' is given, expected both or neither");
  if (c.has(4)) {
    o.k = concat_values(Values{c.in(4), o.k}, 2);
    o.v = concat_values(Values{c.in(5), o.v}, 2);
  }
  return o;
}

// All masks of the node combined.
Mask attention_mask(NodeContext& c, DType dtype, const Operands& o) {
  const Shape& q = o.q.shape();
  const Dim queries = q[2];
  Mask mask(c, dtype, Shape{q[0], q[1], queries, o.k.shape()[2]});
  const std::int64_t left = c.integer("left_window_size", -1),
                     right = c.integer("right_window_size", -1);
  const bool causal = c.flag("is_causal");
  if (left < -1 || right < -1)
    c.fail(cat("the window sizes are ", left, " and ", right, ", expected -1 (no limit) or more"));
  if (c.has(6) && c.has(4))
    c.fail("both 'nonpad_kv_seqlen' and 'past_key' are given, expected at most one of them");
  if (c.has(3)) mask.add_given(c.in(3));
  Value offset = size_value(c.graph(), c.has(4) ? c.in(4).shape()[2] : Dim(0), DType::i64);
  if (c.has(6)) {
    Value lengths = cast_to(c.in(6), DType::i64);
    offset = lengths - size_value(c.graph(), queries, DType::i64);
  }
  if (causal) mask.add_window(offset, -1, 0);
  if (left >= 0 || right >= 0) mask.add_window(offset, left, right);
  if (c.has(6)) mask.add_lengths(c.in(6));
  return mask;
}

// Converts the node's attributes to those of the operation. If the row length is open, the queries
// are scaled instead.
Value whole_attention(NodeContext& c, Operands o, const Mask& mask) {
  const Dim depth = o.q.shape()[3];
  double scale = 1;
  if (c.has_attribute("scale"))
    scale = c.real("scale", 1);
  else if (depth.is_number())
    scale = 1 / std::sqrt(static_cast<double>(depth.number()));
  else
    o.q = o.q * (1.0 / ops::sqrt(size_value(c.graph(), depth, o.q.dtype())));
  Attrs attrs{{"scale", scale}};
  if (const double cap = c.real("softcap", 0); cap > 0) attrs.set("softcap", cap);
  Values operands = {o.q, o.k, o.v};
  const bool is_window =
      c.has(6) || c.integer("left_window_size", -1) >= 0 || c.integer("right_window_size", -1) >= 0;
  if (is_window)
    operands.push_back(mask.bias());
  else if (c.has(3))
    operands.push_back(mask.whole(c.in(3)));
  // The first query may attend to the past and itself.
  if (c.flag("is_causal") && !is_window)
    attrs.set("causal", Dims{c.has(4) ? c.in(4).shape()[2] : Dim(0)});
  Value y = ops::attention(operands, std::move(attrs));
  return is_window || c.has(3) ? zero_where_nothing(y, mask.bias()) : y;
}

// Narrow floats are widened once and rounded once at the end.
Values attention(NodeContext& c) {
  Operands o = attention_operands(c);
  const DType given = o.q.dtype();
  DType dtype = sum_dtype(given);
  if (c.has_attribute("softmax_precision") && c.dtype("softmax_precision") == DType::f64)
    dtype = DType::f64;
  const Mask mask = attention_mask(c, dtype, o);
  const double cap = c.real("softcap", 0);
  const std::int64_t stage = c.integer("qk_matmul_output_mode", 0);
  if (stage < 0 || stage > 3) c.bad_attribute("qk_matmul_output_mode", stage, "0 to 3");
  const bool is_whole = dtype == sum_dtype(given) && o.k.dtype() == given && o.v.dtype() == given;
  auto finished = [&](Value y) { return c.in(0).rank() == 3 ? without_heads(y) : y; };
  if (is_whole && !c.wants(3)) return {finished(whole_attention(c, o, mask)), o.k, o.v};
  Value scale = c.has_attribute("scale")
                    ? scalar(c.graph(), std::sqrt(c.real("scale", 1)), dtype)
                    : 1.0 / ops::sqrt(ops::sqrt(size_value(c.graph(), o.q.shape()[3], dtype)));
  Value raw = scores_of(c, cast_to(o.q, dtype) * scale, cast_to(o.k, dtype) * scale);
  Value capped = cap > 0 ? ops::tanh(raw / cap) * cap : raw;
  Value biased = mask.bias() ? plus(capped, mask.bias()) : capped;
  Value p = probabilities(biased, mask.bias());
  Value y = cast_to(mixed(c, p, cast_to(o.v, dtype)), given);
  const Value stages[] = {raw, capped, biased, p};
  return {finished(y), o.k, o.v, cast_to(stages[stage], given)};
}

// For [.., d]: the two parts that are rotated into each other, and back.
std::pair<Value, Value> rotated_parts(Value x, bool interleaved) {
  const Dim half = floor_div(x.shape()[-1], 2);
  const int last = x.rank() - 1;
  if (interleaved) return {slice_axis(x, last, 0, half, 2), slice_axis(x, last, 1, half, 2)};
  return {slice_axis(x, last, 0, half), slice_axis(x, last, half, half)};
}

Value together(Value a, Value b, bool interleaved) {
  const int last = a.rank() - 1;
  if (!interleaved) return concat_values(Values{a, b}, last);
  Dims dims = a.shape().dims;
  dims.back() = dims.back() * Dim(2);
  return reshape_to(
      concat_values(Values{unsqueeze(a, {last + 1}), unsqueeze(b, {last + 1})}, last + 1), dims);
}

Values rotary_embedding(NodeContext& c) {
  Value x = with_heads(c, c.in(0), c.integer("num_heads", 0), "num_heads");  // [b, h, s, d]
  const bool interleaved = c.flag("interleaved");
  const Dim size = x.shape()[3];
  const std::int64_t given = c.integer("rotary_embedding_dim", 0);
  const Dim turned = given == 0 ? size : Dim(given);
  Value cosine = c.in(1), sine = c.in(2);
  if (c.has(3)) {
    require_within(c.in(3), 0, min(cosine.shape()[0], sine.shape()[0]) - 1, "a position");
    cosine = ops::gather(Values{cosine, c.in(3)}, {{"axis", std::int64_t{0}}});
    sine = ops::gather(Values{sine, c.in(3)}, {{"axis", std::int64_t{0}}});
  }
  if (cosine.rank() != 3) c.fail(cat("the cosines are ", cosine.type(), ", expected 3 axes"));
  cosine = unsqueeze(cosine, {1});
  sine = unsqueeze(sine, {1});
  auto [a, b] = rotated_parts(slice_axis(x, 3, 0, turned), interleaved);
  Value real = minus(times(cosine, a), times(sine, b));
  Value imaginary = plus(times(sine, a), times(cosine, b));
  Value y = together(real, imaginary, interleaved);
  if (turned != size) y = concat_values(Values{y, slice_axis(x, 3, turned, size - turned)}, 3);
  return {c.in(0).rank() == 3 ? without_heads(y) : y};
}

// Writes each batch's updates at its own position; wraps around with mode circular.
Values tensor_scatter(NodeContext& c) {
  Value cache = c.in(0), update = c.in(1);
  const int axis = c.axis(c.integer("axis", -2), cache.rank());
  if (axis == 0) c.bad_attribute("axis", axis, "an axis other than 0, the batch axis");
  std::string_view mode = c.text("mode", "linear");
  if (mode != "linear" && mode != "circular") c.bad_attribute("mode", mode, "linear or circular");
  const Dim &size = cache.shape()[axis], &count = update.shape()[axis];
  Dims dims = ones(static_cast<std::size_t>(cache.rank()));
  dims[0] = cache.shape()[0];
  Value first = c.has(2) ? reshape_to(cast_to(c.in(2), DType::i64), dims)
                         : integers_filled(c.graph(), DType::i64, Shape(dims), 0);
  dims[0] = 1;
  dims[static_cast<std::size_t>(axis)] = count;
  Value at = plus(first, iota_value(c.graph(), DType::i64, Shape(dims), axis));
  if (mode == "circular") {
    Value all = broadcast_to(size_value(c.graph(), size, DType::i64), at.shape());
    at = ops::mod(at, all);
  } else {
    require_within(first, 0, size - count, "an index to write to");
  }
  return {ops::scatter_elements(Values{cache, broadcast_to(at, update.shape()), update},
                                {{"axis", std::int64_t{axis}}, {"kind", std::string("set")}})};
}

// A causal convolution of each channel after its past; the last k - 1 inputs are the new past.
Values causal_conv_with_state(NodeContext& c) {
  Value x = c.in(0), w = c.in(1);
  if (x.rank() != 3 || w.rank() != 3)
    c.fail(cat("the inputs are ", x.type(), " and ", w.type(), ", expected 3 axes each"));
  const Dim keep = w.shape()[2] - Dim(1);
  Value past =
      c.has(3) ? c.in(3) : filled(c.graph(), x.dtype(), {x.shape()[0], x.shape()[1], keep}, 0);
  Value padded = concat_values(Values{past, x}, 2);
  if (!x.shape()[1].is_number())
    c.unsupported(cat("the number of channels is the open size ", x.shape()[1],
                      ", expected a number; give it with --dim"));
  Value y = ops::conv(Values{padded, w}, {{"strides", Dims{1}},
                                          {"dilations", Dims{1}},
                                          {"pads_low", Dims{0}},
                                          {"pads_high", Dims{0}},
                                          {"groups", x.shape()[1].number()},
                                          {"channels_last", std::int64_t{0}}});
  if (c.has(2)) y = y + along_channels(c.in(2), y.shape());
  std::string_view how = c.text("activation", "none");
  if (how == "silu" || how == "swish")
    y = cast_to(ops::silu(cast_to(y, sum_dtype(y.dtype()))), y.dtype());
  else if (how != "none")
    c.bad_attribute("activation", how, "none, silu or swish");
  return {y, slice_axis(padded, 2, padded.shape()[2] - keep, keep)};
}

// Applies a graph attribute to scores or probabilities, which keep their type.
Value modified(NodeContext& c, std::string_view name, Value v) {
  if (!c.has_attribute(name)) return v;
  Values made = c.bodies().inlined(c.body(name), {v});
  if (made.size() != 1)
    c.fail(
        cat("graph '", name, "' has ", amount(made.size(), "output", "outputs"), ", expected one"));
  return cast_to(made[0], v.dtype());
}

Values flex_attention(NodeContext& c) {
  const Value q = c.in(0), k = c.in(1), v = c.in(2);
  for (const Value& x : {q, k, v})
    if (x.rank() != 4) c.fail(cat("queries, keys or values are ", x.type(), ", expected 4 axes"));
  if (k.dtype() != q.dtype() || v.dtype() != q.dtype())
    c.fail(cat("query, key and value are ", q.dtype(), ", ", k.dtype(), " and ", v.dtype(),
               ", expected one dtype"));
  if (prove_equal(k.shape()[1], v.shape()[1]) == false)
    c.fail(cat("the keys have ", amount(k.shape()[1], "head", "heads"), " and the values ",
               v.shape()[1], ", expected equal numbers"));
  const DType dtype =
      c.has_attribute("softmax_precision") ? c.dtype("softmax_precision") : sum_dtype(q.dtype());
  const DType wide = sum_dtype(q.dtype());
  Value scale = c.has_attribute("scale")
                    ? scalar(c.graph(), c.real("scale", 1), wide)
                    : 1.0 / ops::sqrt(size_value(c.graph(), q.shape()[3], wide));
  Value scores = cast_to(scores_of(c, cast_to(q, wide) * scale, cast_to(k, wide)), dtype);
  scores = modified(c, "score_mod", scores);
  Value p = ops::softmax(scores, {{"axis", std::int64_t{3}}});
  p = modified(c, "prob_mod", p);
  return {cast_to(mixed(c, p, cast_to(v, dtype)), v.dtype())};
}

// ==== linear attention

struct Rule {
  bool gated = false, delta = false;
};

Rule update_rule(NodeContext& c) {
  std::string_view rule = c.text("update_rule", "gated_delta");
  if (rule == "linear") return {};
  if (rule == "gated") return {true, false};
  if (rule == "delta") return {false, true};
  if (rule == "gated_delta") return {true, true};
  c.bad_attribute("update_rule", rule, "linear, gated, delta or gated_delta");
}

// Converts [b, s, heads * d] to [s, b, heads, d], at least in f32.
Value by_time(NodeContext& c, Value x, std::int64_t heads) {
  if (x.rank() != 3) c.fail(cat("an input is ", x.type(), ", expected 3 axes"));
  const Shape& s = x.shape();
  Value split = reshape_to(x, {s[0], s[1], heads, floor_div(s[2], heads)});
  return cast_to(transpose_by(split, Axes{1, 0, 2, 3}), sum_dtype(x.dtype()));
}

// The state [b, h, k, v] is decayed, corrected by its current prediction, and updated with a key
// and a value; then the query reads it. Inputs: query [b, h, groups, k], key, value, decay, beta.
Stepped attend_once(const Rule& rule, const Values& now, Value state) {
  const Value &q = now[0], &k = now[1];
  Value v = now[2];
  std::size_t next = 3;
  if (rule.gated) state = times(state, unsqueeze(ops::exp(now[next++]), {3}));
  if (rule.delta) {
    Value said = dot_general(k, state, {{0, 0}, {1, 1}}, {{2, 2}});  // [b, h, v]
    v = times(now[next], minus(v, said));
  }
  state = plus(state, times(unsqueeze(k, {3}), unsqueeze(v, {2})));
  return {dot_general(q, state, {{0, 0}, {1, 1}}, {{3, 2}}), {state}};  // [b, h, groups, v]
}

Values linear_attention(NodeContext& c) {
  const Rule rule = update_rule(c);
  const std::int64_t q_heads = c.integer("q_num_heads", 0), heads = c.integer("kv_num_heads", 0);
  c.ignore("chunk_size");  // affects how it is computed, not the result
  if (heads < 1 || q_heads < heads || q_heads % heads != 0)
    c.fail(cat("the queries have ", amount(q_heads, "head", "heads"),
               ", expected a multiple of the ", heads, " heads of the keys"));
  if (rule.gated != c.has(4) || rule.delta != c.has(5))
    c.fail(
        "'decay' and 'beta' do not match 'update_rule': gated rules need 'decay', delta rules "
        "'beta'");
  const DType dtype = c.in(0).dtype();
  Value q = by_time(c, c.in(0), q_heads), k = by_time(c, c.in(1), heads);
  Value v = by_time(c, c.in(2), heads);
  const Shape s = q.shape();
  const Dim steps = s[0], batch = s[1], width = s[3];
  Value grouped_q = reshape_to(q, {steps, batch, heads, q_heads / heads, width});
  const double scale = c.real("scale", 0);
  Value by = scale != 0 ? scalar(c.graph(), scale, q.dtype())
                        : 1.0 / ops::sqrt(size_value(c.graph(), width, q.dtype()));
  Values inputs = {grouped_q, k, v};
  if (rule.gated) inputs.push_back(by_time(c, c.in(4), heads));
  if (rule.delta) {
    const std::int64_t shared = prove_equal(c.in(5).shape()[2], 1) == true ? 1 : heads;
    inputs.push_back(by_time(c, c.in(5), shared));
  }
  Shape state{batch, heads, width, v.shape()[3]};
  Value past = c.has(3) ? cast_to(c.in(3), q.dtype()) : filled(c.graph(), q.dtype(), state, 0);
  Stepped made = over_time([&](const Values& now, const Values& states, const Values&,
                               Value) { return attend_once(rule, now, states[0]); },
                           inputs, {past}, {}, false);
  Value y = made.y * by;  // [s, b, h, groups, v]
  y = reshape_to(transpose_by(y, Axes{1, 0, 2, 3, 4}), {batch, steps, v.shape()[3] * Dim(q_heads)});
  return {cast_to(y, dtype), cast_to(made.states[0], c.has(3) ? c.in(3).dtype() : dtype)};
}

constexpr ImportEntry attention_table[] = {
    {"Attention", attention, 23},
    {"RotaryEmbedding", rotary_embedding, 23},
    {"TensorScatter", tensor_scatter, 24},
    {"CausalConvWithState", causal_conv_with_state, 27},
    {"LinearAttention", linear_attention, 27},
    {.op = "FlexAttention", .import = flex_attention, .domain = "ai.onnx.preview"},
};

}  // namespace

std::span<const ImportEntry> attention_imports() { return attention_table; }

}  // namespace hone::onnx
