// How each op is written to an ONNX file. An op that is not here is expanded; if that is not
// possible, it is refused.
#include "ops/ops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "export/onnx/dtypes.h"
#include "export/onnx/graph.h"
#include "import/onnx/file/tensor.h"
#include "ir/measured.h"

namespace hone::onnx {

namespace {

using Names = std::vector<std::string>;
using Integers = std::vector<std::int64_t>;

Names inputs(const ExportGraph& g, Value v) {
  Names out;
  for (const Value& o : v.operands()) out.push_back(g.name(o));
  return out;
}
std::string in(const ExportGraph& g, Value v, std::size_t i) { return g.name(v.operand(i)); }

[[noreturn]] void refuse(std::string_view why) { throw UserError(why); }

// The file keeps numbers in f32. The operators' own defaults, which f32 rounds, are written too, by
// leaving the attribute out.
constexpr double leaky_alpha = 0.01, norm_epsilon = 1e-5;

bool fits_real(Value v, AttrName name, double fallback) {
  const double x = v.attrs().real(name);
  return x == fallback || x == static_cast<double>(static_cast<float>(x));
}
std::vector<Message> real_of(Value v, AttrName name, double fallback) {
  const double x = v.attrs().real(name);
  if (x == fallback) return {};
  return {attribute(name.text(), static_cast<float>(x))};
}

// ==== elementwise

Names write_same(ExportGraph& g, Value v) {
  const std::string_view op = v.op().onnx.name;
  const DType from = v.operand(0).dtype();
  g.state().need_opset(opset_for(op, from));
  if (v.dtype() == from) return {one_in_dtype(g, op, inputs(g, v), from)};
  Names operands = inputs(g, v);  // a comparison
  for (std::string& x : operands) x = in_dtype_for(g, op, x, from);
  return {g.one(op, operands)};
}

Names write_neg(ExportGraph& g, Value v) {
  if (is_signed(v.dtype()) || is_float(v.dtype())) return write_same(g, v);
  return {g.one("Sub", {g.constant(Array::scalar_int(0, v.dtype())), in(g, v, 0)})};
}

Names write_select(ExportGraph& g, Value v) {
  const auto wide = [&](std::size_t i) { return in_dtype_for(g, "Where", in(g, v, i), v.dtype()); };
  return {back_from(g, "Where", g.one("Where", {in(g, v, 0), wide(1), wide(2)}), v.dtype())};
}

Names write_bits(ExportGraph& g, Value v) {
  static const std::map<const Op*, std::pair<std::string_view, std::string_view>> names = {
      {&ops::bit_and, {"And", "BitwiseAnd"}},
      {&ops::bit_or, {"Or", "BitwiseOr"}},
      {&ops::bit_xor, {"Xor", "BitwiseXor"}},
      {&ops::bit_not, {"Not", "BitwiseNot"}}};
  const auto& [logic, bits] = names.at(&v.op());
  return {g.one(v.dtype() == DType::b1 ? logic : bits, inputs(g, v))};
}

DType unsigned_of(DType t) {
  switch (t) {
    case DType::i8:
      return DType::u8;
    case DType::i16:
      return DType::u16;
    case DType::i32:
      return DType::u32;
    case DType::i64:
      return DType::u64;
    default:
      refuse("ONNX shifts only integers of 8 to 64 bits");
  }
}

// ONNX shifts unsigned integers only. To the right, a negative number and its complement lose the
// same bits.
Names write_shift(ExportGraph& g, Value v) {
  const bool left = v.is(ops::shift_left);
  const Message direction = attribute("direction", left ? "LEFT" : "RIGHT");
  if (!is_signed(v.dtype())) return {g.one("BitShift", inputs(g, v), {direction})};
  const DType bits = unsigned_of(v.dtype());
  std::string x = in(g, v, 0), is_negative;
  const auto complement = [&] {
    if (!left) x = g.one("Where", {is_negative, g.one("BitwiseNot", {x}), x});
  };
  if (!left) is_negative = g.one("Less", {x, g.constant(Array::scalar_int(0, v.dtype()))});
  complement();
  x = g.one("BitShift", {g.cast(x, bits), g.cast(in(g, v, 1), bits)}, {direction});
  x = g.cast(x, v.dtype());
  complement();
  return {x};
}

Names write_ne(ExportGraph& g, Value v) { return {g.one("Not", {g.one("Equal", inputs(g, v))})}; }

// NaN is not below 0, and stays NaN.
Names write_trunc(ExportGraph& g, Value v) {
  const std::string x = in(g, v, 0), zero = g.constant(Array::scalar(0, v.dtype()));
  return {g.one("Where", {g.one("Less", {x, zero}), g.one("Ceil", {x}), g.one("Floor", {x})})};
}

Names write_rem(ExportGraph& g, Value v) {
  return {g.one("Mod", inputs(g, v), {attribute("fmod", std::int64_t{1})})};
}
Names write_mod(ExportGraph& g, Value v) { return {g.one("Mod", inputs(g, v))}; }

Names write_square(ExportGraph& g, Value v) {
  return {g.one("Pow", {in(g, v, 0), g.constant(Array::scalar(2, v.dtype()))})};
}
Names write_gelu_tanh(ExportGraph& g, Value v) {
  return {g.one("Gelu", inputs(g, v), {attribute("approximate", "tanh")})};
}
Names write_leaky_relu(ExportGraph& g, Value v) {
  return {g.one("LeakyRelu", inputs(g, v), real_of(v, "alpha", leaky_alpha))};
}

// To few bits, floats are cut to the range first: ONNX leaves what lies outside open. Small floats
// go through f32, which holds the bounds.
std::string within_bits(ExportGraph& g, const std::string& x, DType from, DType to) {
  const DType t = is_small(from) ? DType::f32 : from;
  const double size = std::ldexp(1, bit_size(to) - (is_signed(to) ? 1 : 0));
  const auto bound = [&](double n) { return g.constant(Array::scalar(n, t)); };
  return g.one("Clip",
               {t == from ? x : g.cast(x, t), bound(is_signed(to) ? -size : 0), bound(size - 1)});
}

Names write_cast(ExportGraph& g, Value v) {
  const DType from = v.operand(0).dtype(), to = v.dtype();
  const std::string x = in(g, v, 0);
  if (!is_small(to)) return {g.cast(x, to)};
  if (!is_float(to)) return {g.cast(is_float(from) ? within_bits(g, x, from, to) : x, to)};
  return {g.cast(x, to)};
}

Names write_bitcast(ExportGraph& g, Value v) {
  const DType from = v.operand(0).dtype(), to = v.dtype();
  if (bit_size(from) != bit_size(to) || from == DType::b1 || to == DType::b1)
    refuse("ONNX reinterprets bits only between types of equal size, and not of bool");
  g.state().need_opset(26);
  return {g.one("BitCast", {in(g, v, 0)}, {attribute("to", std::int64_t{data_type_of(to)})})};
}

// The number that distinguishes a recomputed value has no meaning in the file.
Names write_operand(ExportGraph& g, Value v) { return {in(g, v, 0)}; }

// ==== leaves

Names write_constant(ExportGraph& g, Value v) {
  return {g.constant(v.attrs().get<Array>("value"))};
}

// The number is the size from here on.
Names write_measure(ExportGraph& g, Value v) {
  const std::string n = in(g, v, 0);
  if (const Dim& size = v.attrs().dims("symbol")[0]; size.is_symbol())
    g.state().sizes.insert_or_assign(size.name(), g.reshape(n, {1}));
  return {n};
}

Names write_dims(ExportGraph& g, Value v) {
  std::string out = g.sizes(v.attrs().dims("dims"));
  if (v.rank() != 1) out = g.reshape(out, v.shape().dims);
  return {v.dtype() == DType::i64 ? out : g.cast(out, v.dtype())};
}

Names write_iota(ExportGraph& g, Value v) {
  const auto axis = static_cast<std::size_t>(v.attrs().integer("axis"));
  Dims line(static_cast<std::size_t>(v.rank()), Dim(1));
  line[axis] = v.shape().dims[axis];
  std::string out = g.range(line[axis]);
  if (v.dtype() != DType::i64) out = g.cast(out, v.dtype());
  if (v.rank() > 1) out = g.reshape(out, line);
  return {line == v.shape().dims ? out : g.expand(out, v.shape().dims)};
}

// ==== movement

Names write_reshape(ExportGraph& g, Value v) { return {g.reshape(in(g, v, 0), v.shape().dims)}; }
Names write_transpose(ExportGraph& g, Value v) {
  return {g.one("Transpose", inputs(g, v), {attribute("perm", v.attrs().integers("perm"))})};
}
Names write_broadcast(ExportGraph& g, Value v) {
  return {one_in_dtype(g, "Expand", {in(g, v, 0)}, v.dtype(), {g.sizes(v.shape().dims)})};
}

Integers all_axes(int rank) {
  Integers out(static_cast<std::size_t>(rank));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

Names write_slice(ExportGraph& g, Value v) {
  const Dims& starts = v.attrs().dims("starts");
  const Integers steps = v.attrs().integers("steps");
  Dims ends;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    // Never below 0, which would count from the back; ONNX cuts what is past the end.
    const Dim size = v.shape().dims[i], step = steps[i];
    ends.push_back(starts[i] + (size.low() > 0 ? (size - 1) * step + 1 : size * step));
  }
  return {one_in_dtype(
      g, "Slice", {in(g, v, 0)}, v.dtype(),
      {g.sizes(starts), g.sizes(ends), g.integers(all_axes(v.rank())), g.integers(steps)})};
}

Names write_reverse(ExportGraph& g, Value v) {
  const Integers axes = v.attrs().integers("axes");
  constexpr std::int64_t before_first = std::numeric_limits<std::int64_t>::min();
  return {one_in_dtype(
      g, "Slice", {in(g, v, 0)}, v.dtype(),
      {g.integers(Integers(axes.size(), -1)), g.integers(Integers(axes.size(), before_first)),
       g.integers(axes), g.integers(Integers(axes.size(), -1))})};
}

Names write_pad(ExportGraph& g, Value v) {
  Dims pads = v.attrs().dims("low");
  const Dims& high = v.attrs().dims("high");
  pads.insert(pads.end(), high.begin(), high.end());
  const DType t = v.dtype();
  if (v.is(ops::pad))
    return {one_in_dtype(g, "Pad", {in(g, v, 0)}, t,
                         {g.sizes(pads), in_dtype_for(g, "Pad", in(g, v, 1), t)})};
  return {one_in_dtype(g, "Pad", {in(g, v, 0)}, t, {g.sizes(pads)},
                       {attribute("mode", v.is(ops::pad_edge) ? "edge" : "reflect")})};
}

Names write_concat(ExportGraph& g, Value v) {
  return {one_in_dtype(g, "Concat", inputs(g, v), v.dtype(), {}, {axis_attribute(v)})};
}
Names write_tile(ExportGraph& g, Value v) {
  return {one_in_dtype(g, "Tile", {in(g, v, 0)}, v.dtype(), {g.sizes(v.attrs().dims("count"))})};
}

// ==== reductions

Names write_reduce(ExportGraph& g, Value v) {
  static const std::map<const Op*, std::string_view> names = {
      {&ops::reduce_sum, "ReduceSum"}, {&ops::reduce_max, "ReduceMax"},
      {&ops::reduce_min, "ReduceMin"}, {&ops::reduce_prod, "ReduceProd"},
      {&ops::reduce_and, "ReduceMin"}, {&ops::reduce_or, "ReduceMax"},
      {&ops::mean, "ReduceMean"}};
  const Integers axes = v.attrs().integers("axes");
  return {one_in_dtype(g, names.at(&v.op()), {in(g, v, 0)}, v.dtype(), {g.integers(axes)},
                       {attribute("keepdims", std::int64_t{0}),
                        attribute("noop_with_empty_axes", std::int64_t{1})})};
}

Names write_arg(ExportGraph& g, Value v) {
  const std::string_view op = v.is(ops::argmax) ? "ArgMax" : "ArgMin";
  const std::string x = in_dtype_for(g, op, in(g, v, 0), v.operand(0).dtype());
  std::string out = g.one(op, {x}, {axis_attribute(v), attribute("keepdims", std::int64_t{0})});
  return {v.dtype() == DType::i64 ? out : g.cast(out, v.dtype())};
}

Names write_cumulative(ExportGraph& g, Value v) {
  const std::string& kind = v.attrs().get<std::string>("kind");
  if (kind != "sum" && kind != "prod") refuse("ONNX has running sums and products only");
  if (kind == "prod") g.state().need_opset(26);
  return {one_in_dtype(g, kind == "sum" ? "CumSum" : "CumProd", {in(g, v, 0)}, v.dtype(),
                       {g.constant(Array::scalar_int(v.attrs().integer("axis"), DType::i64))},
                       {attribute("exclusive", v.attrs().integer_or("exclusive", 0)),
                        attribute("reverse", v.attrs().integer_or("reverse", 0))})};
}

Names write_sort(ExportGraph& g, Value v) {
  const Dim size = v.shape()[static_cast<int>(v.attrs().integer("axis"))];
  const std::string x = in_dtype_for(g, "TopK", in(g, v, 0), v.dtype());
  Names out =
      g.node("TopK", {x, g.sizes({size})},
             {axis_attribute(v), attribute("largest", v.attrs().integer_or("descending", 0))}, 2);
  out[0] = back_from(g, "TopK", out[0], v.dtype());
  return out;
}

// ==== recurrence

// One direction; the two halves of ONNX's bias are added.
Names write_lstm(ExportGraph& g, Value v) {
  const Dims &weights = v.operand(1).shape().dims, &recurrent = v.operand(2).shape().dims;
  const Dims &state = v.operand(4).shape().dims, &bias = v.operand(3).shape().dims;
  const auto with_direction = [&](std::size_t i, Dims dims) {
    dims.insert(dims.begin(), 1);
    return g.reshape(in(g, v, i), dims);
  };
  const std::string none = g.expand(g.constant(Array::scalar(0, v.dtype())), bias);
  std::string lengths;
  if (v.operand_count() > 6)
    lengths = v.operand(6).dtype() == DType::i32 ? in(g, v, 6) : g.cast(in(g, v, 6), DType::i32);
  const std::string both =
      g.one("Concat", {in(g, v, 3), none}, {attribute("axis", std::int64_t{0})});
  Names given = {in(g, v, 0),
                 with_direction(1, weights),
                 with_direction(2, recurrent),
                 g.reshape(both, {1, bias[0] * Dim(2)}),
                 lengths,
                 with_direction(4, state),
                 with_direction(5, state)};
  std::vector<Message> attributes = {
      attribute("direction", v.attrs().integer("reverse") != 0 ? "reverse" : "forward")};
  if (state[1].is_number()) attributes.push_back(attribute("hidden_size", state[1].number()));
  Names made = g.node("LSTM", given, attributes, 3);
  for (std::size_t i = 0; i < made.size(); ++i)
    made[i] = g.reshape(made[i], v.result(i).shape().dims);
  return made;
}

// ==== rows and norms

Names write_softmax(ExportGraph& g, Value v) {
  return {g.one(v.is(ops::softmax) ? "Softmax" : "LogSoftmax", inputs(g, v), {axis_attribute(v)})};
}
Names write_layer_norm(ExportGraph& g, Value v) {
  std::vector<Message> attributes = real_of(v, "epsilon", norm_epsilon);
  attributes.push_back(axis_attribute(v));
  if (v.is(ops::rms_norm)) g.state().need_opset(23);
  return {g.one(v.is(ops::rms_norm) ? "RMSNormalization" : "LayerNormalization", inputs(g, v),
                attributes)};
}
Names write_batch_norm(ExportGraph& g, Value v) {
  return {g.one("BatchNormalization", inputs(g, v), real_of(v, "epsilon", norm_epsilon))};
}

// ==== control

// A body as a graph: its inputs, what it computes, its results as outputs.
struct BodyText {
  Message graph;
  void input(const std::string& name, const Type& t) { graph.message(11, value_info(name, t)); }
  // Results must be made in the body itself.
  void output(ExportGraph& g, const std::string& from, const Type& t) {
    graph.message(12, value_info(g.one("Identity", {from}), t));
  }
  Message finish(const ExportGraph& g, std::string_view name) {
    graph.append(g.nodes());
    graph.bytes(2, name);
    return graph;
  }
};

// Expansions are added to a body's graph, so it is copied first.
Function own(const FunctionRef& f) {
  return transform(*f, [](NodeId, Copier&, Function&) { return Values(); });
}

// The sizes that data decides in a body are known there only.
class SizesOfBody {
 public:
  explicit SizesOfBody(ExportState& state) : state_(state), outside_(state.sizes) {}
  ~SizesOfBody() { state_.sizes = std::move(outside_); }
  SizesOfBody(const SizesOfBody&) = delete;
  SizesOfBody& operator=(const SizesOfBody&) = delete;

 private:
  ExportState& state_;
  std::unordered_map<std::string, std::string> outside_;
};

Message branch(ExportGraph& outer, Value v, AttrName which) {
  const SizesOfBody sizes(outer.state());
  const Function f = own(v.attrs().get<FunctionRef>(which));
  Names names = inputs(outer, v);
  names.erase(names.begin());
  ExportGraph g(outer.state(), f, names);
  const std::string around = std::exchange(g.state().condition, in(outer, v, 0));
  BodyText body;
  const Names made = g.results();
  for (std::size_t i = 0; i < made.size(); ++i) body.output(g, made[i], f.result(i).type());
  g.state().condition = around;
  return body.finish(g, which.text());
}

Names write_if(ExportGraph& g, Value v) {
  const Message yes = branch(g, v, "then"), no = branch(g, v, "else");
  return g.node("If", {in(g, v, 0)}, {attribute("then_branch", yes), attribute("else_branch", no)},
                static_cast<int>(v.result_count()));
}

// A branch that no run may take reads behind the end, at a place that is not known before the run:
// then no reader refuses the whole model.
Names write_refuse(ExportGraph& g, Value v) {
  if (g.state().condition.empty()) refuse("ONNX can fail a run only in a branch of an If");
  const auto number = [&](std::int64_t n) { return g.constant(Array::scalar_int(n, DType::i64)); };
  const std::string zero = g.one("Mul", {g.cast(g.state().condition, DType::i64), number(0)});
  const std::string element =
      g.one("Gather", {g.constant(Array::zeros(v.dtype(), {1})), g.one("Add", {zero, number(1)})});
  return {g.expand(element, v.shape().dims)};
}

// The condition is computed before the loop, and at the end of the body for the next iteration.
Names write_while(ExportGraph& g, Value v) {
  const SizesOfBody sizes(g.state());
  const Function condition = own(v.attrs().get<FunctionRef>("condition")),
                 f = own(v.attrs().get<FunctionRef>("body"));
  const Names outer = inputs(g, v);
  const std::size_t carried = v.result_count();
  ExportGraph before(g.state(), condition, outer);
  const std::string first = before.results()[0];
  g.add(before.nodes());

  Names names = outer;
  BodyText body;
  const std::string turn = g.fresh(), go_on = g.fresh();
  body.input(turn, i64({}));
  body.input(go_on, b1({}));
  for (std::size_t i = 0; i < carried; ++i) {
    names[i] = g.fresh();
    body.input(names[i], f.param(i).type());
  }
  ExportGraph inner(g.state(), f, names);
  const Names made = inner.results();
  std::copy(made.begin(), made.end(), names.begin());
  ExportGraph again(g.state(), condition, names);
  const std::string next = again.results()[0];
  inner.add(again.nodes());
  body.output(inner, next, b1({}));
  for (std::size_t i = 0; i < carried; ++i) body.output(inner, made[i], f.result(i).type());
  Names given = {"", first};
  given.insert(given.end(), outer.begin(), outer.begin() + static_cast<std::ptrdiff_t>(carried));
  return g.node("Loop", given, {attribute("body", body.finish(inner, "body"))},
                static_cast<int>(carried));
}

constexpr ExportEntry export_ops_table[] = {
    {&ops::constant, write_constant},
    {&ops::dims, write_dims},
    {&ops::measure, write_measure},
    {&ops::iota, write_iota},
    {&ops::bit_and, write_bits},
    {&ops::bit_or, write_bits},
    {&ops::bit_xor, write_bits},
    {&ops::bit_not, write_bits},
    {&ops::shift_left, write_shift},
    {&ops::shift_right, write_shift},
    {&ops::ne, write_ne},
    {&ops::neg, write_neg},
    {&ops::select, write_select},
    {&ops::trunc, write_trunc},
    {&ops::rem, write_rem},
    {&ops::mod, write_mod},
    {&ops::square, write_square},
    {&ops::gelu_tanh, write_gelu_tanh},
    {&ops::leaky_relu, write_leaky_relu},
    {&ops::cast, write_cast},
    {&ops::bitcast, write_bitcast},
    {&ops::replay, write_operand},
    {&ops::reshape, write_reshape},
    {&ops::transpose, write_transpose},
    {&ops::broadcast, write_broadcast},
    {&ops::slice, write_slice},
    {&ops::reverse, write_reverse},
    {&ops::pad, write_pad},
    {&ops::pad_edge, write_pad},
    {&ops::pad_reflect, write_pad},
    {&ops::concat, write_concat},
    {&ops::tile, write_tile},
    {&ops::reduce_sum, write_reduce},
    {&ops::reduce_max, write_reduce},
    {&ops::reduce_min, write_reduce},
    {&ops::reduce_prod, write_reduce},
    {&ops::reduce_and, write_reduce},
    {&ops::reduce_or, write_reduce},
    {&ops::mean, write_reduce},
    {&ops::argmax, write_arg},
    {&ops::argmin, write_arg},
    {&ops::cumulative, write_cumulative},
    {&ops::sort, write_sort},
    {&ops::lstm, write_lstm},
    {&ops::softmax, write_softmax},
    {&ops::log_softmax, write_softmax},
    {&ops::layer_norm, write_layer_norm},
    {&ops::rms_norm, write_layer_norm},
    {&ops::batch_norm, write_batch_norm},
    {&ops::if_else, write_if},
    {&ops::while_loop, write_while},
    {&ops::refuse, write_refuse},
};

// Ops that ONNX supports only in some forms are expanded in the others.
bool stands_whole(const ExportGraph& g, Value v) {
  const Attrs& a = v.attrs();
  if (v.is(ops::relu)) return is_float(v.dtype());
  if (v.is(ops::mod)) return !is_float(v.dtype());
  if (v.is(ops::leaky_relu)) return fits_real(v, "alpha", leaky_alpha);
  if (v.is(ops::layer_norm) || v.is(ops::rms_norm) || v.is(ops::batch_norm))
    return fits_real(v, "epsilon", norm_epsilon) &&
           (!v.is(ops::batch_norm) || a.integer("axis") == 1);
  return is_exported_whole(g, v) && is_pooled_whole(v);
}

}  // namespace

ExportNode find_export(const ExportGraph& g, Value v) {
  static const std::unordered_map<const Op*, ExportNode> table = [] {
    std::unordered_map<const Op*, ExportNode> out;
    for (const ExportEntry& e : export_ops_table) out.emplace(e.op, e.write);
    for (const auto& more : {index_exports(), window_exports()})
      for (const ExportEntry& e : more) out.emplace(e.op, e.write);
    for (const Op* op : all_ops())
      if (!op->onnx.name.empty()) out.emplace(op, write_same);
    return out;
  }();
  const auto found = table.find(&v.op());
  return found != table.end() && stands_whole(g, v) ? found->second : nullptr;
}

}  // namespace hone::onnx
