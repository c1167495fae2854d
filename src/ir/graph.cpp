#include "ir/graph.h"

#include <algorithm>
#include <ostream>

#include "base/hash.h"
#include "ir/located.h"

namespace hone {

namespace {

constexpr std::uint32_t empty_slot = 0;

// Used only for lookup, never for ordering, so an address may be part of it.
std::uint32_t expression_hash(const Op& op, std::span<const Value> operands, std::uint32_t attrs) {
  std::uint64_t h = mix(reinterpret_cast<std::uintptr_t>(&op), attrs);
  for (const Value& v : operands) h = mix(h, (std::uint64_t{v.node()} << 16) ^ v.index());
  return static_cast<std::uint32_t>(h ^ (h >> 32));
}

}  // namespace

Value Value::operand(std::size_t i) const {
  std::span<const Value> all = graph().operands(node_);
  if (i >= all.size())
    throw UserError(op().name, ": operand ", i, " does not exist; it has ", all.size());
  return all[i];
}
Value Value::result(std::size_t i) const {
  if (i >= result_count())
    throw UserError(op().name, ": result ", i, " does not exist; it has ", result_count());
  return {graph_, node_, static_cast<std::uint32_t>(i)};
}
void Value::throw_empty() {
  throw UserError(
      "value: is empty; use an input, a weight or the result of an operation in its place");
}
std::vector<Value> Value::operands() const {
  std::span<const Value> all = graph().operands(node_);
  return {all.begin(), all.end()};
}

std::ostream& operator<<(std::ostream& out, const Origin& o) {
  if (o.kind.empty()) return out << o.name << ":" << o.index;
  return out << "node " << o.index << " '" << o.name << "' (" << o.kind << ")";
}

Graph::Graph() : slots_(64, empty_slot) {
  origin_lists_.emplace_back();
  attr_sets_.emplace_back();
  attr_ids_.emplace(Attrs().hash(), 0);
}

Graph::~Graph() = default;

std::uint32_t Graph::intern_type(const Type& t) {
  if (!result_types_.empty() && types_[result_types_.back()] == t) return result_types_.back();
  std::uint64_t h = t.hash();
  auto [begin, end] = type_ids_.equal_range(h);
  for (auto it = begin; it != end; ++it)
    if (types_[it->second] == t) return it->second;
  types_.push_back(t);
  std::uint32_t id = static_cast<std::uint32_t>(types_.size() - 1);
  type_ids_.emplace(h, id);
  return id;
}

std::uint32_t Graph::intern_attrs(Attrs attrs, std::uint64_t h) {
  if (attrs.entries().empty()) return 0;
  auto [begin, end] = attr_ids_.equal_range(h);
  for (auto it = begin; it != end; ++it)
    if (attr_sets_[it->second] == attrs) return it->second;
  attr_sets_.push_back(std::move(attrs));
  std::uint32_t id = static_cast<std::uint32_t>(attr_sets_.size() - 1);
  attr_ids_.emplace(h, id);
  return id;
}

Value Graph::find(const Op& op, std::span<const Value> operands, std::uint32_t attrs,
                  std::uint32_t hash) {
  std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash & mask; slots_[at] != empty_slot; at = (at + 1) & mask) {
    NodeId id = slots_[at] - 1;
    const NodeData& n = nodes_[id];
    if (n.hash == hash && n.op == &op && n.attrs == attrs && n.operand_count == operands.size() &&
        std::equal(operands.begin(), operands.end(), operands_.begin() + n.first_operand))
      return {this, id};
  }
  return {};
}

void Graph::insert_slot(NodeId id) {
  if (nodes_.size() * 2 > slots_.size()) {
    slots_.assign(slots_.size() * 4, empty_slot);
    for (NodeId n = 0; n + 1 < nodes_.size(); ++n)
      if (nodes_[n].hash != 0) insert_slot(n);
  }
  std::size_t mask = slots_.size() - 1, at = nodes_[id].hash & mask;
  while (slots_[at] != empty_slot) at = (at + 1) & mask;
  slots_[at] = id + 1;
}

Value Graph::add(const Op& op, std::span<const Value> operands, std::uint32_t attrs,
                 std::uint32_t hash, std::span<const Type> results) {
  NodeData n = {};
  n.op = &op;
  n.first_operand = static_cast<std::uint32_t>(operands_.size());
  n.first_type = static_cast<std::uint32_t>(result_types_.size());
  n.attrs = attrs;
  n.hash = hash;
  n.operand_count = static_cast<std::uint16_t>(operands.size());
  n.result_count = static_cast<std::uint16_t>(results.size());
  operands_.insert(operands_.end(), operands.begin(), operands.end());
  for (const Type& t : results) result_types_.push_back(intern_type(t));
  nodes_.push_back(n);
  origins_of_.push_back(origins_);
  NodeId id = static_cast<NodeId>(nodes_.size() - 1);
  if (hash != 0) insert_slot(id);
  return {this, id};
}

Value Graph::param(std::int64_t index, const Type& type) {
  Attrs attrs{{"index", index}};
  std::uint64_t h = attrs.hash();
  return add(ops::param, {}, intern_attrs(std::move(attrs), h), 0, std::span(&type, 1));
}

Value Graph::intern_typed(const Op& op, std::span<const Value> operands, const Attrs& attrs,
                          std::span<const Type> results) {
  std::uint32_t set = attrs.entries().empty() ? 0 : intern_attrs(attrs, attrs.hash());
  if (!op.pure) return add(op, operands, set, 0, results);
  std::uint32_t hash = expression_hash(op, operands, set) | 1;
  if (Value known = find(op, operands, set, hash)) {
    merge_origins(known.node());
    return known;
  }
  return add(op, operands, set, hash, results);
}

Value Graph::intern(const Op& op, std::span<const Value> operands, Attrs attrs) {
  for (const Value& v : operands)
    HONE_ASSERT(v && &v.graph() == this, op.name, " mixes two graphs or has an empty operand");
  std::uint64_t attr_hash = attrs.entries().empty() ? 0 : attrs.hash();
  std::uint32_t set = intern_attrs(std::move(attrs), attr_hash);
  std::uint32_t hash = op.pure ? expression_hash(op, operands, set) | 1 : 0;
  if (op.pure)
    if (Value known = find(op, operands, set, hash)) {
      merge_origins(known.node());
      return known;
    }
  HONE_ASSERT(op.infer, op.name, " cannot be built: it has no type rule");
  Call call{op, operands, attr_sets_[set], *this, {}};
  std::vector<Type> results = op.infer(call);
  if (op.contents && results.size() == 1 && results[0].is_tensor()) {
    if (std::optional<Dims> known = op.contents(call, results[0]))
      return dims_value(*this, *known, results[0].dtype, results[0].shape.numbers());
  }
  return add(op, operands, set, hash, results);
}

std::vector<Type> Graph::result_types(NodeId n) const {
  std::vector<Type> out;
  for (std::size_t i = 0; i < result_count(n); ++i) out.push_back(type(n, i));
  return out;
}

std::uint32_t Graph::set_origins(std::uint32_t list) { return std::exchange(origins_, list); }

std::uint32_t Graph::origin_list(std::vector<Origin> list, std::string_view rule) {
  OriginList made{std::move(list), rule};
  if (made == origin_lists_[0]) return 0;
  if (made == origin_lists_.back()) return static_cast<std::uint32_t>(origin_lists_.size() - 1);
  origin_lists_.push_back(std::move(made));
  return static_cast<std::uint32_t>(origin_lists_.size() - 1);
}

void Graph::merge_origins(NodeId n) {
  std::uint32_t a = origins_of_[n], b = origins_;
  if (a == b || b == 0) return;
  if (a == 0) {
    origins_of_[n] = b;
    return;
  }
  auto [it, fresh] = merged_origins_.try_emplace((std::uint64_t{a} << 32) | b, 0);
  if (fresh) {
    constexpr std::size_t most =
        16;  // a constant shared by a whole model has no useful origin list
    std::vector<Origin> all = origin_lists_[a].list;
    for (const Origin& o : origin_lists_[b].list)
      if (all.size() < most && std::find(all.begin(), all.end(), o) == all.end()) all.push_back(o);
    it->second =
        all == origin_lists_[a].list ? a : origin_list(std::move(all), origin_lists_[a].rule);
  }
  origins_of_[n] = it->second;
}

void Graph::require_equal(const Dim& a, const Dim& b, const std::string& message) {
  std::optional<bool> proved = prove_equal(a, b);
  if (proved == true) return;
  if (proved == false) throw UserError(message);
  std::string from;
  for (const Origin& o : origin_lists_[origins_].list) from += cat(from.empty() ? "" : ", ", o);
  for (const DimCheck& c : checks_)
    if ((c.a == a && c.b == b) || (c.a == b && c.b == a)) return;
  if (from.empty()) return checks_.push_back({a, b, message});
  checks_.push_back({a, b, located(from, origin_lists_[origins_].list.back().kind, message)});
}

// An existing check is moved to the end with the new message: in a copy or parsed text of a
// function, the listed checks come after those that its nodes requested, and remain unchanged.
void Graph::add_check(const DimCheck& check) {
  std::erase_if(checks_, [&](const DimCheck& c) {
    return (c.a == check.a && c.b == check.b) || (c.a == check.b && c.b == check.a);
  });
  checks_.push_back(check);
}

Value apply(const Op& op, std::span<const Value> operands, Attrs attrs, std::source_location at) {
  if (operands.empty())
    throw UserError(op.name, ": got no operands, expected at least one (", at.file_name(), ":",
                    at.line(), ")");
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i])
      throw UserError(op.name, ": operand ", i,
                      " is empty; give an input, a weight or the result of an operation (",
                      at.file_name(), ":", at.line(), ")");
    if (&operands[i].graph() != &operands[0].graph())
      throw UserError(op.name, ": operands 0 and ", i,
                      " belong to different functions; build each function with one Builder (",
                      at.file_name(), ":", at.line(), ")");
  }
  Graph& graph = operands[0].graph();
  if (!graph.records_source()) return graph.intern(op, operands, std::move(attrs));
  Origin origin{at.line(), at.file_name(), ""};
  OriginScope scope(graph, origin);
  try {
    return graph.intern(op, operands, std::move(attrs));
  } catch (const UserError& e) {
    throw UserError(e.what(), " (", origin, ")");
  }
}

Value constant(Graph& graph, const Array& a) {
  return graph.intern(ops::constant, {}, {{"value", a}});
}

Value scalar(Graph& graph, double x, DType dtype) {
  return constant(graph, Array::scalar(x, dtype));
}

Value dims_value(Graph& graph, const Dims& contents, DType dtype, std::vector<std::int64_t> shape) {
  bool numbers = true;
  for (const Dim& d : contents) numbers = numbers && d.is_number();
  if (numbers) {
    Array a = Array::zeros(dtype, std::move(shape));
    for (std::size_t i = 0; i < contents.size(); ++i)
      a.set_integer(static_cast<std::int64_t>(i), contents[i].number());
    return constant(graph, a);
  }
  return graph.intern(ops::dims, {},
                      {{"dims", contents}, {"dtype", dtype}, {"shape", dims_of(shape)}});
}

std::optional<Dims> contents_of(Value v) {
  constexpr std::int64_t most = 64;
  if (v.is(ops::dims)) return v.attrs().dims("dims");
  if (!v.is(ops::constant) || is_float(v.dtype())) return std::nullopt;
  const Array& a = v.attrs().get<Array>("value");
  if (a.count() > most) return std::nullopt;
  Dims out;
  for (std::int64_t i = 0; i < a.count(); ++i) out.push_back(a.integer(i));
  return out;
}

}  // namespace hone
