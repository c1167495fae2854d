#include "kernel/problem/anchored.h"

#include <algorithm>
#include <map>

#include "kernel/walk.h"
#include "ops/common.h"
#include "ops/ops.h"

namespace hone {

namespace {

bool is_anchor(const Op& op) { return &op == &ops::dot || &op == &ops::conv; }

// The position in `v` of its operand's element at `at`, if `v` only moves elements, each to one
// position.
std::optional<Dims> moved_position(Value v, const Dims& at, const Positions& positions) {
  const Dims& from = v.operand(0).shape().dims;
  if (v.is(ops::reshape)) return positions.reshape(at, from, v.shape().dims);
  if (!v.is(ops::transpose)) return std::nullopt;
  Dims out;
  for (std::int64_t p : v.attrs().integers("perm")) out.push_back(at[static_cast<std::size_t>(p)]);
  return out;
}

int param_index(const Graph& graph, NodeId n) {
  return &graph.op(n) == &ops::param ? static_cast<int>(graph.attrs(n).integer("index")) : -1;
}

// Copies the nodes below `root` to `to`; its parameters are the listed ones of `f`.
Value copy_below(const Function& f, Value root, std::span<const int> params, Function& to) {
  std::vector<Values> copies(f.graph().node_count());
  for (int i : params) {
    const Function::Param& p = f.params()[static_cast<std::size_t>(i)];
    copies[p.value.node()] = {to.add_param(p.value.type(), p.name)};
  }
  for (NodeId n : nodes_below(std::span(&root, 1))) {
    if (!copies[n].empty()) continue;
    Values operands;
    for (Value v : f.graph().operands(n)) operands.push_back(copies[v.node()][v.index()]);
    std::vector<Type> types = f.graph().result_types(n);
    Value made = to.graph().intern_typed(f.graph().op(n), operands, f.graph().attrs(n), types);
    for (std::size_t i = 0; i < types.size(); ++i) copies[n].push_back(made.result(i));
  }
  return copies[root.node()][root.index()];
}

// All symbols of the group: repeats, slices and layouts may have some that no parameter shows.
Dims symbols_of(const GroupSpec& spec, const Function& f) {
  std::map<std::string, Dim> found;
  auto note = [&](const Dims& list) {
    for (const Dim& d : list)
      if (!d.is_number())
        for (const Dim& s : d.symbols()) found.emplace(s.name(), s);
  };
  for (const auto* all : {&spec.param_strides, &spec.result_strides})
    for (const Dims& strides : *all) note(strides);
  for (NodeId n : live_nodes(f)) {
    for (const Type& t : f.graph().result_types(n)) note(t.shape.dims);
    for (const Attrs::Entry& e : f.graph().attrs(n).entries())
      if (const auto* list = std::get_if<Dims>(&e.second)) note(*list);
  }
  Dims out;
  for (auto& [name, symbol] : found) out.push_back(symbol);
  return out;
}

}  // namespace

AnchoredGroup::AnchoredGroup(GroupSpec spec, Function function, Value anchor)
    : spec_(std::move(spec)),
      function_(std::move(function)),
      symbols_(symbols_of(spec_, function_)),
      anchor_(anchor),
      graph_(std::make_shared<Graph>()),
      lowering_(graph_) {}

std::optional<AnchoredGroup> AnchoredGroup::find(const GroupSpec& spec, const Op* composite) {
  Function f = expand_for_kernels(spec.function, composite);
  Value anchor;
  for (NodeId n : live_nodes(f)) {
    const Op& op = f.graph().op(n);
    if (op.kind == OpKind::control || !op.pure) return std::nullopt;
    if (&op != composite && !is_anchor(op)) continue;
    if (anchor || (composite && &op != composite)) return std::nullopt;
    anchor = Value(&f.graph(), n);
  }
  if (!anchor) return std::nullopt;
  return AnchoredGroup(spec, std::move(f), anchor);
}

std::vector<int> AnchoredGroup::params_below(std::span<const Value> roots, Value stop) const {
  const Graph& graph = function_.graph();
  std::vector<bool> seen(graph.node_count(), false);
  std::vector<NodeId> stack;
  for (Value v : roots) stack.push_back(v.node());
  std::vector<int> out;
  while (!stack.empty()) {
    NodeId n = stack.back();
    stack.pop_back();
    if (seen[n] || (stop && n == stop.node())) continue;
    seen[n] = true;
    if (int i = param_index(graph, n); i >= 0) out.push_back(i);
    for (Value v : graph.operands(n)) stack.push_back(v.node());
  }
  std::sort(out.begin(), out.end());
  return out;
}

bool AnchoredGroup::is_weight(Value v) const {
  if (!v.shape().is_static()) return false;  // a number, repeated as the input sizes require
  std::vector<int> params = params_below(std::span(&v, 1));
  return std::all_of(params.begin(), params.end(),
                     [&](int i) { return spec_.param_is_weight[static_cast<std::size_t>(i)]; });
}

// ---- the kernel around the anchor

std::optional<DType> accumulator(DType result) {
  DType t = result == DType::f16 || result == DType::bf16 ? DType::f32 : result;
  bool is_known = t == DType::f32 || t == DType::f64 || t == DType::i32 || t == DType::i64;
  return is_known ? std::optional(t) : std::nullopt;
}

namespace {

// True if `to` can represent every number of `from`.
bool holds_all(DType to, DType from) {
  if (from == to) return true;
  if (is_float(from)) return is_float(to) && byte_size(to) > byte_size(from);
  const int bits = 8 * byte_size(from) - is_signed(from);
  if (is_float(to))
    return bits <= (to == DType::f64 ? 53 : to == DType::f32 ? 24 : to == DType::f16 ? 11 : 8);
  return (is_signed(to) || !is_signed(from)) && 8 * byte_size(to) - is_signed(to) >= bits;
}

bool is_plain_number(DType t) { return t != DType::b1 && t != DType::text && !is_small(t); }

}  // namespace

DType packed_dtype(Value operand, DType accumulate) {
  DType best = accumulate;
  std::vector<DType> passed = {accumulate};
  for (Value v = operand;; v = v.operand(0)) {
    const DType t = v.dtype();
    if (!is_plain_number(t)) break;
    const bool fits =
        std::all_of(passed.begin(), passed.end(), [&](DType other) { return holds_all(other, t); });
    if (fits && byte_size(t) < byte_size(best)) best = t;
    passed.push_back(t);
    const bool moves = v.op().kind == OpKind::movement && v.op().is_core();
    if (!v.is(ops::cast) && !(moves && v.operand_count() == 1)) break;
  }
  return best;
}

KernelParam dense_param(const Type& t, bool written) {
  return {t.dtype, t.shape.dims, dense_strides(t.shape), written};
}

void AnchoredGroup::set_operands(std::span<const Value> operands, std::size_t temporaries,
                                 Value coded, Value codes) {
  params_ = params_below(operands);
  auto add = [&](std::span<const Value> roots, Value stop) {
    for (int i : params_below(roots, stop))
      if (std::find(params_.begin(), params_.end(), i) == params_.end()) params_.push_back(i);
  };
  if (coded) add(std::span(&coded, 1), codes);
  std::vector<Value> results;
  for (const Function::Result& r : function_.results()) results.push_back(r.value);
  add(results, anchor_);
  add_params(params_);
  for (std::size_t i = 0; i < function_.results().size(); ++i) {
    const Type& t = function_.result(i).type();
    kernel_params_.push_back({t.dtype, t.shape.dims, spec_.result_strides[i], true});
  }
  kernel_params_.resize(kernel_params_.size() + temporaries);
  temporary_count_ = temporaries;
  element_ = lowering_.positions().new_register();
}

void AnchoredGroup::set_inputs(std::span<const Value> operands, std::size_t temporaries) {
  params_ = params_below(operands);
  add_params(params_);
  has_results_ = false;
  kernel_params_.resize(kernel_params_.size() + temporaries);
  temporary_count_ = temporaries;
}

void AnchoredGroup::add_params(std::span<const int> params) {
  for (int i : params) {
    Value v = function_.param(static_cast<std::size_t>(i));
    const Dims& strides = spec_.param_strides[static_cast<std::size_t>(i)];
    lowering_.set_memory(v, {static_cast<int>(kernel_params_.size()), strides});
    kernel_params_.push_back({v.dtype(), v.shape().dims, strides, false});
  }
}

int AnchoredGroup::set_temporary(std::size_t i, const Type& t) {
  std::size_t param = kernel_params_.size() - temporary_count_ + i;
  kernel_params_[param] = dense_param(t, false);
  return static_cast<int>(param);
}

std::optional<Splice> AnchoredGroup::element(Value operand, const Dims& position,
                                             std::span<const Dim> vars, DType accumulate) {
  Splice out;
  out.vars = Dims(vars.begin(), vars.end());
  out.value = lowering_.element(operand, position);
  // Narrow floats are held in f32 anyway.
  if (accumulator(operand.dtype()) != accumulate)
    out.value = lowering_.convert(out.value, accumulate);
  if (!lowering_.take().empty()) return std::nullopt;
  return out;
}

std::optional<std::vector<Dims>> AnchoredGroup::result_positions(const Dims& anchor_position) {
  const Graph& graph = function_.graph();
  std::vector<std::optional<Dims>> at(graph.node_count());
  at[anchor_.node()] = anchor_position;
  for (NodeId n : live_nodes(function_)) {
    if (n == anchor_.node()) continue;
    for (Value operand : graph.operands(n)) {
      if (!at[operand.node()]) continue;
      std::optional<Dims> here = maps_elements(graph.op(n)) ? at[operand.node()]
                                 : graph.operands(n).size() == 1
                                     ? moved_position(Value(&function_.graph(), n),
                                                      *at[operand.node()], lowering_.positions())
                                     : std::nullopt;
      if (!here || (at[n] && *at[n] != *here)) return std::nullopt;
      at[n] = std::move(here);
    }
  }
  std::vector<Dims> out;
  for (const Function::Result& r : function_.results()) {
    if (!at[r.value.node()]) return std::nullopt;
    out.push_back(*at[r.value.node()]);
  }
  return out;
}

std::optional<Splice> AnchoredGroup::epilogue(const Dims& anchor_position,
                                              std::span<const Dim> vars, Value factor) {
  std::optional<std::vector<Dims>> positions = result_positions(anchor_position);
  if (!positions) return std::nullopt;
  Splice out;
  out.vars = Dims(vars.begin(), vars.end());
  out.element = lowering_.reg(element_, *accumulator(anchor_.dtype()));
  Value sum = out.element;
  if (factor) sum = lowering_.apply(ops::mul, {sum, factor});
  lowering_.bind(anchor_, anchor_position, lowering_.convert(sum, anchor_.dtype()));
  for (std::size_t i = 0; i < positions->size(); ++i) {
    int param = static_cast<int>(params_.size() + i);
    lowering_.store(function_.result(i), (*positions)[i], {param, spec_.result_strides[i]});
  }
  out.stores = lowering_.take();
  bool only_stores = std::all_of(out.stores.begin(), out.stores.end(),
                                 [](const Stmt& s) { return s.kind == Stmt::Kind::store; });
  if (!only_stores || lowering_.refused_position()) return std::nullopt;
  return out;
}

Kernel AnchoredGroup::kernel() const {
  Kernel k;
  k.params = kernel_params_;
  k.sizes = symbols_;
  constexpr int most_names = 4;
  int names = 0;
  for (NodeId n : live_nodes(spec_.function)) {
    const Op& op = spec_.function.graph().op(n);
    if (op.kind == OpKind::leaf || op.kind == OpKind::movement || names++ >= most_names) continue;
    k.name += cat(k.name.empty() ? "" : "_", op.name);
  }
  return k;
}

std::vector<Candidate::Operand> AnchoredGroup::operands() const {
  using Kind = Candidate::Operand::Kind;
  std::vector<Candidate::Operand> out;
  for (int i : params_) out.push_back({Kind::param, i});
  for (std::size_t i = 0; has_results_ && i < function_.results().size(); ++i)
    out.push_back({Kind::result, static_cast<int>(i)});
  for (std::size_t i = 0; i < temporary_count_; ++i)
    out.push_back({Kind::temporary, static_cast<int>(i)});
  return out;
}

// ---- packing

namespace {

// From this size on, transposing squares of elements saves more time than its code takes to
// compile.
constexpr double least_turned_elements = 1 << 22;

// True if some loaded memory is contiguous along `outer` but not along the loop inside it.
bool crosses(const Stmt& outer) {
  if (outer.body.size() != 1 || !is_loop(outer.body[0])) return false;
  const Stmt& inner = outer.body[0];
  const std::vector<Value> roots = values_of(inner.body);
  return std::ranges::any_of(nodes_below(roots), [&](NodeId n) {
    const Value v(&roots[0].graph(), n);
    if (!v.is(ops::load)) return false;
    const Dim& at = v.attrs().dims("offset").at(0);
    return stride_of(at, symbol_of(outer)) == Dim(1) && mentions(at, symbol_of(inner)) &&
           stride_of(at, symbol_of(inner)) != Dim(1);
  });
}

// A nest that computes `v`: its outer axes are chunks, its last one lanes.
void build_nest(Kernel& kernel, Lowering& lowering, Value v, int param) {
  const Dims& dims = v.shape().dims;
  const std::size_t outer = dims.size() - 2;
  std::span<const Dim> outer_dims(dims.data(), outer);
  Dim chunk = lowering.open_loop(product(outer_dims));
  Dims at = lowering.positions().split(chunk, outer_dims);
  at.push_back(lowering.open_loop(dims[outer]));
  at.push_back(lowering.open_loop(dims[outer + 1]));
  lowering.store(v, at, {param, dense_strides(v.shape())});
  for (int i = 0; i < 3; ++i) lowering.close_loop();
  kernel.graph = lowering.shared_graph();
  kernel.body = lowering.take();
  Stmt& chunks = kernel.body.back();
  chunks.loop = LoopKind::grid;
  // Statements before the innermost loop may be in the loops around it.
  Stmt& middle = chunks.body.back();
  middle.body.back().loop = LoopKind::lanes;
  if (typical(v.shape().count()) >= least_turned_elements && crosses(middle))
    middle.loop = LoopKind::across;
  kernel.chunks = chunks.extent;
}

}  // namespace

Candidate::Step AnchoredGroup::packing_step(Value of, const std::function<Value(Value)>& make,
                                            std::size_t i, bool prepare) const {
  using Kind = Candidate::Operand::Kind;
  Candidate::Step step;
  step.prepare = prepare;
  std::vector<int> params = params_below(std::span(&of, 1));
  Function f;
  Value packed = make(copy_below(function_, of, params, f));
  auto graph = std::make_shared<Graph>();
  Lowering lowering(graph);
  Kernel kernel;
  kernel.name = "pack";
  kernel.sizes = symbols_;
  for (std::size_t k = 0; k < params.size(); ++k) {
    const Dims& strides = spec_.param_strides[static_cast<std::size_t>(params[k])];
    const Type& t = f.param(k).type();
    lowering.set_memory(f.param(k), {static_cast<int>(k), strides});
    kernel.params.push_back({t.dtype, t.shape.dims, strides, false});
    step.operands.push_back({Kind::param, params[k]});
  }
  kernel.params.push_back(dense_param(packed.type(), true));
  step.operands.push_back({Kind::temporary, static_cast<int>(i)});
  build_nest(kernel, lowering, packed, static_cast<int>(params.size()));
  step.what = std::move(kernel);
  return step;
}

// ---- access

std::optional<Value> plain_load(const Splice& splice, DType dtype) {
  const Value& v = splice.value;
  if (!v || !v.is(ops::load) || v.operand_count() > 0 || v.dtype() != dtype) return std::nullopt;
  return v;
}

std::optional<std::int64_t> stride_along(Value load, const Dim& variable) {
  std::optional<Dim> stride = stride_of(load.attrs().dims("offset").at(0), variable);
  return stride ? stride->as_number() : std::nullopt;
}

int load_param(Value load) { return static_cast<int>(load.attrs().integer("param")); }

// ---- splicing

namespace {

std::vector<Replacement> replacements(const Splice& s, std::span<const Dim> at) {
  std::vector<Replacement> out;
  for (std::size_t i = 0; i < at.size(); ++i) out.push_back({s.vars[i], at[i]});
  return out;
}

}  // namespace

Value spliced(Graph& graph, const Splice& s, std::span<const Dim> at, Value element) {
  Rewriter rewrite(graph, replacements(s, at));
  if (element) rewrite.set(s.element, element);
  return rewrite(s.value);
}

Block spliced_stores(Graph& graph, const Splice& s, std::span<const Dim> at, Value element) {
  Rewriter rewrite(graph, replacements(s, at));
  rewrite.set(s.element, element);
  Block stores = s.stores;
  rewrite(stores);
  return stores;
}

Dim place_of_load(Value load, const Splice& s, std::span<const Dim> at) {
  return replace(load.attrs().dims("offset").at(0), replacements(s, at));
}

Value element_of_tile(const Lowering& lowering, int tile, DType dtype, const Dim& row,
                      const Dim& column) {
  return lowering.graph().intern(
      ops::tile_element, {},
      {{"index", std::int64_t{tile}}, {"dtype", dtype}, {"offset", Dims{row, column}}});
}

bool is_short(const Splice& epilogue, std::int64_t rows, std::int64_t vectors) {
  constexpr std::int64_t most_operations = 160;
  const std::vector<Value> roots = values_of(epilogue.stores);
  auto operations = std::ssize(epilogue.stores);
  if (!roots.empty()) operations += std::ssize(nodes_below(roots));
  return operations * rows * vectors <= most_operations;
}

}  // namespace hone
