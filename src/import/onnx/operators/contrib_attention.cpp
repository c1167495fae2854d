// Attention as fused by ONNX Runtime: with preceding projections, with caches, with rotary
// positions.
#include <cmath>
#include <limits>

#include "base/amount.h"
#include "import/common/build.h"
#include "import/onnx/operators/contrib.h"
#include "import/onnx/operators/list.h"
#include "ops/require.h"

namespace hone::onnx {

Value split_heads(Value x, const Dim& heads) {
  const Shape s = x.shape();
  return transpose_by(reshape_to(x, {s[0], s[1], heads, floor_div(s[2], heads)}), Axes{0, 2, 1, 3});
}

Value merge_heads(Value x) {
  const Shape s = x.shape();
  return reshape_to(transpose_by(x, Axes{0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
}

Value rotated(Value x, Value cosine, Value sine, bool interleaved) {
  const Dim half = cosine.shape()[-1], turned = half * Dim(2), size = x.shape()[3];
  auto by_head = [&](Value v) { return unsqueeze(cast_to(v, x.dtype()), {v.rank() - 2}); };
  const Value c = by_head(cosine), s = by_head(sine);  // [.., 1, s, half]
  const std::int64_t step = interleaved ? 2 : 1;
  const Value a = slice_axis(x, 3, 0, half, step),
              b = slice_axis(x, 3, interleaved ? Dim(1) : half, half, step);
  const Value real = minus(times(c, a), times(s, b)), imaginary = plus(times(s, a), times(c, b));
  Value y;
  if (interleaved) {
    Dims dims = a.shape().dims;
    dims[3] = turned;
    y = reshape_to(concat_values(Values{unsqueeze(real, {4}), unsqueeze(imaginary, {4})}, 4), dims);
  } else {
    y = concat_values(Values{real, imaginary}, 3);
  }
  return prove_equal(turned, size) == true
             ? y
             : concat_values(Values{y, slice_axis(x, 3, turned, size - turned)}, 3);
}

namespace {

std::int64_t heads_of(NodeContext& c, std::string_view name) {
  const std::int64_t n = c.integer(name, 0);
  if (n < 1) c.bad_attribute(name, n, "a positive integer");
  return n;
}

double scale_of(NodeContext& c, const Dim& depth) {
  if (const double given = c.real("scale", 0); given != 0) return given;
  if (!depth.is_number())
    c.unsupported(cat("the size of a head is the open size ", depth,
                      ", expected a number; give attribute 'scale', or the size with --dim"));
  return 1 / std::sqrt(static_cast<double>(depth.number()));
}

Value joined_bias(Value a, Value b) { return !a ? b : !b ? a : plus(a, b); }

// Ones (of any dtype) allow a key, zeros add `filter`.
Value bias_of_mask(Value mask, DType dtype, double filter) {
  Value is_off =
      mask.dtype() == DType::b1 ? ops::bit_not(mask) : ops::eq(mask, integer_like(mask, 0));
  return where(is_off, scalar(mask.graph(), filter, dtype), scalar(mask.graph(), 0, dtype));
}

// The keys that the mask of Attention allows: [b] numbers of leading keys, [b * 2] ends and starts,
// or flags [b, keys], [b, queries, keys] or [b, 1, most, most].
Value bias_of_any_mask(NodeContext& c, Value mask, DType dtype, double filter, const Dim& batch,
                       const Dim& queries, const Dim& keys) {
  if (mask.rank() == 2) return bias_of_mask(unsqueeze(mask, {1, 2}), dtype, filter);
  if (mask.rank() == 3) return bias_of_mask(unsqueeze(mask, {1}), dtype, filter);
  if (mask.rank() == 4) {
    mask = slice_axis(slice_axis(mask, 2, keys - queries, queries), 3, 0, keys);
    return bias_of_mask(mask, dtype, filter);
  }
  if (mask.rank() != 1) c.fail(cat("the mask is ", mask.type(), ", expected 1 to 4 axes"));
  Value place = iota_value(c.graph(), DType::i32, {1, keys}, 1);
  mask = cast_to(mask, DType::i32);
  auto of_batch = [&](const Dim& first) {
    return unsqueeze(slice_axis(mask, 0, first, batch), {1});
  };
  Value on = joined(ops::lt, place, of_batch(0));
  if (prove_equal(mask.shape()[0], batch) != true)
    on = both(on, joined(ops::le, of_batch(batch), place));
  return bias_of_mask(unsqueeze(on, {1, 2}), dtype, filter);
}

struct Parts {
  Value q, k, v;  // [b, heads, s, d]
};

Value attended(const Parts& p, Value bias, double scale, std::optional<Dim> causal,
               double cap = 0) {
  Attrs attrs{{"scale", scale}};
  if (cap > 0) attrs.set("softcap", cap);
  if (causal) attrs.set("causal", Dims{*causal});
  Values operands = {p.q, p.k, p.v};
  if (bias) {
    // The full shape over queries and keys, as the operation requires.
    Shape whole = bias.shape();
    whole[-1] = p.k.shape()[2];
    whole[-2] = p.q.shape()[2];
    operands.push_back(broadcast_to(bias, whole));
  }
  return ops::attention(operands, std::move(attrs));
}

// ==== Attention: one product makes queries, keys and values

// Prepends past keys and values, [2, b, heads, past, d].
void put_past_first(NodeContext& c, std::size_t input, Parts& p) {
  if (!c.has(input)) return;
  p.k = concat_values(Values{take_axis(c.in(input), 0, 0), p.k}, 2);
  p.v = concat_values(Values{take_axis(c.in(input), 0, 1), p.v}, 2);
}

struct Projected {
  Value qkv;  // [b, s, all]
  std::size_t mask, past, extra;
};

Values attention_of(NodeContext& c, const Projected& from) {
  const std::int64_t heads = heads_of(c, "num_heads");
  const double filter = c.real("mask_filter_value", -10000);
  const Dim all = from.qkv.shape()[2], third = floor_div(all, 3);
  Dims sizes = {third, third, third};
  if (auto given = c.integers("qkv_hidden_sizes"); given && !given->empty()) {
    if (given->size() != 3)
      c.fail(cat("attribute 'qkv_hidden_sizes' has ", amount(given->size(), "entry", "entries"),
                 ", expected 3"));
    sizes = dims_of(*given);
  }
  if (c.flag("do_rotary"))
    c.unsupported("attribute 'do_rotary' is 1, expected 0; use a RotaryEmbedding node");
  if (c.flag("past_present_share_buffer"))
    c.unsupported("attribute 'past_present_share_buffer' is 1, expected 0");
  c.ignore("rotary_embedding_dim");
  const Values each = split_axis(from.qkv, 2, sizes);
  Parts p{split_heads(each[0], heads), split_heads(each[1], heads), split_heads(each[2], heads)};
  put_past_first(c, from.past, p);
  const Dim batch = p.q.shape()[0], queries = p.q.shape()[2], keys = p.k.shape()[2];
  const double scale = scale_of(c, p.q.shape()[3]);
  Value bias;
  if (c.has(from.mask))
    bias = bias_of_any_mask(c, c.in(from.mask), p.q.dtype(), filter, batch, queries, keys);
  if (from.extra != 0 && c.has(from.extra)) bias = joined_bias(bias, c.in(from.extra));
  std::optional<Dim> causal;
  if (c.flag("unidirectional")) causal = keys - queries;
  Value y = merge_heads(attended(p, bias, scale, causal));
  if (!c.wants(1)) return {y};
  return {y, concat_values(Values{unsqueeze(p.k, {0}), unsqueeze(p.v, {0})}, 0)};
}

Values contrib_attention(NodeContext& c) {
  Value qkv = ops::matmul(c.in(0), c.in(1));
  if (c.has(2)) qkv = plus(qkv, c.in(2));
  return attention_of(c, {qkv, 3, 4, 5});
}

// The same for integers: input, weight, bias, their scales, mask, zero points, past.
Values quantized_attention(NodeContext& c) {
  auto whole = [&](std::size_t input, std::size_t zero) {
    Value x = cast_to(c.in(input), DType::i32);
    return c.has(zero) ? joined(ops::sub, x, cast_to(c.in(zero), DType::i32)) : x;
  };
  Value sums = ops::matmul(whole(0, 6), whole(1, 7));
  Value scale = joined(ops::mul, c.in(3), c.in(4));
  Value qkv = times(cast_to(sums, scale.dtype()), scale);
  return attention_of(c, {plus(qkv, c.in(2)), 5, 8, 0});
}

// ==== MultiHeadAttention

// Converts [b, s, heads * d], unless it has a heads axis already.
Value as_heads(NodeContext& c, Value x, std::int64_t heads) {
  if (x.rank() == 4) return x;
  if (x.rank() != 3) c.fail(cat("an input is ", x.type(), ", expected 3 or 4 axes"));
  return split_heads(x, heads);
}

// Splits one projection into [b, s, heads, parts, d].
Values packed_heads(NodeContext& c, Value x, std::int64_t heads, int parts) {
  if (prove_equal(x.shape()[2], heads) == false || prove_equal(x.shape()[3], parts) == false)
    c.fail(cat("a packed input is ", x.type(), ", expected [batch, sequence, ", heads, ", ", parts,
               ", head_size]"));
  Values out;
  for (int i = 0; i < parts; ++i) out.push_back(transpose_by(take_axis(x, 3, i), Axes{0, 2, 1, 3}));
  return out;
}

Parts multi_head_parts(NodeContext& c, std::int64_t heads) {
  Parts p;
  if (c.in(0).rank() == 5) {
    if (c.has(1) || c.has(2))
      c.fail("inputs 'key' and 'value' are given beside a packed 'query'; leave them out");
    const Values all = packed_heads(c, c.in(0), heads, 3);
    p = {all[0], all[1], all[2]};
  } else {
    p.q = as_heads(c, c.in(0), heads);
    if (c.in(1).rank() == 5) {
      if (c.has(2)) c.fail("input 'value' is given beside a packed 'key'; leave it out");
      const Values both = packed_heads(c, c.in(1), heads, 2);
      p.k = both[0], p.v = both[1];
    } else {
      p.k = as_heads(c, c.in(1), heads);
      p.v = as_heads(c, c.in(2), heads);
    }
  }
  if (c.has(3)) {
    const Dim wide = p.q.shape()[1] * p.q.shape()[3], deep = p.v.shape()[1] * p.v.shape()[3];
    const Values each = split_axis(c.in(3), 0, Dims{wide, wide, deep});
    auto with_bias = [&](Value x, Value bias) {
      return plus(x, reshape_to(bias, {x.shape()[1], 1, x.shape()[3]}));
    };
    p.q = with_bias(p.q, each[0]);
    // Keys that have a heads axis belong to another sequence and already include their bias.
    if (!c.has(1) || c.in(1).rank() != 4) {
      p.k = with_bias(p.k, each[1]);
      p.v = with_bias(p.v, each[2]);
    }
  }
  if (c.has(6) != c.has(7))
    c.fail("only one of 'past_key' and 'past_value' is given, expected both or neither");
  if (c.has(6)) {
    p.k = concat_values(Values{c.in(6), p.k}, 2);
    p.v = concat_values(Values{c.in(7), p.v}, 2);
  }
  return p;
}

Values multi_head_attention(NodeContext& c) {
  const std::int64_t heads = heads_of(c, "num_heads");
  const double filter = c.real("mask_filter_value", -10000);
  if (c.has(8) || c.has(9))
    c.unsupported("inputs 'past_sequence_length' and 'cache_indirection' are not supported");
  Parts p = multi_head_parts(c, heads);
  const Dim batch = p.q.shape()[0], queries = p.q.shape()[2], keys = p.k.shape()[2];
  const double scale = scale_of(c, p.q.shape()[3]);
  Value bias;
  if (c.has(4)) bias = bias_of_any_mask(c, c.in(4), p.q.dtype(), filter, batch, queries, keys);
  if (c.has(5)) bias = joined_bias(bias, c.in(5));
  std::optional<Dim> causal;
  if (c.flag("unidirectional")) causal = keys - queries;
  return {merge_heads(attended(p, bias, scale, causal)), p.k, p.v};
}

// ==== positions

// Rows of the tables for positions [1] or [b, s]: a first position, or all of them.
Value rows_at(Value table, Value places, const Dim& queries) {
  if (places.rank() == 1) {
    Value first = reshape_to(cast_to(places, DType::i64), {1, 1});
    Value i = iota_value(table.graph(), DType::i64, {1, queries}, 1);
    places = plus(first, i);
  }
  require_within(places, 0, table.shape()[0] - Dim(1), "a position");
  return ops::gather(Values{table, places}, {{"axis", std::int64_t{0}}});
}

Values contrib_rotary_embedding(NodeContext& c) {
  const Value given = c.in(0);
  const bool interleaved = c.flag("interleaved");
  std::int64_t heads = c.integer("num_heads", 0);
  const std::int64_t turned = c.integer("rotary_embedding_dim", 0);
  if (c.real("scale", 1) != 1)
    c.unsupported(cat("attribute 'scale' is ", c.real("scale", 1), ", expected 1"));
  if (c.flag("is_packed_batching"))
    c.unsupported("attribute 'is_packed_batching' is 1, expected 0");
  Value x = given;
  if (given.rank() == 3) {
    const Dim size =
        turned > 0 && heads > 0 ? floor_div(given.shape()[2], heads) : c.in(2).shape()[1] * Dim(2);
    x = split_heads(given, floor_div(given.shape()[2], size));
  }
  const Dim queries = x.shape()[2];
  Value y = rotated(x, rows_at(c.in(2), c.in(1), queries), rows_at(c.in(3), c.in(1), queries),
                    interleaved);
  return {given.rank() == 3 ? merge_heads(y) : y};
}

// ==== GroupQueryAttention

// Writes new keys or values [b, h, s, d] at each batch's position in a cache of `room` positions.
Value in_cache(NodeContext& c, Value now, Value past, Value places, const Dim& room) {
  Dims dims = now.shape().dims;
  dims[2] = room;
  Value cache = filled(c.graph(), now.dtype(), Shape(dims), 0);
  if (past) {
    Dims low(4, 0), high = low;
    high[2] = room - past.shape()[2];
    cache = reshape_to(pad_with(past, scalar(c.graph(), 0, now.dtype()), low, high), dims);
  }
  places =
      broadcast_to(reshape_to(places, {places.shape()[0], 1, places.shape()[1], 1}), now.shape());
  return ops::scatter_elements(Values{cache, places, now},
                               {{"axis", std::int64_t{2}}, {"kind", std::string("set")}});
}

// The keys visible to a query at its position: not after it, and not too far before it.
Value window_bias(NodeContext& c, Value places, const Dim& keys, std::int64_t window, DType dtype) {
  Value at = reshape_to(places, {places.shape()[0], 1, places.shape()[1], 1});
  Value key = iota_value(c.graph(), DType::i64, {1, 1, 1, keys}, 3);
  Value on = joined(ops::le, key, at);
  if (window > 0) on = both(on, joined(ops::lt, minus(at, integer_like(at, window)), key));
  return bias_of_mask(on, dtype, -std::numeric_limits<double>::infinity());
}

// A sink weight in softmax without a value, one for all heads or [heads]: adds a zero key and value
// with the sink as bias.
void add_sink(Parts& p, Value& bias, Value sink) {
  const Value zero = scalar(p.k.graph(), 0, p.k.dtype());
  const Dims low(4, 0), high = {0, 0, 1, 0};
  p.k = pad_with(p.k, zero, low, high);
  p.v = pad_with(p.v, zero, low, high);
  const Dims& q = p.q.shape().dims;
  const Shape all{q[0], q[1], q[2], bias.shape()[-1]}, column{q[0], q[1], q[2], 1};
  if (sink.rank() == 1) sink = along(sink, 1, 4);
  bias = concat_values(Values{broadcast_to(bias, all), broadcast_to(sink, column)}, 3);
}

Values group_query_attention(NodeContext& c) {
  const std::int64_t heads = heads_of(c, "num_heads"), shared = heads_of(c, "kv_num_heads"),
                     window = c.integer("local_window_size", -1);
  const bool rotates = c.flag("do_rotary"), interleaved = c.flag("rotary_interleaved");
  const double cap = c.real("softcap", 0);
  const bool has_sink = c.flag("smooth_softmax") || c.has(11);
  if (heads % shared != 0)
    c.fail(
        cat("attribute 'num_heads' is ", heads, ", expected a multiple of kv_num_heads, ", shared));
  Value q = c.in(0), k, v;
  if (c.has(1)) {
    k = c.in(1), v = c.in(2);
  } else {
    const Dim each = floor_div(q.shape()[2], heads + 2 * shared);
    const Values parts =
        split_axis(q, 2, Dims{each * Dim(heads), each * Dim(shared), each * Dim(shared)});
    q = parts[0], k = parts[1], v = parts[2];
  }
  Parts p{split_heads(q, heads), split_heads(k, shared), split_heads(v, shared)};
  hone::Graph& g = c.graph();
  const Dim queries = p.q.shape()[2], batch = p.q.shape()[0];
  Value past_k = c.has(3) ? c.in(3) : Value(), past_v = c.has(4) ? c.in(4) : Value();
  const Dim before = past_k ? past_k.shape()[2] : Dim(0);
  // The total length is mostly computed from sizes; otherwise it is known only at run time.
  const Dim total = c.open_size(6, before + queries);
  const Dim room = past_k ? max(before, total) : total;
  // The position of the first new token: after each batch's past; a first prompt starts at 0.
  Value last = cast_to(flatten(c.in(5)), DType::i64);
  require_within(last, 0, room - Dim(1), "a position in 'seqlens_k'");
  Value first = last - broadcast_to(size_value(g, queries - Dim(1), DType::i64), last.shape());
  first = ops::maximum(first, integer_like(first, 0));
  Value places = plus(reshape_to(first, {batch, 1}), iota_value(g, DType::i64, {1, queries}, 1));
  if (rotates) {
    Value at = c.has(9) ? cast_to(c.in(9), DType::i64) : places;
    require_within(at, 0, c.in(7).shape()[0] - Dim(1), "a position");
    auto rows = [&](std::size_t table) {
      return ops::gather(Values{c.in(table), at}, {{"axis", std::int64_t{0}}});
    };
    const Value cosine = rows(7), sine = rows(8);
    p.q = rotated(p.q, cosine, sine, interleaved);
    p.k = rotated(p.k, cosine, sine, interleaved);
  }
  p.k = in_cache(c, p.k, past_k, places, room);
  p.v = in_cache(c, p.v, past_v, places, room);
  const double scale = scale_of(c, p.q.shape()[3]);
  Value bias = window_bias(c, places, room, window, p.q.dtype());
  if (c.has(10)) {
    Value given = c.in(10);
    Dims low(4, 0), high = low;
    high[3] = room - given.shape()[3];
    bias = plus(bias, pad_with(given, scalar(g, 0, given.dtype()), low, high));
  }
  const Values cache = {p.k, p.v};
  if (has_sink) add_sink(p, bias, c.has(11) ? c.in(11) : scalar(g, 0, p.q.dtype()));
  return {merge_heads(attended(p, bias, scale, std::nullopt, cap)), cache[0], cache[1]};
}

constexpr ImportEntry contrib_attention_table[] = {
    {.op = "Attention", .import = contrib_attention, .domain = contrib_domain},
    {.op = "QAttention", .import = quantized_attention, .domain = contrib_domain},
    {.op = "MultiHeadAttention", .import = multi_head_attention, .domain = contrib_domain},
    {.op = "RotaryEmbedding", .import = contrib_rotary_embedding, .domain = contrib_domain},
    {.op = "GroupQueryAttention", .import = group_query_attention, .domain = contrib_domain},
};

}  // namespace

std::span<const ImportEntry> contrib_attention_imports() { return contrib_attention_table; }

}  // namespace hone::onnx
