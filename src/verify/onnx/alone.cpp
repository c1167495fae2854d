#include "verify/onnx/alone.h"

#include <algorithm>
#include <set>
#include <span>

#include "import/onnx/node/known.h"
#include "ir/op.h"
#include "ops/ops.h"

namespace hone::onnx {

namespace {

// Sizes up to this one stay: windows, groups and channels of pictures are such.
constexpr std::int64_t small = 8;
// Contents of operands up to this many elements are kept: sizes, axes, places; for reals, those of
// a Resize.
constexpr std::int64_t most_integers = 64, most_reals = 8;

// Whether few nodes lie between the value and constants. A deep value is not worth a search, which
// would be repeated for each node above it.
bool may_be_known(const Value& v) {
  constexpr std::size_t most = 64;
  std::vector<Value> open = {v};
  for (std::size_t met = 0; !open.empty(); ++met) {
    const Value at = open.back();
    open.pop_back();
    if (met == most || at.is(ops::param)) return false;
    for (const Value& operand : at.operands()) open.push_back(operand);
  }
  return true;
}

std::optional<Array> little_contents(const Value& v) {
  const Dim count = v.shape().count();
  const std::int64_t most = is_float(v.dtype()) ? most_reals : most_integers;
  if (v.dtype() == DType::text || v.rank() > 1 + !is_float(v.dtype()) || !count.is_number() ||
      count.number() > most || !may_be_known(v))
    return std::nullopt;
  try {
    return known_array(v);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

std::string text_of(const Attribute& a) {
  std::string out = cat(" ", a.name, "=", a.integer, ",", a.real, ",", a.text);
  for (std::int64_t i : a.integers) out += cat(" ", i);
  for (float r : a.reals) out += cat(" ", r);
  for (std::string_view t : a.texts) out += cat(" ", t);
  if (a.tensor) out += cat(" ", static_cast<const void*>(a.tensor.get()));
  if (a.graph) out += cat(" ", static_cast<const void*>(a.graph.get()));
  return out;
}

// A larger number in an operand is not a size: Slice, for example, is given "to the end" so.
constexpr std::int64_t most_size = 1 << 24;

bool holds_sizes(const SizedNode::Operand& o) {
  return o.contents && o.dtype == DType::i64 && o.dims.size() <= 1;
}

// The axes of an operand whose sizes a map replaces.
std::span<const std::int64_t> axes_to_map(const SizedNode::Operand& o, const SizeMap& how) {
  const std::span<const std::int64_t> all = o.dims;
  return how.in_windows ? all : all.first(std::min(all.size(), o.window_from));
}

// How: without sizes.
std::set<std::int64_t> sizes_of(const SizedNode& n, const SizeMap& how) {
  std::set<std::int64_t> out;
  for (const auto& o : n.operands) {
    if (!o) continue;
    if (!o->contents)
      for (std::int64_t d : axes_to_map(*o, how)) out.insert(d);
    if (how.in_contents && holds_sizes(*o))
      for (std::int64_t i = 0; i < o->contents->count(); ++i)
        if (o->contents->integer(i) < most_size) out.insert(o->contents->integer(i));
  }
  return out;
}

// The first axis of a window that an operand holds; none: past the last axis.
std::size_t window_of_operand(const Node& n, std::size_t operand) {
  constexpr std::size_t first_of_image = 2;
  const bool is_weight = n.op == "QLinearConv"
                             ? operand == 3
                             : operand == 1 && (n.op.starts_with("Conv") || n.op == "DeformConv");
  return is_weight ? first_of_image : ~std::size_t{0};
}

std::vector<std::int64_t> large_sizes(const std::set<std::int64_t>& all) {
  return {all.upper_bound(small), all.end()};
}

// Small sizes that no operand has.
class NewSizes {
 public:
  explicit NewSizes(std::set<std::int64_t> taken) : taken_(std::move(taken)) {}
  std::int64_t next(std::int64_t least) {
    while (!taken_.insert(least).second) ++least;
    return least;
  }

 private:
  std::set<std::int64_t> taken_;
};

// In the same order, so that a part remains one.
SizeMap different_sizes(const SizedNode& n, const SizeMap& how) {
  const std::set<std::int64_t> all = sizes_of(n, how);
  NewSizes sizes(all);
  SizeMap out = how;
  std::int64_t least = 5;
  for (std::int64_t s : large_sizes(all)) least = out.sizes[s] = sizes.next(least);
  return out;
}

// What is a multiple of another size remains one, as channels of groups.
SizeMap divided_sizes(const SizedNode& n, const SizeMap& how) {
  std::int64_t by = 1;
  const std::vector<std::int64_t> large = large_sizes(sizes_of(n, how));
  const auto fits = [&](std::int64_t d) {
    return std::ranges::all_of(large, [&](std::int64_t s) { return s % d == 0 && s / d > 1; });
  };
  while (!large.empty() && fits(2 * by)) by *= 2;
  SizeMap out = how;
  for (std::int64_t s : large)
    if (by > 1) out.sizes[s] = s / by;
  return out;
}

// The largest first, which cost most.
SizeMap sizes_in_turn(const SizedNode& n, const SizeMap& how,
                      const std::function<bool(const SizeMap&)>& accepts) {
  const std::set<std::int64_t> all = sizes_of(n, how);
  std::vector<std::int64_t> large = large_sizes(all);
  std::ranges::reverse(large);
  NewSizes sizes(all);
  SizeMap out = how;
  for (std::int64_t s : large)
    for (std::int64_t least : {5, 19, 36}) {
      if (least >= s) break;
      out.sizes[s] = sizes.next(least);
      if (accepts(out)) break;
      out.sizes.erase(s);
    }
  return out;
}

Array with_sizes(const Array& a, const SizeMap& sizes) {
  Array out = Array::zeros(a.dtype(), a.dims());
  for (std::int64_t i = 0; i < a.count(); ++i) out.set_integer(i, sizes.of(a.integer(i)));
  return out;
}

}  // namespace

MetNode met_node(const Node& n, const std::vector<Opset>& opsets, const Values& operands) {
  MetNode out{n, opsets, {}};
  for (const Value& v : operands) {
    if (!v) {
      out.operands.push_back(std::nullopt);
      continue;
    }
    MetNode::Operand o{v.type(), {}, {}};
    if (v.type().is_tensor()) o.contents = little_contents(v);
    if (v.type().is_tensor() && !o.contents && v.dtype() == DType::i64 && v.rank() <= 1)
      o.sizes = contents_of(v);
    out.operands.push_back(std::move(o));
  }
  return out;
}

std::optional<SizedNode> sized_node(const MetNode& met,
                                    const std::function<std::int64_t(const Dim&)>& size_of) try {
  SizedNode out{&met, {}};
  for (const auto& o : met.operands) {
    if (!o) {
      out.operands.push_back(std::nullopt);
      continue;
    }
    if (!o->type.is_tensor()) return std::nullopt;
    SizedNode::Operand sized{
        o->type.dtype, {}, o->contents, window_of_operand(met.node, out.operands.size())};
    for (const Dim& d : o->type.shape.dims) sized.dims.push_back(size_of(d));
    if (o->sizes && o->sizes->size() <= most_integers) {
      Array a = Array::zeros(o->type.dtype, sized.dims);
      for (std::size_t i = 0; i < o->sizes->size(); ++i)
        a.set_integer(static_cast<std::int64_t>(i), size_of((*o->sizes)[i]));
      sized.contents = std::move(a);
    }
    out.operands.push_back(std::move(sized));
  }
  return out;
} catch (const UserError&) {
  return std::nullopt;
}

namespace {

std::string operator_text(const MetNode& met) {
  std::string out = cat(met.node.op, " of ", opset_of(met.opsets, met.node.domain), " ",
                        normal_domain(met.node.domain), " ", met.node.outputs.size());
  for (const Attribute& a : met.node.attributes) out += text_of(a);
  return out;
}

// One value twice is another kind than two values.
std::string identity_text(const Node& n, std::size_t operand) {
  return cat("@", std::ranges::find(n.inputs, n.inputs[operand]) - n.inputs.begin());
}

std::string contents_text(const std::optional<Array>& a) {
  std::string out;
  for (std::int64_t k = 0; a && k < a->count(); ++k)
    out += is_float(a->dtype()) ? cat(":", a->real(k)) : cat(":", a->integer(k));
  return out;
}

}  // namespace

std::string kind_of(const MetNode& met) {
  std::string out = operator_text(met);
  for (std::size_t i = 0; i < met.operands.size(); ++i) {
    const auto& o = met.operands[i];
    out += o ? cat(" ", o->type, identity_text(met.node, i), contents_text(o->contents)) : " -";
    if (o && o->sizes)
      for (const Dim& d : *o->sizes) out += cat(":", d);
  }
  return out;
}

std::string kind_of(const SizedNode& n) {
  std::string out = operator_text(*n.met);
  for (std::size_t i = 0; i < n.operands.size(); ++i) {
    const auto& o = n.operands[i];
    out += o ? cat(" ", o->dtype, identity_text(n.met->node, i)) : " -";
    if (!o) continue;
    for (std::int64_t d : o->dims) out += cat(",", d);
    out += contents_text(o->contents);
  }
  return out;
}

namespace {

bool try_small_sizes(const SizedNode& n, bool in_windows,
                     const std::function<bool(const SizeMap&)>& accepts,
                     const std::function<bool(const SizeMap&)>& tries) {
  const SizeMap of_dims{{}, false, in_windows}, of_all{{}, true, in_windows};
  const bool has_dims = !large_sizes(sizes_of(n, of_dims)).empty(),
             has_any = !large_sizes(sizes_of(n, of_all)).empty();
  if (std::ranges::any_of(n.operands, [](const auto& o) { return o && holds_sizes(*o); }) &&
      has_any && tries(different_sizes(n, of_all)))
    return true;
  if (!has_dims) return false;
  if (tries(different_sizes(n, of_dims))) return true;
  if (const SizeMap m = divided_sizes(n, of_dims); !m.sizes.empty() && tries(m)) return true;
  const SizeMap m = sizes_in_turn(n, of_dims, accepts);
  return !m.sizes.empty() && tries(m);
}

bool has_window(const SizedNode& n) {
  return std::ranges::any_of(n.operands,
                             [](const auto& o) { return o && o->window_from < o->dims.size(); });
}

}  // namespace

void try_small_sizes(const SizedNode& n, const std::function<bool(const SizeMap&)>& accepts,
                     const std::function<bool(const SizeMap&)>& tries) {
  if (try_small_sizes(n, false, accepts, tries)) return;
  if (has_window(n) && try_small_sizes(n, true, accepts, tries)) return;
  tries({});
}

std::vector<SizeMap> other_sizes(const SizedNode& n) {
  std::vector<SizeMap> out;
  for (const bool in_windows : {false, true})
    for (const bool with_ones : {false, true}) {
      SizeMap m{{}, false, in_windows};
      const std::set<std::int64_t> all = sizes_of(n, m);
      if ((with_ones && !all.contains(1)) || (in_windows && !has_window(n))) continue;
      NewSizes sizes(all);
      std::int64_t least = 2;
      for (auto at = all.lower_bound(with_ones ? 1 : 2); at != all.end(); ++at)
        least = m.sizes[*at] = sizes.next(least);
      if (!m.sizes.empty()) out.push_back(std::move(m));
    }
  return out;
}

OneNode::OneNode(const SizedNode& n, const SizeMap& sizes) {
  model.ir_version = 10;
  model.opsets = n.met->opsets;
  Graph& g = model.graph.emplace();
  Node node = n.met->node;
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (i >= n.operands.size() || !n.operands[i]) {
      node.inputs[i] = {};
      continue;
    }
    const SizedNode::Operand& o = *n.operands[i];
    if (!names.insert(node.inputs[i]).second) continue;
    if (o.contents) {
      const Array& a = contents.emplace_back(
          sizes.in_contents && holds_sizes(o) ? with_sizes(*o.contents, sizes) : *o.contents);
      Tensor t;
      t.name = node.inputs[i];
      t.data_type = data_type_of(a.dtype());
      t.dims = a.dims();
      t.raw = a.bytes();
      g.initializers.push_back(std::move(t));
      continue;
    }
    ValueInfo v;
    v.name = node.inputs[i];
    v.kind = ValueInfo::Kind::tensor;
    v.data_type = data_type_of(o.dtype);
    v.has_shape = true;
    const std::size_t mapped = axes_to_map(o, sizes).size();
    for (std::size_t i = 0; i < o.dims.size(); ++i)
      v.sizes.push_back({i < mapped ? sizes.of(o.dims[i]) : o.dims[i], {}});
    g.inputs.push_back(std::move(v));
  }
  for (std::string_view name : node.outputs) {
    if (name.empty()) continue;
    ValueInfo v;
    v.name = name;
    v.kind = ValueInfo::Kind::tensor;
    g.outputs.push_back(std::move(v));
  }
  g.nodes.push_back(std::move(node));
}

}  // namespace hone::onnx
