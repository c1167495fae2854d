// Loop and Scan: unrolled for a small known iteration count, otherwise real loops.
#include "import/onnx/operators/loop.h"

#include <algorithm>
#include <functional>

#include "base/amount.h"
#include "import/common/build.h"
#include "import/onnx/node/context.h"
#include "import/onnx/node/grown.h"
#include "import/onnx/node/known.h"
#include "import/onnx/node/open_outputs.h"
#include "import/onnx/operators/carried.h"
#include "import/onnx/operators/list.h"

namespace hone::onnx {

namespace {

constexpr std::int64_t most_unrolled = 16, most_turns_of_sequences = 1024;
// Limits for all loops of a model together: nested loops multiply.
constexpr std::int64_t most_turns_in_all = 1 << 12, most_turns_of_all_sequences = 1 << 14;

// One iteration of a loop, for both Loop and Scan: computes arguments of the body from the
// iteration number, the carried values and constants; its results are `skipped` ones, the carried
// values, and outputs that are stacked along a new first axis.
struct Turns {
  const onnx::Graph& body;
  Dim count;
  Values carried, constants;
  // In the graph of `turn`.
  std::function<Values(Value turn, const Values& carried, const Values& constants)> arguments;
  std::size_t skipped = 0;
  std::size_t first_argument = 0;    // of the carried values
  std::vector<bool> backwards = {};  // by output: whether the last iteration's comes first

  std::size_t outputs() const { return body.outputs.size() - skipped - carried.size(); }
};

struct Turned {
  Values carried, outputs;
};

void check_results(NodeContext& c, const Turns& t) {
  if (t.body.outputs.size() < t.skipped + t.carried.size())
    c.fail(cat("the body has ", amount(t.body.outputs.size(), "output", "outputs"),
               ", expected at least ", t.skipped + t.carried.size(), ", for its ", t.carried.size(),
               " loop-carried values"));
}

Values part(const Values& v, std::size_t first, std::size_t count) {
  return Values(v.begin() + static_cast<std::ptrdiff_t>(first),
                v.begin() + static_cast<std::ptrdiff_t>(first + count));
}

// Carried values may change their types between iterations.
Turned unrolled(NodeContext& c, const Turns& t, std::int64_t count) {
  Turned out{t.carried, {}};
  std::vector<Values> stacked(t.outputs());
  for (std::int64_t i = 0; i < count; ++i) {
    Values made =
        c.bodies().inlined(t.body, t.arguments(integer(c.graph(), i), out.carried, t.constants));
    out.carried = part(made, t.skipped, t.carried.size());
    for (std::size_t k = 0; k < stacked.size(); ++k) {
      Value v = unsqueeze(made[t.skipped + t.carried.size() + k], {0});
      const bool first = k < t.backwards.size() && t.backwards[k];
      stacked[k].insert(first ? stacked[k].begin() : stacked[k].end(), v);
    }
  }
  for (const Values& v : stacked) out.outputs.push_back(concat_values(v, 0));
  return out;
}

std::vector<Type> types_of(const Values& values) {
  std::vector<Type> out;
  for (const Value& v : values) out.push_back(v.type());
  return out;
}

// An empty stack for outputs of `turns` iterations.
Value empty_stack(hone::Graph& g, const Type& output, const Dim& turns) {
  Dims dims = output.shape.dims;
  dims.insert(dims.begin(), turns);
  return integers_filled(g, output.dtype, Shape(dims), 0);
}

bool all_tensors(const Values& values) {
  return std::all_of(values.begin(), values.end(),
                     [](const Value& v) { return v.type().is_tensor(); });
}

// A Function whose parameters represent the given values.
std::shared_ptr<Function> over_values(const Values& operands) {
  auto f = std::make_shared<Function>();
  for (const Value& v : operands) f->add_param(v.type(), cat("p", f->params().size()));
  return f;
}

Values params_of(const Function& f, std::size_t first, std::size_t count) {
  Values out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(f.param(first + i));
  return out;
}

// Carried: iteration, values, their sizes, stacks. Constant: constants, captures.
Turned counted_loop(NodeContext& c, const Turns& t) {
  CarriedSequences sequences(c, t.body, t.carried, t.first_argument, t.skipped);
  const Values sample = t.arguments(integer(c.graph(), 0), sequences.tensors(), t.constants);
  OpenOutputs open(c, t.skipped + sequences.tensors().size());
  const auto read = [&](const std::vector<Type>& inputs) {
    return open.with_rooms(sequences.read(inputs));
  };
  const GrownBody grown = grown_body(c, read, types_of(sample), t.first_argument,
                                     sequences.tensors(), t.skipped, t.count);
  const Body& body = grown.body;
  const std::size_t n = grown.carried.size(), m = grown.sizes.size(),
                    stacks = body.function->results().size() - t.skipped - n - m;
  Values operands = {integer(c.graph(), 0)};
  operands.insert(operands.end(), grown.carried.begin(), grown.carried.end());
  operands.insert(operands.end(), grown.sizes.begin(), grown.sizes.end());
  for (std::size_t k = 0; k < stacks; ++k) {
    operands.push_back(
        empty_stack(c.graph(), body.function->result(t.skipped + n + k).type(), t.count));
  }
  const std::size_t constants = operands.size();
  operands.insert(operands.end(), t.constants.begin(), t.constants.end());
  operands.insert(operands.end(), body.captures.begin(), body.captures.end());
  auto go = over_values(operands), next = over_values(operands);
  Value turn = next->param(0);
  auto number = [&](const Dim& d) { return size_value(next->graph(), d, DType::i64); };
  go->add_result(ops::lt(go->param(0), size_value(go->graph(), t.count, DType::i64)));
  Values arguments =
      t.arguments(turn, params_of(*next, 1, n), params_of(*next, constants, t.constants.size()));
  for (const Value& v : params_of(*next, 1 + n, m)) arguments.push_back(v);
  for (const Value& v : params_of(*next, constants + t.constants.size(), body.captures.size()))
    arguments.push_back(v);
  Values made = inline_call(next->graph(), *body.function, arguments);
  next->add_result(turn + integer_like(turn, 1));
  for (std::size_t i = 0; i < n; ++i)
    next->add_result(reshape_to(made[t.skipped + i], next->param(1 + i).shape().dims));
  for (const Value& v : part(made, t.skipped + n + stacks, m)) next->add_result(v);
  for (std::size_t k = 0; k < stacks; ++k) {
    Value stack = next->param(1 + n + m + k), at = turn;
    if (k < t.backwards.size() && t.backwards[k]) at = number(t.count - Dim(1)) - turn;
    next->add_result(updated_at(stack, unsqueeze(made[t.skipped + n + k], {0}), at));
  }
  Value loop =
      ops::while_loop(operands, {{"condition", FunctionRef(go)}, {"body", FunctionRef(next)}});
  Turned out;
  Values carried, sizes;
  for (std::size_t i = 0; i < n; ++i) carried.push_back(loop.result(1 + i));
  for (std::size_t i = 0; i < m; ++i) sizes.push_back(loop.result(1 + n + i));
  for (std::size_t k = 0; k < stacks; ++k) out.outputs.push_back(loop.result(1 + n + m + k));
  open.finish(out.outputs);
  out.carried = sequences.finished(grown.finished(c, carried, sizes), out.outputs);
  return out;
}

Turned turned(NodeContext& c, const Turns& t) {
  check_results(c, t);
  std::optional<std::int64_t> count = t.count.as_number();
  const bool tensors = all_tensors(t.carried);
  const std::int64_t most = tensors ? most_unrolled : most_turns_of_sequences,
                     left = (tensors ? most_turns_in_all : most_turns_of_all_sequences) -
                            c.unrolled_turns();
  if (count && *count <= std::min(most, left) && (!tensors || *count > 0)) {
    c.unrolled_turns() += *count;
    return unrolled(c, t, *count);
  }
  return counted_loop(c, t);
}

// ==== Loop

// Scalars that a body may declare with one axis.
Value as_declared(const onnx::Graph& body, std::size_t input, Value v) {
  const ValueInfo& info = body.inputs[input];
  return info.has_shape && info.sizes.size() == 1 ? reshape_to(v, {1}) : v;
}

// True, false, or empty when it depends on data.
std::optional<bool> known_condition(Value v) {
  std::optional<Array> a = v ? known_array(v) : std::nullopt;
  return a && a->count() == 1 ? std::optional(a->integer(0) != 0) : std::nullopt;
}

// Whether the body's condition result can only be its condition input, or true.
bool keeps_condition(const onnx::Graph& body) {
  if (body.outputs.empty() || body.inputs.size() < 2) return false;
  std::string_view name = body.outputs[0].name;
  for (std::size_t i = body.nodes.size(); i-- > 0;) {
    const Node& n = body.nodes[i];
    if (n.outputs.empty() || n.outputs[0] != name) continue;
    if (n.op == "Identity" && n.inputs.size() == 1) {
      name = n.inputs[0];
    } else if (n.op == "Constant") {
      const Attribute* a = n.find("value");
      return a && a->tensor && a->tensor->raw && a->tensor->raw->size() == 1 &&
             (*a->tensor->raw)[0] != std::byte{0};
    } else {
      return false;
    }
  }
  return name == body.inputs[1].name;
}

// The maximum iteration count of a data-dependent loop, also for stacking its outputs.
struct Most {
  Value turns;  // i64
  Dim stacked;
  std::optional<Dim> known;
};

Most most_turns(NodeContext& c) {
  constexpr std::int64_t endless = std::numeric_limits<std::int64_t>::max();
  const Dim limit = c.open_limit();
  if (!c.has(0)) return {integer(c.graph(), endless), limit, {}};
  Value turns = cast_to(reshape_to(c.in(0), {}), DType::i64);
  std::optional<Dims> contents = contents_of(turns);
  if (!contents) return {turns, limit, {}};
  const Dim most = max((*contents)[0], 1);
  if (most.high() > limit.high()) return {turns, limit, {}};
  return {turns, most, most};
}

// The number of iterations, plus one if the loop would have continued.
Value turns_taken(Value turn, Value condition, Value most) {
  return turn + cast_to(ops::bit_and(ops::lt(turn, most), condition), DType::i64);
}

// A data-dependent loop. Carried: iteration, condition, values, their sizes, stacks. Constant:
// maximum iteration count, captures.
Values open_loop(NodeContext& c, const onnx::Graph& g, const Values& carried, Value condition) {
  CarriedSequences sequences(c, g, carried, 2, 1);
  hone::Graph& graph = c.graph();
  const Most most = most_turns(c);
  Value on = integer(graph, 1, DType::b1);
  Values first = {as_declared(g, 0, integer(graph, 0)), as_declared(g, 1, on)};
  first.insert(first.end(), sequences.tensors().begin(), sequences.tensors().end());
  OpenOutputs open(c, 1 + sequences.tensors().size());
  const auto read = [&](const std::vector<Type>& inputs) {
    return open.with_rooms(sequences.read(inputs));
  };
  const GrownBody grown =
      grown_body(c, read, types_of(first), 2, sequences.tensors(), 1, most.known);
  const Body& body = grown.body;
  Values operands = {integer(graph, 0), condition ? reshape_to(condition, {}) : on};
  operands.insert(operands.end(), grown.carried.begin(), grown.carried.end());
  operands.insert(operands.end(), grown.sizes.begin(), grown.sizes.end());
  const std::size_t n = grown.carried.size(), m = grown.sizes.size(),
                    stacks = body.function->results().size() - 1 - n - m;
  for (std::size_t k = 0; k < stacks; ++k)
    operands.push_back(empty_stack(graph, body.function->result(1 + n + k).type(), most.stacked));
  const std::size_t constants = operands.size();
  operands.push_back(most.turns);
  operands.insert(operands.end(), body.captures.begin(), body.captures.end());
  auto go = over_values(operands), next = over_values(operands);
  Value goes_on = ops::bit_and(ops::lt(go->param(0), go->param(constants)), go->param(1));
  if (stacks > 0)
    goes_on = ops::bit_and(
        goes_on, ops::lt(go->param(0), size_value(go->graph(), most.stacked, DType::i64)));
  go->add_result(goes_on);
  Value turn = next->param(0);
  Values arguments = {as_declared(g, 0, turn), as_declared(g, 1, next->param(1))};
  for (const Value& v : params_of(*next, 2, n + m)) arguments.push_back(v);
  for (const Value& v : params_of(*next, constants + 1, body.captures.size()))
    arguments.push_back(v);
  Values made = inline_call(next->graph(), *body.function, arguments);
  next->add_result(turn + integer_like(turn, 1));
  next->add_result(reshape_to(made[0], {}));
  for (std::size_t i = 0; i < n; ++i)
    next->add_result(reshape_to(made[1 + i], next->param(2 + i).shape().dims));
  for (const Value& v : part(made, 1 + n + stacks, m)) next->add_result(v);
  for (std::size_t k = 0; k < stacks; ++k)
    next->add_result(updated_at(next->param(2 + n + m + k), unsqueeze(made[1 + n + k], {0}), turn));
  Value loop =
      ops::while_loop(operands, {{"condition", FunctionRef(go)}, {"body", FunctionRef(next)}});
  Values out, sizes;
  for (std::size_t i = 0; i < n; ++i) out.push_back(loop.result(2 + i));
  for (std::size_t i = 0; i < m; ++i) sizes.push_back(loop.result(2 + n + i));
  Values outputs;
  if (stacks > 0) {
    const Dim turns =
        c.measured(turns_taken(loop.result(0), loop.result(1), most.turns), most.stacked);
    for (std::size_t k = 0; k < stacks; ++k)
      outputs.push_back(slice_axis(loop.result(2 + n + m + k), 0, 0, turns));
  }
  open.finish(outputs);
  out = sequences.finished(grown.finished(c, out, sizes), outputs);
  out.insert(out.end(), outputs.begin(), outputs.end());
  return out;
}

Values loop(NodeContext& c) {
  const onnx::Graph& g = c.body("body");
  if (g.inputs.size() < 2 || g.outputs.empty())
    c.fail(cat("the body has ", amount(g.inputs.size(), "input", "inputs"), " and ",
               g.outputs.size(), " outputs, expected at least 2 inputs and 1 output"));
  Values carried;
  for (std::size_t i = 2; i < g.inputs.size(); ++i) carried.push_back(c.in(i));
  if (g.outputs.size() < 1 + carried.size())
    c.fail(cat("the body has ", amount(g.outputs.size(), "output", "outputs"),
               ", expected at least ", 1 + carried.size(), ", for the condition and ",
               carried.size(), " loop-carried values"));
  Value condition = c.has(1) ? c.in(1) : Value();
  const bool is_counted = keeps_condition(g) && c.has(0), tensors = all_tensors(carried);
  std::optional<bool> starts = condition ? known_condition(condition) : true;
  // Given input contents determine the length of a sequence and the number of outputs.
  const bool grows = g.outputs.size() > 1 + carried.size() || !tensors;
  if (is_counted && grows && !starts && !c.decides(1)) starts = c.array(1).integer(0) != 0;
  // A data-dependent iteration count need not be a size when nothing is stacked.
  const bool is_open = tensors && !grows && c.has(0) && !c.knows(0);
  if (!is_counted || !starts || (is_open && *starts)) return open_loop(c, g, carried, condition);
  Dim count = tensors || c.decides(0) ? c.open_size(0, c.open_limit()) : c.size(0);
  if (!*starts) count = 0;
  Turns t{g, max(count, 0), carried, {}, {}, 1, 2};
  t.arguments = [&](Value turn, const Values& values, const Values&) {
    Values out = {as_declared(g, 0, turn), as_declared(g, 1, integer(turn.graph(), 1, DType::b1))};
    out.insert(out.end(), values.begin(), values.end());
    return out;
  };
  Turned made = turned(c, t);
  Values out = made.carried;
  out.insert(out.end(), made.outputs.begin(), made.outputs.end());
  return out;
}

// ==== Scan

// Entry i of a list of integers that may be absent.
std::int64_t entry(const std::optional<std::vector<std::int64_t>>& list, std::size_t i) {
  return list && i < list->size() ? (*list)[i] : 0;
}

Value moved_axis(Value v, int from, int to) {
  Axes order;
  for (int i = 0; i < v.rank(); ++i)
    if (i != from) order.push_back(i);
  order.insert(order.begin() + to, from);
  return transpose_by(v, order);
}

// Slice `turn` of the first axis.
Value slice_of_turn(Value v, Value turn, bool backwards) {
  if (backwards) turn = size_value(turn.graph(), v.shape()[0] - Dim(1), DType::i64) - turn;
  const std::optional<Dims> known = contents_of(turn);
  // If the axis may be empty, slice 0 is built only for its type and may not exist.
  if (known && prove_less((*known)[0], v.shape()[0]) == true) return take_axis(v, 0, (*known)[0]);
  return squeeze(slice_at(v, 0, turn), {0});
}

// Scanned values and outputs have the iteration axis first.
Turned scanned(NodeContext& c, const onnx::Graph& g, const Values& states, const Values& inputs,
               const std::vector<bool>& inputs_back, const std::vector<bool>& outputs_back) {
  if (inputs.empty()) c.fail("the node has no scan inputs, expected at least one");
  for (const Value& v : inputs)
    c.graph().require_equal(
        v.shape()[0], inputs[0].shape()[0],
        cat("Scan: scan inputs have ", v.shape()[0], " and ", inputs[0].shape()[0],
            " elements along their scan axes, expected equal sizes"));
  Turns t{g, inputs[0].shape()[0], states, inputs, {}, 0, 0, outputs_back};
  t.arguments = [&](Value turn, const Values& values, const Values& scanned_values) {
    Values out = values;
    for (std::size_t i = 0; i < scanned_values.size(); ++i)
      out.push_back(slice_of_turn(scanned_values[i], turn, inputs_back[i]));
    return out;
  };
  return turned(c, t);
}

std::vector<bool> flags(const std::optional<std::vector<std::int64_t>>& list, std::size_t n) {
  std::vector<bool> out;
  for (std::size_t i = 0; i < n; ++i) out.push_back(entry(list, i) != 0);
  return out;
}

Values scan(NodeContext& c) {
  const onnx::Graph& g = c.body("body");
  const Values all = c.all_inputs();
  const auto m =
      static_cast<std::size_t>(std::max<std::int64_t>(c.integer("num_scan_inputs", 0), 0));
  if (m < 1 || m > all.size()) c.bad_attribute("num_scan_inputs", m, cat("1 to ", all.size()));
  const Values states = part(all, 0, all.size() - m);
  if (g.outputs.size() < states.size())
    c.fail(cat("the body has ", amount(g.outputs.size(), "output", "outputs"),
               ", expected at least one for each state variable"));
  const std::size_t outputs = g.outputs.size() - states.size();
  auto in_axes = c.integers("scan_input_axes"), out_axes = c.integers("scan_output_axes");
  auto in_ways = c.integers("scan_input_directions"),
       out_ways = c.integers("scan_output_directions");
  Values inputs;
  for (std::size_t i = 0; i < m; ++i) {
    Value v = all[states.size() + i];
    inputs.push_back(moved_axis(v, c.axis(entry(in_axes, i), v.rank()), 0));
  }
  Turned made = scanned(c, g, states, inputs, flags(in_ways, m), flags(out_ways, outputs));
  Values out = made.carried;
  for (std::size_t i = 0; i < outputs; ++i) {
    Value v = made.outputs[i];
    out.push_back(moved_axis(v, 0, c.axis(entry(out_axes, i), v.rank())));
  }
  return out;
}

// Opset 8: every value has a leading batch axis, and scans iterate over the second axis.
Values scan_8(NodeContext& c) {
  const onnx::Graph& g = c.body("body");
  const auto m =
      static_cast<std::size_t>(std::max<std::int64_t>(c.integer("num_scan_inputs", 0), 0));
  auto ways = c.integers("directions");
  if (c.has(0)) c.unsupported("input 0 ('sequence_lens') is not supported");
  if (m < 1 || m + 1 > c.inputs())
    c.bad_attribute("num_scan_inputs", m, cat("1 to ", c.inputs() - 1));
  const std::size_t n = c.inputs() - 1 - m;
  std::optional<std::int64_t> batch = c.in(1).shape()[0].as_number();
  if (!batch || *batch > most_unrolled || *batch < 1)
    c.unsupported(cat("the batch size is ", c.in(1).shape()[0], ", expected a number from 1 to ",
                      most_unrolled));
  if (g.outputs.size() < n)
    c.fail(cat("the body has ", amount(g.outputs.size(), "output", "outputs"),
               ", expected at least one for each state variable"));
  std::vector<Values> stacked(g.outputs.size());
  for (std::int64_t b = 0; b < *batch; ++b) {
    Values states, inputs;
    for (std::size_t i = 0; i < n; ++i) states.push_back(take_axis(c.in(1 + i), 0, b));
    for (std::size_t i = 0; i < m; ++i) inputs.push_back(take_axis(c.in(1 + n + i), 0, b));
    Turned made = scanned(c, g, states, inputs, flags(ways, m), {});
    made.carried.insert(made.carried.end(), made.outputs.begin(), made.outputs.end());
    for (std::size_t i = 0; i < stacked.size(); ++i)
      stacked[i].push_back(unsqueeze(made.carried[i], {0}));
  }
  Values out;
  for (const Values& v : stacked) out.push_back(concat_values(v, 0));
  return out;
}

}  // namespace

Values mapped(NodeContext& c, const onnx::Graph& g, const Values& inputs,
              const std::vector<bool>& is_stack) {
  std::optional<Dim> count;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (!is_stack[k]) continue;
    const Dim& size = inputs[k].shape()[0];
    if (!count) count = size;
    c.graph().require_equal(
        *count, size,
        cat("the sequences have ", *count, " and ", size, " elements, expected equal lengths"));
  }
  Turns t{g, *count, {}, inputs, {}};
  t.arguments = [&](Value turn, const Values&, const Values& all) {
    Values out = all;
    for (std::size_t k = 0; k < out.size(); ++k)
      if (is_stack[k]) out[k] = slice_of_turn(out[k], turn, false);
    return out;
  };
  return turned(c, t).outputs;
}

namespace {

constexpr ImportEntry loop_table[] = {
    {"Loop", loop},
    {"Scan", scan_8, 8, 8},
    {"Scan", scan, 9},
};

}  // namespace

std::span<const ImportEntry> loop_imports() { return loop_table; }

}  // namespace hone::onnx
