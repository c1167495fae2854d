#include "kernel/nest/lower.h"

#include <algorithm>
#include <limits>

#include "base/hash.h"
#include "ops/common.h"
#include "ops/eval.h"
#include "ops/expand.h"
#include "ops/ops.h"

namespace hone {

Function expand_for_kernels(const Function& f, const Op* kept) {
  return expand_composites(f, [&](const Op& op) { return op.is_function || &op == kept; });
}

double typical(const Dim& d) {
  if (d.is_number()) return static_cast<double>(d.number());
  std::unordered_map<std::string, std::int64_t> values;
  for (const Dim& s : d.symbols())
    values[s.name()] =
        loop_of(s) || register_of(s) ? 0 : std::clamp<std::int64_t>(64, s.low(), s.high());
  return static_cast<double>(
      d.eval([&](std::string_view name) { return values.at(std::string(name)); }));
}

// ---- scopes

Dim Lowering::open_loop(const Dim& extent) {
  Scope s;
  s.variable = positions_.add_loop(extent);
  s.loop.kind = Stmt::Kind::loop;
  s.loop.var = *loop_of(s.variable);
  s.loop.extent = extent;
  depths_[s.variable] = scopes_.size();
  scopes_.push_back(std::move(s));
  return scopes_.back().variable;
}

Dim Lowering::open_independent_loop(const Dim& extent) {
  Dim variable = open_loop(extent);
  scopes_.back().loop.loop = LoopKind::grid;
  return variable;
}

void Lowering::close_loop() {
  Scope s = std::move(scopes_.back());
  scopes_.pop_back();
  depths_.erase(s.variable);
  if (s.body.empty()) return;
  s.loop.body = std::move(s.body);
  add(std::move(s.loop));
}

void Lowering::open_branch(Value condition) {
  Scope s;
  s.loop.kind = Stmt::Kind::branch;
  s.loop.condition = condition;
  scopes_.push_back(std::move(s));
}

void Lowering::close_branch() {
  Scope s = std::move(scopes_.back());
  scopes_.pop_back();
  s.loop.body = std::move(s.body);
  add(std::move(s.loop));
}

void Lowering::add(Stmt s) { scopes_.back().body.push_back(std::move(s)); }

Block Lowering::take() {
  HONE_ASSERT(scopes_.size() == 1, scopes_.size() - 1, " loops are open");
  return std::exchange(scopes_[0].body, {});
}

std::size_t Lowering::depth_of(const Place& p) const {
  std::size_t depth = 0;
  auto look = [&](const Dim& d) {
    if (d.is_number()) return;
    for (const Dim& s : d.symbols())
      if (auto it = depths_.find(s); it != depths_.end()) depth = std::max(depth, it->second);
  };
  for (const Dim& d : p.position) look(d);
  for (const Bound& b : guards_[p.guard]) look(b.value), look(b.size);
  return depth;
}

void Lowering::at_depth(std::size_t depth, const std::function<void()>& body) {
  std::vector<Scope> inner(
      std::make_move_iterator(scopes_.begin() + static_cast<std::ptrdiff_t>(depth + 1)),
      std::make_move_iterator(scopes_.end()));
  scopes_.resize(depth + 1);
  body();
  HONE_ASSERT(scopes_.size() == depth + 1, "a loop was left open");
  for (Scope& s : inner) scopes_.push_back(std::move(s));
}

// ---- places

std::size_t Lowering::PlaceHash::operator()(const Place& p) const {
  std::uint64_t h = p.guard;
  for (const Dim& d : p.position) h = mix(h, d.hash());
  return h;
}

Lowering::PlaceId Lowering::place(Dims position, std::uint32_t guard) {
  auto [it, fresh] =
      place_ids_.try_emplace({std::move(position), guard}, static_cast<PlaceId>(places_.size()));
  if (fresh) places_.push_back(it->first);
  return it->second;
}

Lowering::Guard Lowering::unproved(Guard bounds) const {
  std::erase_if(bounds, [&](const Bound& b) {
    return positions_.proves_nonnegative(b.value) && positions_.proves_below(b.value, b.size);
  });
  return bounds;
}

std::uint32_t Lowering::guard_id(Guard g) {
  for (std::size_t i = 0; i < guards_.size(); ++i)
    if (guards_[i] == g) return static_cast<std::uint32_t>(i);
  guards_.push_back(std::move(g));
  return static_cast<std::uint32_t>(guards_.size() - 1);
}

std::uint32_t Lowering::with_bounds(std::uint32_t guard, const Guard& more) {
  Guard all = guards_[guard];
  for (const Bound& b : more)
    if (std::find(all.begin(), all.end(), b) == all.end()) all.push_back(b);
  return guard_id(std::move(all));
}

Value Lowering::condition(const Guard& bounds) const {
  Value all;
  auto require = [&](Value c) { all = all ? apply(ops::bit_and, {all, c}) : c; };
  for (const Bound& b : bounds) {
    if (!positions_.proves_nonnegative(b.value)) require(below(-1, b.value));
    if (!positions_.proves_below(b.value, b.size)) require(below(b.value, b.size));
  }
  return all;
}

// ---- scalars

Value Lowering::size(const Dim& d) const { return dims_value(*graph_, {d}, DType::i64, {}); }
Value Lowering::number(double x, DType t) const { return scalar(*graph_, x, t); }
Value Lowering::integer(std::int64_t n, DType t) const {
  return constant(*graph_, Array::scalar_int(n, t));
}

namespace {

DType result_dtype(const Op& op, const std::vector<Value>& operands, const Attrs& attrs) {
  if (const Attr* dtype = attrs.find("dtype")) return std::get<DType>(*dtype);
  if (&op == &ops::eq || &op == &ops::ne || &op == &ops::lt || &op == &ops::le) return DType::b1;
  return operands.back().dtype();
}

// Arithmetic on positions stays a position, so that reads at it are still recognised as contiguous.
bool is_position_arithmetic(const Op& op, const std::vector<Value>& operands) {
  if (&op != &ops::add && &op != &ops::sub && &op != &ops::mul && &op != &ops::cast) return false;
  return std::all_of(operands.begin(), operands.end(), [](Value v) {
    return (v.is(ops::dims) || v.is(ops::constant)) && is_integer(v.dtype());
  });
}

}  // namespace

Value Lowering::apply(const Op& op, std::vector<Value> operands, Attrs attrs) const {
  if (is_position_arithmetic(op, operands)) return graph_->intern(op, operands, std::move(attrs));
  Type type(result_dtype(op, operands, attrs), Shape());
  return graph_->intern_typed(op, operands, attrs, std::span(&type, 1));
}

Value Lowering::convert(Value v, DType to) const {
  return v.dtype() == to ? v : apply(ops::cast, {v}, {{"dtype", to}});
}

Value Lowering::below(const Dim& a, const Dim& b) const {
  return apply(ops::lt, {size(a), size(b)});
}
Value Lowering::same(const Dim& a, const Dim& b) const {
  return apply(ops::eq, {size(a), size(b)});
}

Value Lowering::reg(RegId r, DType t) const {
  return graph_->intern(ops::reg, {}, {{"index", std::int64_t{r}}, {"dtype", t}});
}

Value Lowering::load(int param, DType t, const Dim& offset, Value condition) const {
  Values operands;
  if (condition) operands.push_back(condition);
  return graph_->intern(ops::load, operands,
                        {{"param", std::int64_t{param}}, {"dtype", t}, {"offset", Dims{offset}}});
}

// ---- elements

void Lowering::bind(Value v, Dims position, Value scalar) {
  bound_[v] = {std::move(position), scalar};
}

Value* Lowering::known(Value v, PlaceId at) {
  auto it = done_.find((std::uint64_t{v.node()} << 40) ^ (std::uint64_t{v.index()} << 32) ^ at);
  return it == done_.end() ? nullptr : &it->second;
}

Value Lowering::element(Value v, const Dims& position) { return element_at(v, place(position, 0)); }

// Chains of elementwise operations can be long, so they are walked without recursion.
Value Lowering::element_at(Value root, PlaceId at) {
  std::vector<Value> stack = {root};
  while (!stack.empty()) {
    Value v = stack.back();
    if (known(v, at)) {
      stack.pop_back();
      continue;
    }
    std::size_t before = stack.size();
    if (maps_elements(v.op()) && !memory_.contains(v) && !bound_.contains(v))
      for (Value operand : v.operands())
        if (!known(operand, at)) stack.push_back(operand);
    if (stack.size() > before) continue;
    Value result = compute(v, at);
    done_[(std::uint64_t{v.node()} << 40) ^ (std::uint64_t{v.index()} << 32) ^ at] = result;
    stack.pop_back();
  }
  return *known(root, at);
}

Value Lowering::mapped(Value v, PlaceId at) {
  std::vector<Value> operands;
  for (Value operand : v.operands()) operands.push_back(*known(operand, at));
  if (v.is(ops::replay)) return operands[0];
  if (v.is(ops::cast)) return convert(operands[0], v.dtype());
  if (v.is(ops::select) && operands[1] == operands[2]) return operands[1];
  return apply(v.op(), std::move(operands), v.attrs());
}

Value Lowering::from_memory(const Memory& w, Value v, PlaceId at) {
  Dim offset = 0;
  const Place& p = places_[at];
  for (std::size_t i = 0; i < p.position.size(); ++i)
    offset = offset + p.position[i] * w.strides[i];
  return load(w.param, v.dtype(), joined(offset), condition(p.guard));
}

// Entry `at` of a short list.
Value Lowering::of_list(std::size_t count, const Dim& at,
                        const std::function<Value(std::size_t)>& entry) const {
  if (at.is_number() && at.number() >= 0 && at.number() < static_cast<std::int64_t>(count))
    return entry(static_cast<std::size_t>(at.number()));
  Value result = entry(count - 1);
  for (std::size_t i = count - 1; i-- > 0;)
    result = apply(ops::select, {same(at, static_cast<std::int64_t>(i)), entry(i), result});
  return result;
}

Value Lowering::of_constant(Value v, PlaceId at) {
  constexpr std::int64_t longest_list = 64;
  const Array& a = v.attrs().get<Array>("value");
  auto entry = [&](std::size_t i) {
    auto k = static_cast<std::int64_t>(i);
    return is_float(a.dtype()) ? number(a.real(k), a.dtype()) : integer(a.integer(k), a.dtype());
  };
  auto bytes = static_cast<std::size_t>(byte_size(a.dtype()));
  const std::byte* data = a.bytes().data();
  bool is_uniform = true;
  for (std::size_t i = 1; i < static_cast<std::size_t>(a.count()) && is_uniform; ++i)
    is_uniform = std::equal(data, data + bytes, data + i * bytes);
  if (a.count() == 0) return integer(0, a.dtype());
  if (is_uniform) return entry(0);
  if (a.count() > longest_list)
    throw UserError("constant: ", a.type(),
                    " is too large to be written into a kernel; make it a parameter of the group");
  Dims sizes = dims_of(a.dims());
  return of_list(static_cast<std::size_t>(a.count()),
                 Positions::linear(places_[at].position, sizes), entry);
}

Value Lowering::compute(Value v, PlaceId at) {
  if (auto it = bound_.find(v); it != bound_.end()) {
    refused_position_ = refused_position_ || it->second.first != places_[at].position;
    return it->second.second;
  }
  if (auto it = memory_.find(v); it != memory_.end()) return from_memory(it->second, v, at);
  if (maps_elements(v.op())) return mapped(v, at);
  if (v.is(ops::constant)) return of_constant(v, at);
  if (v.is(ops::dims)) {
    const Dims& list = v.attrs().dims("dims");
    return of_list(list.size(), Positions::linear(places_[at].position, v.shape().dims),
                   [&](std::size_t i) { return dims_value(*graph_, {list[i]}, v.dtype(), {}); });
  }
  if (v.is(ops::iota)) {
    auto axis = static_cast<std::size_t>(v.attrs().integer("axis"));
    return convert(size(places_[at].position[axis]), v.dtype());
  }
  using Method = Value (Lowering::*)(Value, PlaceId);
  static const std::unordered_map<const Op*, Method> methods = {
      {&ops::pad, &Lowering::pad},
      {&ops::concat, &Lowering::concat},
      {&ops::gather, &Lowering::gather},
      {&ops::dynamic_slice, &Lowering::dynamic_slice},
      {&ops::dynamic_update, &Lowering::dynamic_update},
      {&ops::random_bits, &Lowering::random_bits},
      {&ops::argmax, &Lowering::arg_reduce},
      {&ops::argmin, &Lowering::arg_reduce},
      {&ops::reduce_window, &Lowering::reduce_window},
      {&ops::dot, &Lowering::dot},
      {&ops::conv, &Lowering::conv},
  };
  if (joiner_of(v.op())) return reduce(v, at);
  if (auto it = methods.find(&v.op()); it != methods.end()) return (this->*it->second)(v, at);
  if (auto position = source_position(v, places_[at].position, positions_))
    return element_at(v.operand(0), place(std::move(*position), places_[at].guard));
  throw UserError(v.op().name, ": cannot be computed inside a kernel: result ", v.type(),
                  "; it must be a step of its own");
}

Value Lowering::declare(Value scalar) {
  Stmt s;
  s.kind = Stmt::Kind::declare;
  s.reg = positions_.new_register();
  s.value = scalar;
  const Value kept = reg(s.reg, scalar.dtype());
  add(std::move(s));
  return kept;
}

void Lowering::store(Value v, const Dims& position, const Memory& w) {
  store(element(v, position), position, w, {});
}

void Lowering::store(Value scalar, const Dims& position, const Memory& w, Value condition) {
  Stmt s;
  s.kind = Stmt::Kind::store;
  s.param = w.param;
  for (std::size_t i = 0; i < position.size(); ++i)
    s.offset = s.offset + position[i] * w.strides[i];
  s.offset = joined(s.offset);
  s.value = scalar;
  s.condition = condition;
  add(std::move(s));
}

void Lowering::store_part(Value update, Dims position, const Memory& to) {
  Value part = update.operand(1);
  const Dims starts = dynamic_starts(update.operand(2), update.shape(), part.shape().dims, 0);
  Value x = element(part, position);
  for (std::size_t i = 0; i < position.size(); ++i) position[i] = position[i] + starts[i];
  store(x, position, to, {});
}

// ---- movement

std::optional<Dims> source_position(Value v, const Dims& at, const Positions& positions) {
  const Dims& from = v.operand_count() ? v.operand(0).shape().dims : v.shape().dims;
  Dims out(from.size(), 0);
  if (v.is(ops::reshape)) return positions.reshape(at, v.shape().dims, from);
  if (v.is(ops::transpose)) {
    std::vector<std::int64_t> perm = v.attrs().integers("perm");
    for (std::size_t i = 0; i < perm.size(); ++i) out[static_cast<std::size_t>(perm[i])] = at[i];
    return out;
  }
  if (v.is(ops::broadcast)) {
    for (std::size_t i = 0; i < from.size(); ++i)
      if (from[i] != Dim(1)) out[i] = at[at.size() - from.size() + i];
    return out;
  }
  if (v.is(ops::slice)) {
    const Dims &starts = v.attrs().dims("starts"), &steps = v.attrs().dims("steps");
    for (std::size_t i = 0; i < from.size(); ++i) out[i] = starts[i] + at[i] * steps[i];
    return out;
  }
  if (v.is(ops::reverse)) {
    out = at;
    for (std::int64_t a : v.attrs().integers("axes")) {
      auto i = static_cast<std::size_t>(a);
      out[i] = from[i] - Dim(1) - at[i];
    }
    return out;
  }
  return std::nullopt;
}

Value Lowering::pad(Value v, PlaceId at) {
  const Dims &low = v.attrs().dims("low"), &from = v.operand(0).shape().dims;
  Dims inner = places_[at].position;
  Guard bounds;
  for (std::size_t i = 0; i < inner.size(); ++i) {
    inner[i] = inner[i] - low[i];
    bounds.push_back({inner[i], from[i]});
  }
  bounds = unproved(std::move(bounds));
  std::uint32_t guard = places_[at].guard;
  Value x = element_at(v.operand(0), place(std::move(inner), with_bounds(guard, bounds)));
  if (bounds.empty()) return x;
  return apply(ops::select, {condition(bounds), x, element_at(v.operand(1), place({}, guard))});
}

Value Lowering::concat(Value v, PlaceId at) {
  auto axis = static_cast<std::size_t>(v.attrs().integer("axis"));
  const std::uint32_t guard = places_[at].guard;
  const Dims position = places_[at].position;
  Value result;
  Dim end = v.shape().dims[axis];
  for (std::size_t i = v.operand_count(); i-- > 0;) {
    const Dim size = v.operand(i).shape().dims[axis];
    if (size == Dim(0)) continue;
    Dims inner = position;
    inner[axis] = position[axis] - (end - size);
    Guard bounds = unproved({{inner[axis], size}});
    Value x = element_at(v.operand(i), place(std::move(inner), with_bounds(guard, bounds)));
    result = result ? apply(ops::select, {below(position[axis], end), x, result}) : x;
    if (bounds.empty()) return x;
    end = end - size;
  }
  return result ? result : integer(0, v.dtype());
}

// u64 values beyond i64 are clamped; like any large index they are out of range.
Value Lowering::index_number(Value n) {
  if (n.dtype() == DType::u64)
    n = apply(ops::minimum, {n, integer(std::numeric_limits<std::int64_t>::max(), DType::u64)});
  return convert(n, DType::i64);
}

Dim Lowering::data_position(Value number, const Dim& size, const Place& where) {
  if (std::optional<Dims> known = contents_of(number)) {
    const Dim& d = known->at(0);
    if (positions_.proves_nonnegative(d) && positions_.proves_below(d, size)) return d;
  }
  Value last = this->size(max(size - Dim(1), Dim(0)));
  Value clamped =
      apply(ops::maximum, {apply(ops::minimum, {number, last}), integer(0, DType::i64)});
  Dim symbol = positions_.add_register(size);
  std::size_t depth = depth_of(where);
  depths_[symbol] = depth;
  Stmt s;
  s.kind = Stmt::Kind::declare;
  s.reg = *register_of(symbol);
  s.value = clamped;
  scopes_[depth].body.push_back(std::move(s));
  return symbol;
}

Value Lowering::gather(Value v, PlaceId at) {
  auto axis = static_cast<std::ptrdiff_t>(v.attrs().integer("axis"));
  Value indices = v.operand(1);
  const Place here = places_[at];
  auto begin = here.position.begin() + axis, end = begin + indices.rank();
  const Dim size = v.operand(0).shape().dims[static_cast<std::size_t>(axis)];
  PlaceId index_place = place(Dims(begin, end), here.guard);
  Value n = index_number(element_at(indices, index_place));
  bool counts_from_front = !is_signed(indices.dtype());
  if (std::optional<Dims> known = contents_of(n))
    counts_from_front = counts_from_front || positions_.proves_nonnegative(known->at(0));
  if (!counts_from_front) {
    Value from_back = apply(ops::add, {n, this->size(size)});
    n = apply(ops::select, {apply(ops::lt, {n, integer(0, DType::i64)}), from_back, n});
  }
  Dims from(here.position.begin(), begin);
  from.push_back(data_position(n, size, places_[index_place]));
  from.insert(from.end(), end, here.position.end());
  return element_at(v.operand(0), place(std::move(from), here.guard));
}

Dims Lowering::dynamic_starts(Value starts, const Shape& whole, const Dims& sizes,
                              std::uint32_t guard) {
  Dims out;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    PlaceId at = place({static_cast<std::int64_t>(i)}, guard);
    Value n = index_number(element_at(starts, at));
    out.push_back(data_position(n, whole.dims[i] - sizes[i] + Dim(1), places_[at]));
  }
  return out;
}

Value Lowering::dynamic_slice(Value v, PlaceId at) {
  const Place here = places_[at];
  Dims from = dynamic_starts(v.operand(1), v.operand(0).shape(), v.shape().dims, here.guard);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = from[i] + here.position[i];
  return element_at(v.operand(0), place(std::move(from), here.guard));
}

Value Lowering::dynamic_update(Value v, PlaceId at) {
  const Place here = places_[at];
  Value part = v.operand(1);
  Dims inner = dynamic_starts(v.operand(2), v.shape(), part.shape().dims, here.guard);
  Guard bounds;
  for (std::size_t i = 0; i < inner.size(); ++i) {
    inner[i] = here.position[i] - inner[i];
    bounds.push_back({inner[i], part.shape().dims[i]});
  }
  bounds = unproved(std::move(bounds));
  Value x = element_at(part, place(std::move(inner), with_bounds(here.guard, bounds)));
  if (bounds.empty()) return x;
  return apply(ops::select, {condition(bounds), x, element_at(v.operand(0), at)});
}

// Philox4x32-10 as the operation defines it, in 64-bit words that hold 32 bits.
Value Lowering::random_bits(Value v, PlaceId at) {
  const std::uint32_t guard = places_[at].guard;
  auto word = [&](std::uint64_t n) { return integer(static_cast<std::int64_t>(n), DType::u64); };
  auto low = [&](Value x) { return apply(ops::bit_and, {x, word(0xffffffff)}); };
  auto high = [&](Value x) { return apply(ops::shift_right, {x, word(32)}); };
  Dim i = Positions::linear(places_[at].position, v.shape().dims);
  Value block = convert(size(positions_.quotient(i, 4)), DType::u64);
  Value key = element_at(v.operand(0), place({}, guard));
  Value counter = element_at(v.operand(1), place({}, guard));
  std::vector<Value> c = {low(block), high(block), low(counter), high(counter)};
  Value key0 = low(key), key1 = high(key);
  for (int round = 0; round < 10; ++round) {
    Value p = apply(ops::mul, {c[0], word(0xD2511F53)}),
          q = apply(ops::mul, {c[2], word(0xCD9E8D57)});
    auto mixed = [&](Value a, Value b, Value k) {
      return apply(ops::bit_xor, {apply(ops::bit_xor, {high(a), b}), k});
    };
    c = {mixed(q, c[1], key0), low(q), mixed(p, c[3], key1), low(p)};
    key0 = low(apply(ops::add, {key0, word(0x9E3779B9)}));
    key1 = low(apply(ops::add, {key1, word(0xBB67AE85)}));
  }
  Value chosen = of_list(4, positions_.remainder(i, 4), [&](std::size_t k) { return c[k]; });
  return convert(chosen, DType::u32);
}

}  // namespace hone
