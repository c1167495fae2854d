#include "schedule/extract.h"

#include <unordered_map>

#include "ops/common.h"

namespace hone {

namespace {

// One group under construction: which values of the whole function it has, and as what.
class Extractor {
 public:
  Extractor(const Function& f, const Grouping& g, std::uint32_t group)
      : graph_(f.graph()), grouping_(g), group_(group) {}

  // Everything but the results, which depend on what other groups read. A control node or an
  // assembly is not copied: only what it reads is of interest.
  void add_nodes() {
    if (!computes()) {
      out_.params = Value(&graph_, grouping_.groups[group_].nodes[0]).operands();
      return;
    }
    for (NodeId n : grouping_.groups[group_].nodes) {
      bring_operands(n);
      copy(n);
    }
  }

  void add_result(Value v) {
    if (computes()) out_.function.add_result(local_.at(v));
    out_.results.push_back(v);
  }

  Extracted& out() { return out_; }

 private:
  bool computes() const { return grouping_.groups[group_].kind == Group::Kind::compute; }
  bool is_member(NodeId n) const { return grouping_.group_of[n] == group_; }

  // A node that the group repeats for itself: costs nothing, or is a view of a member.
  bool is_repeated(NodeId n) const {
    Role role = grouping_.roles[n];
    if (role == Role::inlined || role == Role::cloned) return true;
    while (grouping_.roles[n] == Role::view) n = graph_.operands(n)[0].node();
    return role == Role::view && (is_member(n) || is_repeated(n));
  }

  void bring_operands(NodeId n) {
    for (const Value& v : graph_.operands(n)) bring(v);
  }

  void bring(Value root) {
    std::vector<Value> stack{root};
    while (!stack.empty()) {
      Value v = stack.back();
      if (local_.contains(v)) {
        stack.pop_back();
      } else if (!is_repeated(v.node())) {
        out_.params.push_back(v);
        local_[v] = out_.function.add_param(v.type(), "");
        stack.pop_back();
      } else if (!push_missing(v.node(), stack)) {
        copy(v.node());
        stack.pop_back();
      }
    }
  }

  bool push_missing(NodeId n, std::vector<Value>& stack) {
    std::size_t before = stack.size();
    std::span<const Value> operands = graph_.operands(n);
    for (std::size_t i = operands.size(); i-- > 0;)
      if (!local_.contains(operands[i])) stack.push_back(operands[i]);
    return stack.size() > before;
  }

  void copy(NodeId n) {
    Graph& to = out_.function.graph();
    Value made;
    if (&graph_.op(n) == &ops::constant) {
      made = number_of(graph_.attrs(n).get<Array>("value"));
    } else if (&graph_.op(n) == &ops::dims) {
      made = sizes_of(n);
    } else {
      Values operands;
      for (const Value& v : graph_.operands(n)) operands.push_back(local_.at(v));
      made = to.intern_typed(graph_.op(n), operands, graph_.attrs(n), graph_.result_types(n));
    }
    for (std::uint32_t i = 0; i < graph_.result_count(n); ++i)
      local_[Value(&graph_, n, i)] = made.result(i);
  }

  // A uniform constant of any size is a number, repeated.
  Value number_of(const Array& a) {
    Graph& to = out_.function.graph();
    Array one = Array::zeros(a.dtype(), {});
    if (a.count() > 0) {
      std::span<const std::byte> first = a.bytes().first(one.bytes().size());
      one = Array(a.dtype(), {}, Storage::copy(first));
    }
    return broadcast_to(constant(to, one), a.type().shape);
  }

  // Sizes one by one, so that kernels know only scalar ones.
  Value sizes_of(NodeId n) {
    Graph& to = out_.function.graph();
    const Dims& contents = graph_.attrs(n).dims("dims");
    const Type& type = graph_.type(n);
    Values parts;
    for (const Dim& d : contents) {
      Value size = dims_value(to, {d}, type.dtype, {});
      if (type.rank() == 0) return size;
      parts.push_back(reshape_to(size, {Dim(1)}));
    }
    return reshape_to(concat_values(parts, 0), type.shape.dims);
  }

  Graph& graph_;
  const Grouping& grouping_;
  std::uint32_t group_;
  Extracted out_;
  std::unordered_map<Value, Value, ValueHash> local_;
};

// The value whose memory a view is a window of.
Value base_of(const Grouping& g, Value v) {
  while (g.roles[v.node()] == Role::view) v = v.operand(0);
  return v;
}

}  // namespace

std::vector<Extracted> extract(const Function& f, const Grouping& g) {
  std::vector<Extractor> extractors;
  extractors.reserve(g.groups.size());
  std::vector<bool> read(g.value_count, false);
  auto mark = [&](Value v) { read[g.value_number(base_of(g, v))] = true; };
  for (std::uint32_t i = 0; i < g.groups.size(); ++i) {
    extractors.emplace_back(f, g, i).add_nodes();
    for (const Value& v : extractors.back().out().params) mark(v);
  }
  for (const Function::Result& r : f.results()) mark(r.value);
  std::vector<Extracted> out;
  out.reserve(extractors.size());
  for (std::uint32_t i = 0; i < g.groups.size(); ++i) {
    for (NodeId n : g.groups[i].nodes)
      for (std::uint32_t k = 0; k < f.graph().result_count(n); ++k)
        if (Value v(&f.graph(), n, k); read[g.value_number(v)]) extractors[i].add_result(v);
    out.push_back(std::move(extractors[i].out()));
  }
  return out;
}

}  // namespace hone
