#include "kernel/groups/tensor.h"

#include <algorithm>
#include <array>

#include "kernel/groups/tensor_writer.h"
#include "kernel/nest/blocking.h"
#include "kernel/nest/loops.h"
#include "kernel/problem/group_problem.h"
#include "kernel/walk.h"
#include "ops/common.h"
#include "ops/ops.h"

namespace hone {

namespace {

constexpr std::int64_t vector_width = TensorTiling::vector_width;

// ---- operands

// True if everything it reads is contiguous along the lane, in aligned vectors, and the conditions
// of reads do not depend on the lane.
bool reads_vectors(const TensorSide& s) {
  bool any = false;
  for (NodeId n : nodes_below(std::span(&s.element, 1))) {
    const Value load(&s.element.graph(), n);
    if (!load.is(ops::load)) continue;
    const Dim offset = load.attrs().dims("offset").at(0);
    const std::optional<Dim> stride = stride_of(offset, s.lane);
    if (stride == Dim(0)) continue;
    const Replacement none[] = {{s.lane, 0}};
    if (!(stride == Dim(1)) || !(mod(replace(offset, none), vector_width) == Dim(0))) return false;
    if (load.operand_count() > 0 && dependences(load.operand(0)).loops.contains(*loop_of(s.lane)))
      return false;
    any = true;
  }
  return any;
}

Dim whole_vectors(const Dim& d) { return ceil_div(d, vector_width) * Dim(vector_width); }

// The type of weights repacked once because they cannot be read in vectors, as rows of depth padded
// to whole vectors. These are weights of a convolution that are contiguous along neither depth nor
// columns, and matrices whose rows are not whole vectors.
std::optional<Type> packed_type(const GroupSpec& spec, const AnchoredGroup& group,
                                const GroupProblem& p) {
  const bool is_plain = p.b.is(ops::param) && group.is_weight(p.b) && p.batch == Dim(1) &&
                        p.k.is_number() && p.n.is_number();
  if (!is_plain) return std::nullopt;
  const Dims& strides = spec.param_strides[static_cast<std::size_t>(p.b.attrs().integer("index"))];
  const Type out(p.b.dtype(), {p.k, whole_vectors(p.n)});
  if (group.anchor().is(ops::dot)) {
    const bool are_rows_of_depth =
        p.b.rank() == 2 && p.b.shape()[0] == p.k && p.b.shape()[1] == p.n &&
        group.anchor().attrs().dims("contract") == Dims{group.anchor().operand(0).rank() - 1, 0};
    return are_rows_of_depth && strides[1] == Dim(1) && p.n.number() > vector_width &&
                   !(mod(strides[0], vector_width) == Dim(0))
               ? std::optional(out)
               : std::nullopt;
  }
  if (group.anchor().attrs().integer_or("channels_last", 0) == 0) return std::nullopt;
  if (strides.back() == Dim(1) || strides[strides.size() - 2] == Dim(1)) return std::nullopt;
  return mod(p.n, vector_width) == Dim(0) ? std::optional(out) : std::nullopt;
}

// Writes the packed weights to temporary 0.
std::optional<Candidate::Step> packing_step(const GroupSpec& spec, const GroupProblem& p,
                                            const NestMaker& make_nest) {
  using Kind = Candidate::Operand::Kind;
  const auto param = static_cast<std::size_t>(p.b.attrs().integer("index"));
  GroupSpec packing;
  const Value w = packing.function.add_param(p.b.type(), "w");
  const Dim wide = whole_vectors(p.n);
  Value packed = reshape_to(w, {p.k, p.n});
  if (!(wide == p.n))
    packed =
        pad_with(packed, scalar(packing.function.graph(), 0, w.dtype()), {0, 0}, {0, wide - p.n});
  packing.function.add_result(packed, "packed");
  packing.param_strides = {spec.param_strides[param]};
  packing.result_strides = {dense_strides(packed.shape())};
  packing.param_is_weight = {true};
  Candidate nest = make_nest(packing);
  if (nest.steps.size() != 1 || !nest.temporaries.empty()) return std::nullopt;
  Candidate::Step out = std::move(nest.steps[0]);
  out.prepare = true;
  for (Candidate::Operand& o : out.operands)
    o = o.kind == Kind::param ? Candidate::Operand{Kind::param, static_cast<int>(param)}
                              : Candidate::Operand{Kind::temporary, 0};
  return out;
}

class TensorOperands {
 public:
  TensorOperands(AnchoredGroup& group, const GroupProblem& p, const std::optional<Type>& packed)
      : group_(group), p_(p), packed_(packed), positions_(group.lowering().positions()) {}

  // Without the stores, which depend on the epilogue or the parts of the depth.
  std::optional<TensorParts> find() {
    TensorParts parts;
    parts.b = positions_.add_loop(p_.batch);
    parts.m = positions_.add_loop(p_.m), parts.n = positions_.add_loop(p_.n);
    const std::optional<TensorSide> left = side(parts.b, p_.a, p_.a_at, p_.m),
                                    right = packed_ ? rows_of_depth()
                                                    : side(parts.b, p_.b, p_.b_at, p_.n);
    if (!left || !right) return std::nullopt;
    parts.left = *left, parts.right = *right;
    return parts;
  }

  Dims anchor_position(const TensorParts& parts) const {
    return p_.c_at(at(parts.b), at(parts.m), at(parts.n));
  }

 private:
  // The only position of an axis of size 1 is 0, also where it comes from a reshape.
  Dim at(const Dim& var) const { return positions_.extent(var) == Dim(1) ? Dim(0) : var; }

  TensorSide rows_of_depth() {
    TensorSide s{.along_depth = false, .width = vector_width};
    const Dim wide = packed_->shape[1];
    s.free = positions_.add_loop(floor_div(wide, vector_width));
    s.depth = positions_.add_loop(p_.k), s.lane = positions_.add_loop(vector_width);
    s.element = group_.lowering().load(group_.set_temporary(0, *packed_), p_.b.dtype(),
                                       s.depth * wide + s.free * Dim(vector_width) + s.lane);
    return s;
  }

  std::optional<TensorSide> side(const Dim& b, Value v, const GroupProblem::Where& where,
                                 const Dim& extent) {
    for (const bool along_depth : {true, false}) {
      const Dim& along = along_depth ? p_.k : extent;
      if (!(mod(along, vector_width) == Dim(0))) continue;
      TensorSide s{.along_depth = along_depth, .width = vector_width};
      s.free = positions_.add_loop(along_depth ? extent : floor_div(extent, vector_width));
      s.depth = positions_.add_loop(along_depth ? floor_div(p_.k, vector_width) : p_.k);
      s.lane = positions_.add_loop(vector_width);
      const Dim free = along_depth ? at(s.free) : at(s.free) * Dim(vector_width) + s.lane,
                depth = along_depth ? at(s.depth) * Dim(vector_width) + s.lane : at(s.depth);
      if (!element(s, b, v, where, free, depth)) return std::nullopt;
      if (reads_vectors(s)) return s;
    }
    TensorSide s;
    s.free = positions_.add_loop(extent), s.depth = positions_.add_loop(p_.k);
    if (!element(s, b, v, where, at(s.free), at(s.depth))) return std::nullopt;
    s.along_depth = !(stride_of_loads(s.element, s.free) == 1);
    return s;
  }

  bool element(TensorSide& s, const Dim& b, Value v, const GroupProblem::Where& where,
               const Dim& free, const Dim& depth) {
    const auto splice =
        group_.element(v, where(at(b), free, depth), std::array{b, s.free, s.depth}, DType::f32);
    if (!splice) return false;
    s.element = without_zeros(splice->value);
    if (s.element.dtype() != p_.a.dtype())
      s.element = group_.lowering().convert(s.element, p_.a.dtype());
    return true;
  }

  // A load already gives 0 if its condition is false, so a `select` with 0 around it is dropped.
  Value without_zeros(Value v) const {
    if (!v.is(ops::select)) return v;
    const Value load = v.operand(1);
    const bool is_same = load.is(ops::load) && load.operand_count() == 1 &&
                         load.operand(0) == v.operand(0) &&
                         v.operand(2) == group_.lowering().number(0, v.dtype());
    return is_same ? load : v;
  }

  static std::optional<std::int64_t> stride_of_loads(Value v, const Dim& var) {
    for (NodeId n : nodes_below(std::span(&v, 1))) {
      const Value load(&v.graph(), n);
      if (!load.is(ops::load)) continue;
      if (auto stride = stride_along(load, var); stride && *stride != 0) return stride;
    }
    return std::nullopt;
  }

  AnchoredGroup& group_;
  const GroupProblem& p_;
  const std::optional<Type>& packed_;
  Positions& positions_;
};

bool is_half_float(DType t) { return t == DType::f16 || t == DType::bf16; }

std::optional<FoundGroupContraction> find_tensor(const GroupSpec& spec, const TargetInfo& target) {
  if (!target.multiplies_halves) return std::nullopt;
  std::optional<FoundGroupContraction> found = find_group_contraction(spec, target);
  if (!found || found->accumulate != DType::f32) return std::nullopt;
  const Value anchor = found->group.anchor();
  for (std::size_t i = 0; i < 2; ++i)
    if (!is_half_float(anchor.operand(i).dtype()) || anchor.operand(i).dtype() != anchor.dtype() ||
        (target.has_opaque_tiles && anchor.dtype() != DType::f16))
      return std::nullopt;
  return found;
}

// False if too little of a tile would be used in both directions.
bool is_worth_it(const GroupProblem& p) {
  constexpr double least = 8;
  return std::max(typical(p.m), typical(p.n)) >= least && typical(p.k) >= least;
}

// The group and the layout of its operands; builds its kernels.
class TensorBuilder {
 public:
  static std::optional<TensorBuilder> find(const GroupSpec& spec, const TargetInfo& target) {
    std::optional<FoundGroupContraction> found = find_tensor(spec, target);
    if (!found || !is_worth_it(problem_of(found->group))) return std::nullopt;
    return TensorBuilder(spec, target, std::move(*found));
  }

  // Best first. Empty if its operands are not expressions.
  std::vector<TensorTiling> tilings(std::size_t most) {
    const GroupProblem p = problem_of(found_.group);
    const std::optional<Type> packed = packed_type(spec_, found_.group, p);
    set_inputs(p, packed, packed ? 1 : 0);
    const auto parts = TensorOperands(found_.group, p, packed).find();
    if (!parts) return {};
    const DType t = p.a.dtype();
    return tensor_tilings(p, target_,
                          parts->left.is_copied(t) && parts->right.is_copied(t)
                              ? TensorOperandsLie::in_vectors
                              : TensorOperandsLie::otherwise,
                          most);
  }

  // Nullopt if the group does not allow it.
  std::optional<Candidate> build(const TensorTiling& t, const NestMaker& make_nest) {
    AnchoredGroup& group = found_.group;
    const GroupProblem p = problem_of(group);
    if ((t.parts > 1 && !p.k.is_number()) || !t.divides_steps(p)) return std::nullopt;
    const std::optional<Type> packed = packed_type(spec_, group, p);
    const std::size_t first = packed ? 1 : 0;
    if (t.parts > 1)
      set_inputs(p, packed, first + 1);
    else if (packed)
      group.set_operands(std::array{p.a}, 1);
    else
      group.set_operands(std::array{p.a, p.b}, 0);
    TensorOperands operands(group, p, packed);
    auto parts = operands.find();
    if (!parts) return std::nullopt;
    if (t.stages > 2 &&
        !(parts->left.is_copied(p.a.dtype()) && parts->right.is_copied(p.a.dtype())))
      return std::nullopt;
    Candidate out;
    out.name = "tensor";
    if (packed) {
      std::optional<Candidate::Step> packing = packing_step(spec_, p, make_nest);
      if (!packing) return std::nullopt;
      out.temporaries.push_back({*packed, true});
      out.steps.push_back(std::move(*packing));
    }
    const Dims position = operands.anchor_position(*parts);
    if (t.parts > 1) {
      store_part(*parts, position, t.parts, first);
      out.temporaries.push_back({type_of_parts(t.parts), false});
    } else {
      const auto epilogue = group.epilogue(position, std::array{parts->b, parts->m, parts->n});
      if (!epilogue) return std::nullopt;
      parts->stores = epilogue->stores, parts->element = epilogue->element;
      if (t.depths > 1 && !target_.has_opaque_tiles && !stores_vectors(p, *parts))
        return std::nullopt;
    }
    Kernel kernel = group.kernel();
    if (t.parts > 1) kernel.params.back().written = true;
    write_tensor_kernel(kernel, group, p, t, *parts, target_.has_opaque_tiles);
    out.steps.push_back({std::move(kernel), group.operands(), {}, false});
    if (t.parts > 1) add_parts(t.parts, first, make_nest, out);
    return out;
  }

 private:
  TensorBuilder(const GroupSpec& spec, const TargetInfo& target, FoundGroupContraction found)
      : spec_(spec), target_(target), found_(std::move(found)) {}

  void set_inputs(const GroupProblem& p, const std::optional<Type>& packed,
                  std::size_t temporaries) {
    if (packed)
      found_.group.set_inputs(std::array{p.a}, temporaries);
    else
      found_.group.set_inputs(std::array{p.a, p.b}, temporaries);
  }

  Type type_of_parts(std::int64_t parts) const {
    Dims dims = found_.group.anchor().shape().dims;
    dims.insert(dims.begin(), parts);
    return Type(DType::f32, Shape(dims));
  }

  void store_part(TensorParts& parts, Dims position, std::int64_t count, std::size_t temporary) {
    Lowering& lowering = found_.group.lowering();
    const Type type = type_of_parts(count);
    parts.part = lowering.positions().add_loop(count);
    parts.element = lowering.reg(lowering.positions().new_register(), DType::f32);
    position.insert(position.begin(), *parts.part);
    Stmt store{.kind = Stmt::Kind::store};
    store.param = found_.group.set_temporary(temporary, type);
    store.offset = Positions::linear(position, type.shape.dims);
    store.value = parts.element;
    parts.stores = {std::move(store)};
  }

  // The steps that add up the parts, and everything after the anchor in the group.
  void add_parts(std::int64_t count, std::size_t temporary, const NestMaker& make_nest,
                 Candidate& out) const {
    const DType dtype = found_.group.anchor().dtype();
    const Left left[] = {{type_of_parts(count), static_cast<int>(temporary)}};
    add_rest(
        out, spec_, found_.group, left,
        [&](std::span<const Value> parts) {
          return cast_to(reduce_axes(ops::reduce_sum, parts[0], {0}), dtype);
        },
        make_nest);
  }

  const GroupSpec& spec_;
  const TargetInfo& target_;
  FoundGroupContraction found_;
};

}  // namespace

namespace {

// A convolution of few channels whose image and weights are first padded to whole vectors of
// channels: the group that computes it, with these two as its last parameters.
struct PaddedChannels {
  GroupSpec spec;
  int image = 0, weights = 0;  // parameters of the group
};

// Rounds up the channel axis, which `behind` axes follow, to whole vectors.
Type padded_channels(const Type& t, int behind) {
  Dims dims = t.shape.dims;
  Dim& channels = dims[dims.size() - 1 - static_cast<std::size_t>(behind)];
  channels = ceil_div(channels, vector_width) * Dim(vector_width);
  return Type(t.dtype, Shape(dims));
}

std::optional<PaddedChannels> pad_channels(const GroupSpec& spec, const TargetInfo& target) {
  const std::optional<FoundGroupContraction> found = find_tensor(spec, target);
  if (!found || !found->group.anchor().is(ops::conv)) return std::nullopt;
  const Value anchor = found->group.anchor();
  const Value x = anchor.operand(0), w = anchor.operand(1);
  if (anchor.attrs().integer_or("channels_last", 0) == 0 || anchor.attrs().integer("groups") != 1 ||
      mod(x.shape()[-1], vector_width) == Dim(0) || !x.is(ops::param) || !w.is(ops::param) ||
      !found->group.is_weight(w))
    return std::nullopt;
  PaddedChannels out;
  out.image = static_cast<int>(x.attrs().integer("index"));
  out.weights = static_cast<int>(w.attrs().integer("index"));
  const Type image = padded_channels(x.type(), 0), weights = padded_channels(w.type(), 1);
  out.spec = spec;
  out.spec.function = transform(
      found->group.function(), [&](NodeId n, Copier&, Function& to) -> std::vector<Value> {
        if (n != anchor.node()) return {};
        const Value wide = to.add_param(image, "image"), kernel = to.add_param(weights, "weights");
        return {to.graph().intern(anchor.op(), Values{wide, kernel}, anchor.attrs())};
      });
  for (const Type* t : {&image, &weights})
    out.spec.param_strides.push_back(dense_strides(t->shape));
  out.spec.param_is_weight.push_back(false);
  out.spec.param_is_weight.push_back(true);
  return out;
}

// The step that pads a parameter into the given temporary.
std::optional<Candidate::Step> padding_step(const GroupSpec& spec, int param, int behind,
                                            int temporary, const NestMaker& make_nest) {
  using Kind = Candidate::Operand::Kind;
  GroupSpec padding;
  const Type& from = spec.function.param(static_cast<std::size_t>(param)).type();
  const Value v = padding.function.add_param(from, "x");
  const Type to = padded_channels(from, behind);
  const Dims none(from.shape.dims.size(), 0);
  Dims high = none;
  for (std::size_t i = 0; i < high.size(); ++i) high[i] = to.shape.dims[i] - from.shape.dims[i];
  padding.function.add_result(
      pad_with(v, scalar(padding.function.graph(), 0, from.dtype), none, high), "padded");
  padding.param_strides = {spec.param_strides[static_cast<std::size_t>(param)]};
  padding.result_strides = {dense_strides(to.shape)};
  padding.param_is_weight = {spec.param_is_weight[static_cast<std::size_t>(param)]};
  Candidate nest = make_nest(padding);
  if (nest.steps.size() != 1 || !nest.temporaries.empty()) return std::nullopt;
  Candidate::Step out = std::move(nest.steps[0]);
  for (Candidate::Operand& o : out.operands)
    o = o.kind == Kind::param ? Candidate::Operand{Kind::param, param}
                              : Candidate::Operand{Kind::temporary, temporary};
  return out;
}

// The candidate of the padded group, after the steps that pad.
std::optional<Candidate> with_padding(const GroupSpec& spec, const PaddedChannels& p,
                                      Candidate inner, const NestMaker& make_nest) {
  using Kind = Candidate::Operand::Kind;
  const auto count = static_cast<int>(spec.param_strides.size()),
             image = static_cast<int>(inner.temporaries.size());
  std::optional<Candidate::Step> pad_image = padding_step(spec, p.image, 0, image, make_nest);
  std::optional<Candidate::Step> pad_weights =
      padding_step(spec, p.weights, 1, image + 1, make_nest);
  if (!pad_image || !pad_weights) return std::nullopt;
  pad_weights->prepare = true;
  for (Candidate::Step& s : inner.steps)
    for (Candidate::Operand& o : s.operands)
      if (o.kind == Kind::param && o.index >= count) o = {Kind::temporary, image + o.index - count};
  inner.temporaries.push_back({p.spec.function.param(spec.param_strides.size()).type(), false});
  inner.temporaries.push_back({p.spec.function.param(spec.param_strides.size() + 1).type(), true});
  inner.steps.insert(inner.steps.begin(), std::move(*pad_image));
  inner.steps.insert(inner.steps.begin(), std::move(*pad_weights));
  return inner;
}

std::optional<Candidate> built(const GroupSpec& spec, const TargetInfo& target,
                               const Tuning& tuning, const NestMaker& make_nest) {
  std::optional<TensorBuilder> plan = TensorBuilder::find(spec, target);
  if (!plan) return std::nullopt;
  const std::vector<TensorTiling> best = plan->tilings(1);
  if (best.empty()) return std::nullopt;
  const TensorTiling wanted = TensorTiling::of(tuning, best[0]);
  if (wanted.fits(target) && wanted != best[0])
    if (std::optional<Candidate> out = TensorBuilder::find(spec, target)->build(wanted, make_nest))
      return out;
  if (std::optional<Candidate> out = TensorBuilder::find(spec, target)->build(best[0], make_nest))
    return out;
  // If results cannot be stored in rows, only tilings of one depth work.
  constexpr std::size_t all = 10'000;
  for (const TensorTiling& t : TensorBuilder::find(spec, target)->tilings(all))
    if (t.depths == 1) return TensorBuilder::find(spec, target)->build(t, make_nest);
  return std::nullopt;
}

}  // namespace

std::optional<Candidate> group_tensor_candidate(const GroupSpec& spec, const TargetInfo& target,
                                                const Tuning& tuning, const NestMaker& make_nest) {
  if (const std::optional<PaddedChannels> padded = pad_channels(spec, target))
    if (std::optional<Candidate> inner = built(padded->spec, target, tuning, make_nest))
      if (std::optional<Candidate> out = with_padding(spec, *padded, std::move(*inner), make_nest))
        return out;
  return built(spec, target, tuning, make_nest);
}

std::vector<Tuning> group_tensor_space(const GroupSpec& given, const TargetInfo& target) {
  constexpr std::size_t most = 12;
  const std::optional<PaddedChannels> padded = pad_channels(given, target);
  const GroupSpec& spec = padded ? padded->spec : given;
  std::optional<TensorBuilder> plan = TensorBuilder::find(spec, target);
  return plan ? named(plan->tilings(most)) : std::vector<Tuning>();
}

}  // namespace hone
