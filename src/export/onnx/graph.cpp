#include "export/onnx/graph.h"

#include <algorithm>

#include "import/onnx/file/tensor.h"
#include "ir/measured.h"
#include "ops/ops.h"
#include "ops/require.h"

namespace hone::onnx {

ExportGraph::ExportGraph(ExportState& state, const Function& f, std::vector<std::string> names)
    : state_(state), f_(f) {
  for (std::size_t i = 0; i < names.size(); ++i) names_.emplace(f.param(i), std::move(names[i]));
  for (NodeId n : live_nodes(f))
    if (&f.graph().op(n) == &ops::require) required_.insert(f.graph().operands(n)[0]);
}

bool ExportGraph::is_index_into(Value index, const Dim& size) const {
  const Dim low = Dim(0) - size, high = size - Dim(1);
  return is_within(index, low, high) || required_.contains(outsider(index, low, high));
}

void ExportGraph::add_sizes() {
  for (const Function::Param& p : f_.params())
    for (int i = 0; i < p.value.rank(); ++i) {
      const Dim& d = p.value.shape()[i];
      if (!d.is_symbol() || state_.sizes.contains(d.name())) continue;
      const std::int64_t from = i, to = i + 1;
      state_.sizes.emplace(d.name(), one("Shape", {name(p.value)},
                                         {attribute("start", from), attribute("end", to)}));
    }
}

void ExportGraph::add_results(const std::vector<std::string>& names) {
  const std::vector<std::string> made = results();
  for (std::size_t i = 0; i < names.size(); ++i) {
    Message m;
    m.bytes(1, made[i]);
    m.bytes(2, names[i]);
    m.bytes(3, "result_" + names[i]);
    m.bytes(4, "Identity");
    nodes_.message(1, m);
  }
}

std::vector<std::string> ExportGraph::results() {
  std::vector<std::string> out;
  // First the sizes that data decides: types name them, not operands.
  for (NodeId n : live_nodes(f_))
    if (&f_.graph().op(n) == &ops::measure) emit(Value(&f_.graph(), n));
  for (const Function::Result& r : f_.results()) {
    emit(r.value);
    out.push_back(names_[r.value]);
  }
  return out;
}

std::vector<std::string> ExportGraph::node(std::string_view op,
                                           const std::vector<std::string>& inputs,
                                           const std::vector<Message>& attributes, int outputs) {
  Message m;
  for (const std::string& i : inputs) m.bytes(1, i);
  std::vector<std::string> out;
  for (int i = 0; i < outputs; ++i) m.bytes(2, out.emplace_back(fresh()));
  m.bytes(3, cat(op, "_", out[0]));
  m.bytes(4, op);
  for (const Message& a : attributes) m.message(5, a);
  nodes_.message(1, m);
  return out;
}

std::string ExportGraph::cast(const std::string& x, DType to) {
  std::vector<Message> attributes = {attribute("to", std::int64_t{data_type_of(to)})};
  if (is_small(to) && is_float(to)) attributes.push_back(attribute("saturate", std::int64_t{0}));
  if (to == DType::f8e8m0) attributes.push_back(attribute("round_mode", "nearest"));
  return one("Cast", {x}, attributes);
}

// Size 0 would mean that of the operand.
std::string ExportGraph::reshape(const std::string& x, const Dims& dims) {
  return one("Reshape", {x, sizes(dims)}, {attribute("allowzero", std::int64_t{1})});
}

std::string ExportGraph::expand(const std::string& x, const Dims& dims) {
  return one("Expand", {x, sizes(dims)});
}

// ==== sizes

std::string ExportGraph::scalar_size(const Dim& d) {
  if (d.is_number()) return constant(Array::scalar_int(d.number(), DType::i64));
  return reshape(sizes({d}), {});
}

std::string ExportGraph::range(const Dim& n) {
  return one("Range", {scalar_size(0), scalar_size(n), scalar_size(1)});
}

std::string ExportGraph::sizes(const Dims& dims) {
  if (std::ranges::all_of(dims, &Dim::is_number)) {
    std::vector<std::int64_t> numbers;
    for (const Dim& d : dims) numbers.push_back(d.number());
    return integers(numbers);
  }
  std::vector<std::string> parts;
  for (const Dim& d : dims) parts.push_back(size(d));
  if (parts.size() == 1) return parts[0];
  return one("Concat", parts, {attribute("axis", std::int64_t{0})});
}

// i64[1].
std::string ExportGraph::size(const Dim& d) {
  if (d.is_number()) return integers(std::vector{d.number()});
  for (const auto& [known, name] : known_sizes_)
    if (known == d) return name;
  const DimExpr& e = *d.expr();
  using Kind = DimExpr::Kind;
  std::string out;
  if (e.kind == Kind::symbol) {
    const auto found = state_.sizes.find(e.name);
    if (found == state_.sizes.end())
      throw UserError("size ", e.name, " is not the size of an input's axis");
    return found->second;
  }
  if (e.kind == Kind::sum) {
    for (const DimExpr::Term& t : e.terms) {
      std::string product;
      for (const Dim& atom : t.atoms)
        product = product.empty() ? size(atom) : one("Mul", {product, size(atom)});
      if (product.empty())
        product = size(Dim(t.factor));
      else if (t.factor != 1)
        product = one("Mul", {product, size(Dim(t.factor))});
      out = out.empty() ? product : one("Add", {out, product});
    }
  } else {
    const std::string a = size(e.a), b = size(e.b);
    // ONNX divides towards zero.
    if (e.kind == Kind::floor_div && (e.a.low() < 0 || e.b.low() <= 0))
      throw UserError("size ", d, " divides what may be negative");
    out = e.kind == Kind::floor_div ? one("Div", {a, b})
          : e.kind == Kind::mod     ? one("Mod", {a, b})
          : e.kind == Kind::min     ? one("Min", {a, b})
          : e.kind == Kind::max
              ? one("Max", {a, b})
              : one("Cast", {one("Equal", {a, b})}, {attribute("to", std::int64_t{7})});  // INT64
  }
  known_sizes_.emplace_back(d, out);
  return out;
}

// ==== nodes

namespace {

// Where the small dtypes came into the format.
std::int64_t opset_of(DType t) {
  switch (t) {
    case DType::f4e2m1:
      return 23;
    case DType::f8e8m0:
      return 24;
    case DType::i2:
    case DType::u2:
      return 25;
    default:
      return 21;
  }
}

}  // namespace

// Without recursion: a graph may be a chain of any length.
void ExportGraph::emit(Value root) {
  std::vector<NodeId> open = {root.node()};
  while (!open.empty()) {
    const NodeId n = open.back();
    if (names_.contains(Value(&f_.graph(), n)) || emit_one(n)) {
      open.pop_back();
      continue;
    }
    // What it is made of first: its expansion, or its operands.
    const auto at = expanded_.find(n);
    const Value v(&f_.graph(), n);
    for (const Value& o : at != expanded_.end() ? at->second : written_operands(v))
      if (!names_.contains(o)) open.push_back(o.node());
  }
}

// False when something that it needs has no name yet.
bool ExportGraph::emit_one(NodeId n) {
  const Value v(&f_.graph(), n);
  const auto name_all = [&](const std::vector<std::string>& made) {
    for (std::size_t i = 0; i < v.result_count(); ++i)
      names_.insert_or_assign(v.result(i), i < made.size() ? made[i] : std::string());
  };
  const auto all_named = [&](const std::vector<Value>& values) {
    return std::ranges::all_of(values, [&](const Value& o) { return names_.contains(o); });
  };
  if (const auto at = expanded_.find(n); at != expanded_.end()) {
    if (!all_named(at->second)) return false;
    std::vector<std::string> made;
    for (const Value& o : at->second) made.push_back(names_.at(o));
    return name_all(made), true;
  }
  for (const Type& t : f_.graph().result_types(n)) state_.need_opset(opset_of(t.dtype));
  const ExportNode write = find_export(*this, v);
  const Op& op = v.op();
  if (!write && !op.is_core()) {
    const std::vector<Value> operands = v.operands();
    const std::vector<Type> types = f_.graph().result_types(n);
    OriginScope scope(f_.graph(), f_.graph().origin_list(f_.graph().origins(n)));
    expanded_.emplace(n, op.expand({op, operands, v.attrs(), f_.graph(), types}));
    return false;
  }
  if (!all_named(written_operands(v))) return false;
  try {
    if (!write) throw UserError("ONNX has no such operator");
    name_all(write(*this, v));
  } catch (const UserError& e) {
    const std::string from = origins_text(v);
    state_.refused.push_back(
        cat(op.name, " ", v.type(), from.empty() ? "" : " of ", from, ": ", e.what()));
    name_all({});
  }
  return true;
}

}  // namespace hone::onnx
