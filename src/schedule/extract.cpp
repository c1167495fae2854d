#include "schedule/extract.h"

#include <algorithm>
#include <unordered_map>

#include "base/hash.h"
#include "ops/common.h"

namespace hone {

namespace {

// A uniform constant of any size becomes one number, broadcast.
Value number_of(Graph& to, const Array& a) {
  Array one = Array::zeros(a.dtype(), {});
  if (a.count() > 0) {
    std::span<const std::byte> first = a.bytes().first(one.bytes().size());
    one = Array(a.dtype(), {}, Storage::copy(first));
  }
  return broadcast_to(constant(to, one), a.type().shape);
}

// Sizes become scalars, joined by a concat, so that kernels only see scalar sizes.
Value sizes_of(Graph& to, const Dims& contents, const Type& type) {
  Values parts;
  for (const Dim& d : contents) {
    Value size = dims_value(to, {d}, type.dtype, {});
    if (type.rank() == 0) return size;
    parts.push_back(reshape_to(size, {Dim(1)}));
  }
  return reshape_to(concat_values(parts, 0), type.shape.dims);
}

class Extractor {
 public:
  Extractor(const Function& f, const Grouping& g)
      : f_(f), graph_(f.graph()), grouping_(g), met_(g.value_count, 0), place_(g.value_count, 0) {}

  Extraction run() {
    walks_.reserve(grouping_.groups.size());
    for (std::uint32_t i = 0; i < grouping_.groups.size(); ++i) walk(i);
    mark_read();
    for (std::uint32_t i = 0; i < grouping_.groups.size(); ++i) {
      add_results(i);
      if (computes(i)) walks_[i].function = function_of(walks_[i]);
    }
    for (const Walk& w : walks_) out_.groups.push_back(finished(w));
    return std::move(out_);
  }

 private:
  struct Range {
    std::size_t first = 0, count = 0;
  };
  // The parts of a group, as ranges of nodes_ and out_.values: what it reads, the nodes that it
  // computes or repeats (operands first), and its results that are read outside.
  struct Walk {
    Range params, nodes, results;
    std::uint32_t function = Extracted::none;
  };
  // Everything that the copy of a group depends on.
  using Code = std::vector<std::uint64_t>;
  static constexpr std::uint64_t end_of_list = ~std::uint64_t{0};

  std::uint32_t number(Value v) const { return grouping_.value_number(v); }
  std::span<const Value> values(Range r) const {
    return std::span(out_.values).subspan(r.first, r.count);
  }
  std::span<const NodeId> nodes(Range r) const {
    return std::span(nodes_).subspan(r.first, r.count);
  }
  Extracted finished(const Walk& w) const {
    return {w.function, values(w.params), values(w.results)};
  }

  // False for control nodes and assemblies, which are not copied: only their operands matter.
  bool computes(std::uint32_t group) const {
    return grouping_.groups[group].kind == Group::Kind::compute;
  }

  void walk(std::uint32_t group) {
    group_ = group;
    Walk w{{out_.values.size(), 0}, {nodes_.size(), 0}, {}};
    for (NodeId n : grouping_.groups[group].nodes) {
      for (const Value& v : graph_.operands(n)) {
        if (computes(group))
          bring(v);
        else
          out_.values.push_back(v);
      }
      if (computes(group)) take(n);
    }
    w.params.count = out_.values.size() - w.params.first;
    w.nodes.count = nodes_.size() - w.nodes.first;
    walks_.push_back(w);
  }

  bool is_met(Value v) const { return met_[number(v)] == group_ + 1; }
  void meet(Value v) { met_[number(v)] = group_ + 1; }

  void take(NodeId n) {
    nodes_.push_back(n);
    for (std::uint32_t i = 0; i < graph_.result_count(n); ++i) meet({&graph_, n, i});
  }

  // True if the group repeats the node: it costs nothing, or is a view of a member.
  bool is_repeated(NodeId n) const {
    Role role = grouping_.roles[n];
    if (role == Role::inlined || role == Role::cloned) return true;
    while (grouping_.roles[n] == Role::view) n = graph_.operands(n)[0].node();
    return role == Role::view && (grouping_.group_of[n] == group_ || is_repeated(n));
  }

  void bring(Value root) {
    stack_.push_back(root);
    while (!stack_.empty()) {
      Value v = stack_.back();
      if (is_met(v)) {
        stack_.pop_back();
      } else if (!is_repeated(v.node())) {
        out_.values.push_back(v);
        meet(v);
        stack_.pop_back();
      } else if (!push_missing(v.node())) {
        take(v.node());
        stack_.pop_back();
      }
    }
  }

  bool push_missing(NodeId n) {
    std::size_t before = stack_.size();
    std::span<const Value> operands = graph_.operands(n);
    for (std::size_t i = operands.size(); i-- > 0;)
      if (!is_met(operands[i])) stack_.push_back(operands[i]);
    return stack_.size() > before;
  }

  void mark_read() {
    read_.assign(grouping_.value_count, false);
    for (const Value& v : out_.values) read_[number(grouping_.base_of(v))] = true;
    for (const Function::Result& r : f_.results()) read_[number(grouping_.base_of(r.value))] = true;
  }

  void add_results(std::uint32_t group) {
    Range& results = walks_[group].results;
    results.first = out_.values.size();
    for (NodeId n : grouping_.groups[group].nodes)
      for (std::uint32_t k = 0; k < graph_.result_count(n); ++k)
        if (Value v(&graph_, n, k); read_[number(v)]) out_.values.push_back(v);
    results.count = out_.values.size() - results.first;
    if (results.count > 1 && depend_on_each_other(group, results))
      std::ranges::reverse(std::span(out_.values).subspan(results.first));
  }

  // The ones made of others are stored first: they read what the others may overwrite. See
  // in_place.h.
  bool depend_on_each_other(std::uint32_t group, Range results) {
    depends_.resize(graph_.node_count(), false);
    const std::span<const Value> all = values(results);
    bool found = false;
    for (NodeId n : grouping_.groups[group].nodes) {
      const auto is_result = [&](const Value& v) { return std::ranges::find(all, v) != all.end(); };
      for (const Value& v : graph_.operands(n))
        depends_[n] = depends_[n] || depends_[v.node()] || is_result(v);
      for (std::uint32_t k = 0; k < graph_.result_count(n); ++k)
        found = found || (depends_[n] && is_result({&graph_, n, k}));
    }
    for (NodeId n : grouping_.groups[group].nodes) depends_[n] = false;
    return found;
  }

  std::uint32_t function_of(const Walk& w) {
    encode(w);
    if (!codes_.empty() && codes_[latest_] == code_) return latest_;
    std::uint64_t h = code_.size();
    for (std::uint64_t word : code_) h = mix(h, word);
    auto [first, last] = known_.equal_range(h);
    for (; first != last; ++first)
      if (codes_[first->second] == code_) return latest_ = first->second;
    latest_ = static_cast<std::uint32_t>(codes_.size());
    known_.emplace(h, latest_);
    codes_.push_back(code_);
    out_.functions.push_back(copy(w));
    return latest_;
  }

  // Types and attribute sets are interned: in one graph, equal ones are one object. Addresses are
  // used only to compare groups, never to order them.
  template <class T>
  static std::uint64_t address(const T& object) {
    return reinterpret_cast<std::uintptr_t>(&object);
  }

  void encode(const Walk& w) {
    code_.clear();
    std::uint32_t next = 0;
    for (const Value& v : values(w.params)) {
      place_[number(v)] = next++;
      code_.push_back(address(v.type()));
    }
    code_.push_back(end_of_list);
    for (NodeId n : nodes(w.nodes)) {
      code_.push_back(address(graph_.op(n)));
      code_.push_back(address(graph_.attrs(n)));
      code_.push_back(graph_.operands(n).size());
      for (const Value& v : graph_.operands(n)) code_.push_back(place_[number(v)]);
      for (std::uint32_t i = 0; i < graph_.result_count(n); ++i) {
        place_[number({&graph_, n, i})] = next++;
        code_.push_back(address(graph_.type(n, i)));
      }
    }
    code_.push_back(end_of_list);
    for (const Value& v : values(w.results)) code_.push_back(place_[number(v)]);
  }

  // Uses the places assigned by encode().
  Function copy(const Walk& w) {
    Function out;
    copies_.clear();
    for (const Value& v : values(w.params)) copies_.push_back(out.add_param(v.type(), ""));
    for (NodeId n : nodes(w.nodes)) {
      Value made = copy(n, out.graph());
      for (std::uint32_t i = 0; i < graph_.result_count(n); ++i) copies_.push_back(made.result(i));
    }
    for (const Value& v : values(w.results)) out.add_result(copies_[place_[number(v)]]);
    return out;
  }

  Value copy(NodeId n, Graph& to) {
    if (&graph_.op(n) == &ops::constant) return number_of(to, graph_.attrs(n).get<Array>("value"));
    if (&graph_.op(n) == &ops::dims)
      return sizes_of(to, graph_.attrs(n).dims("dims"), graph_.type(n));
    Values operands;
    for (const Value& v : graph_.operands(n)) operands.push_back(copies_[place_[number(v)]]);
    return to.intern_typed(graph_.op(n), operands, graph_.attrs(n), graph_.result_types(n));
  }

  const Function& f_;
  Graph& graph_;
  const Grouping& grouping_;
  Extraction out_;
  std::vector<NodeId> nodes_;
  std::vector<Walk> walks_;
  std::uint32_t group_ = 0;           // the one being walked
  std::vector<std::uint32_t> met_;    // by value number: 1 + the last group that uses it
  std::vector<std::uint32_t> place_;  // by value number: its index among the values of its group
  std::vector<bool> read_;            // by value number: must be in memory
  std::vector<bool> depends_;         // by node: on a result of its group
  std::vector<Value> stack_;
  Code code_;
  std::vector<Code> codes_;   // per function
  std::uint32_t latest_ = 0;  // function
  std::unordered_multimap<std::uint64_t, std::uint32_t> known_;
  Values copies_;  // by place
};

}  // namespace

Extraction extract(const Function& f, const Grouping& g) { return Extractor(f, g).run(); }

}  // namespace hone
