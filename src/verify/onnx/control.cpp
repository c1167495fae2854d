// If, Loop and Scan: their graphs node by node.
#include <algorithm>
#include <unordered_map>

#include "verify/onnx/call.h"
#include "verify/onnx/meaning.h"
#include "verify/onnx/open.h"

namespace hone::onnx {

namespace {

constexpr std::int64_t most_rounds = 64;

// One run of a graph that a node holds.
class Run {
 public:
  Run(Call& c, const Graph& g) : c_(c), g_(g) {}

  std::vector<Numbers> of(const std::vector<Numbers>& inputs) {
    if (inputs.size() != g_.inputs.size() || !g_.sparse_initializers.empty()) throw NotJudged();
    for (const Tensor& t : g_.initializers) {
      std::optional<Numbers> n = numbers_of(t);
      if (!n) throw NotJudged();
      values_[t.name] = std::move(*n);
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) values_[g_.inputs[i].name] = inputs[i];
    for (const Node& n : g_.nodes) node(n);
    std::vector<Numbers> out;
    for (const ValueInfo& v : g_.outputs) out.push_back(*value(v.name));
    return out;
  }

 private:
  void node(const Node& n) {
    if (!n.domain.empty() && n.domain != "ai.onnx") throw NotJudged();
    std::vector<const Numbers*> inputs;
    for (std::string_view name : n.inputs) inputs.push_back(name.empty() ? nullptr : value(name));
    const auto outer = [this](std::string_view name) { return find(name); };
    std::optional<std::vector<Numbers>> made = meaning_of(n, c_.opset(), inputs, outer, c_.noise());
    if (!made) throw NotJudged();
    for (Numbers& x : *made)
      if (c_.noise()) c_.noise()->add_to(x);
    for (std::size_t i = 0; i < std::min(made->size(), n.outputs.size()); ++i)
      values_[n.outputs[i]] = std::move((*made)[i]);
  }
  const Numbers* find(std::string_view name) const {
    const auto at = values_.find(name);
    return at == values_.end() ? c_.outer(name) : &at->second;
  }
  const Numbers* value(std::string_view name) const {
    const Numbers* n = find(name);
    if (!n) throw NotJudged();
    return n;
  }

  Call& c_;
  const Graph& g_;
  std::unordered_map<std::string_view, Numbers> values_;
};

void add_element(Numbers& to, const Numbers& from, std::int64_t place) {
  const auto i = static_cast<std::size_t>(place);
  to.values.push_back(from.values.at(i));
  if (from.is_open(i)) to.leave_open(to.values.size() - 1);
}

Numbers slice(const Numbers& x, std::size_t axis, std::int64_t at) {
  Numbers out{x.dtype, x.dims, {}};
  out.dims.erase(out.dims.begin() + static_cast<std::ptrdiff_t>(axis));
  const Sizes strides = strides_of(x.dims);
  for_index(out.dims, [&](Sizes index) {
    index.insert(index.begin() + static_cast<std::ptrdiff_t>(axis), at);
    add_element(out, x, place(index, strides));
  });
  return out;
}

// Along a new axis.
Numbers stacked(const std::vector<Numbers>& parts, std::int64_t axis, bool backwards) {
  if (parts.empty()) throw NotJudged();
  const Numbers& first = parts[0];
  const auto rank = static_cast<std::int64_t>(first.dims.size()) + 1;
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) throw NotJudged();
  Numbers out{first.dtype, first.dims, {}};
  const auto n = static_cast<std::int64_t>(parts.size());
  out.dims.insert(out.dims.begin() + axis, n);
  const Sizes strides = strides_of(first.dims);
  for_index(out.dims, [&](Sizes index) {
    const std::int64_t k = index[static_cast<std::size_t>(axis)];
    index.erase(index.begin() + axis);
    const Numbers& part = parts[static_cast<std::size_t>(backwards ? n - 1 - k : k)];
    if (part.dims != first.dims) throw NotJudged();
    add_element(out, part, place(index, strides));
  });
  return out;
}

bool is_true(const Numbers& n) {
  if (n.is_open(0)) throw NotJudged();
  return n.values.at(0) != 0;
}

std::vector<Numbers> if_else(Call& c) {
  const Graph &yes = c.graph("then_branch"), &no = c.graph("else_branch");
  return Run(c, is_true(c.in(0)) ? yes : no).of({});
}

std::vector<Numbers> loop(Call& c) {
  const Graph& body = c.graph("body");
  const std::int64_t most = c.has(0) ? c.list(0).at(0) : most_rounds + 1;
  std::vector<Numbers> carried;
  for (std::size_t i = 2; i < c.inputs(); ++i) carried.push_back(c.in(i));
  if (body.outputs.size() < 1 + carried.size()) throw NotJudged();
  std::vector<std::vector<Numbers>> stacks(body.outputs.size() - 1 - carried.size());
  Numbers go{DType::b1, {}, {!c.has(1) || is_true(c.in(1)) ? 1.0 : 0.0}};
  for (std::int64_t i = 0; i < most && is_true(go); ++i) {
    if (i == most_rounds) throw NotJudged();
    std::vector<Numbers> inputs = {{DType::i64, {}, {static_cast<double>(i)}}, go};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    const std::vector<Numbers> made = Run(c, body).of(inputs);
    go = made[0];
    for (std::size_t k = 0; k < carried.size(); ++k) carried[k] = made[1 + k];
    for (std::size_t k = 0; k < stacks.size(); ++k)
      stacks[k].push_back(made[1 + carried.size() + k]);
  }
  for (const std::vector<Numbers>& s : stacks) carried.push_back(stacked(s, 0, false));
  return carried;
}

std::vector<Numbers> scan(Call& c) {
  if (c.opset() < 9) throw NotJudged();
  const Graph& body = c.graph("body");
  const auto scanned = static_cast<std::size_t>(c.integer("num_scan_inputs", 0));
  if (scanned == 0 || scanned > c.inputs() || body.outputs.size() + scanned < c.inputs())
    throw NotJudged();
  const std::size_t states = c.inputs() - scanned, made_stacks = body.outputs.size() - states;
  const Sizes axes = c.integers("scan_input_axes").value_or(Sizes(scanned, 0)),
              back = c.integers("scan_input_directions").value_or(Sizes(scanned, 0)),
              to = c.integers("scan_output_axes").value_or(Sizes(made_stacks, 0)),
              to_back = c.integers("scan_output_directions").value_or(Sizes(made_stacks, 0));
  const auto axis_of = [&](std::size_t k) {
    const Sizes& dims = c.in(states + k).dims;
    return c.axis(axes.at(k), static_cast<std::int64_t>(dims.size()));
  };
  std::vector<Numbers> carried;
  for (std::size_t i = 0; i < states; ++i) carried.push_back(c.in(i));
  std::vector<std::vector<Numbers>> stacks(made_stacks);
  const std::int64_t n = c.in(states).dims.at(axis_of(0));
  if (n > most_rounds) throw NotJudged();
  for (std::int64_t i = 0; i < n; ++i) {
    std::vector<Numbers> inputs = carried;
    for (std::size_t k = 0; k < scanned; ++k)
      inputs.push_back(slice(c.in(states + k), axis_of(k), back.at(k) != 0 ? n - 1 - i : i));
    const std::vector<Numbers> made = Run(c, body).of(inputs);
    for (std::size_t k = 0; k < states; ++k) carried[k] = made[k];
    for (std::size_t k = 0; k < made_stacks; ++k) stacks[k].push_back(made[states + k]);
  }
  for (std::size_t k = 0; k < made_stacks; ++k)
    carried.push_back(stacked(stacks[k], to.at(k), to_back.at(k) != 0));
  return carried;
}

constexpr MeaningRow control_rows[] = {{"If", if_else}, {"Loop", loop}, {"Scan", scan}};

}  // namespace

std::span<const MeaningRow> control_meanings() { return control_rows; }

}  // namespace hone::onnx
