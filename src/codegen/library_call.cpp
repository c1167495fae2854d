#include "codegen/library_call.h"

#include "kernel/nest/lower.h"
#include "kernel/nest/nest_candidate.h"
#include "ops/common.h"

namespace hone {

namespace {

using Operand = Candidate::Operand;

// The parameter that v repeats, if its elements vary only along the last axis of `shape`.
std::optional<std::size_t> bias_of(Value v, const Shape& shape) {
  while (v.is(ops::broadcast) || v.is(ops::reshape)) {
    // Only axes of size 1 may be added or repeated before the channels.
    const bool repeats = v.is(ops::broadcast);
    v = v.operand(0);
    if (v.shape().count() != shape[-1]) return std::nullopt;
    if (repeats && v.rank() > 0 && v.shape()[-1] != shape[-1]) return std::nullopt;
  }
  return v.shape().count() == shape[-1] ? param_of(v) : std::nullopt;
}

struct Users {
  std::vector<Value> of;   // the only user of a node, or an empty Value
  std::vector<int> count;  // results count as users
};

Users users_of(const Function& f) {
  Users u{std::vector<Value>(f.graph().node_count()), std::vector<int>(f.graph().node_count(), 0)};
  for (NodeId n : live_nodes(f))
    for (const Value& v : f.graph().operands(n)) {
      ++u.count[v.node()];
      u.of[v.node()] = Value(&f.graph(), n);
    }
  for (const Function::Result& r : f.results()) u.count[r.value.node()] += 2;
  return u;
}

bool is_zero(Value v) { return uniform_number(v) == 0.0; }

// Adds a bias and an activation that directly follow the anchor to the call.
void take_epilogue(LibraryCall& call, const Users& users, const LibraryAbilities& library) {
  auto only_user = [&](Value v) {
    return users.count[v.node()] == 1 ? users.of[v.node()] : Value();
  };
  Value next = only_user(call.last);
  if (next && next.is(ops::add)) {
    Value other = next.operand(0) == call.last ? next.operand(1) : next.operand(0);
    if (auto bias = other == call.last ? std::nullopt : bias_of(other, call.last.shape())) {
      call.operands.push_back(*bias);
      call.settings.push_back({"bias", 1});
      call.last = next;
      next = only_user(call.last);
    }
  }
  if (library.has_residual && call.last == call.anchor) return;
  if (next && library.has_residual && next.is(ops::add)) {
    const Value other = next.operand(0) == call.last ? next.operand(1) : next.operand(0);
    if (auto residual = param_of(other); residual && other.type() == call.last.type()) {
      call.operands.push_back(*residual);
      call.settings.push_back({"residual", 1});
      call.last = next;
      next = only_user(call.last);
    }
  }
  if (!next) return;
  const bool is_relu =
      next.is(ops::relu) ||
      (next.is(ops::maximum) && (is_zero(next.operand(0)) || is_zero(next.operand(1))));
  const bool is_gelu =
      next.is(ops::gelu_tanh) && library.has_gelu_tanh && library.has_gelu_tanh(next.dtype());
  if (!is_relu && !is_gelu) return;
  call.settings.push_back({is_relu ? "relu" : "gelu", 1});
  call.last = next;
}

// Libraries describe a tensor as rows within matrices within batches, with optional padding after
// each. The rows of a slice with steps can overlap: columns 0 and 2 of [2,3] have strides 3 and 2,
// which no library accepts. Sizes that are not fixed count as 64, or the nearest possible value.
bool lies_in_rows(const Shape& shape, const Dims& strides) {
  const auto number = [](const Dim& d) {
    const Dim at =
        d.substitute([](const Dim& s) { return std::clamp<std::int64_t>(64, s.low(), s.high()); });
    return at.number();
  };
  const auto is_within = [&](int inner, int outer) {
    return number(strides[inner] * shape[inner] - strides[outer]) <= 0;
  };
  for (int i = 0; i < shape.rank(); ++i)
    for (int j = 0; j < i; ++j)
      if (number(shape[i]) > 1 && number(shape[j]) > 1 && !is_within(i, j) && !is_within(j, i))
        return false;
  return true;
}

void add_list(LibraryCall& call, const std::string& name, const Dims& list) {
  for (std::size_t i = 0; i < list.size(); ++i)
    call.settings.push_back({cat(name, i), list[i].number()});
}

// The group with the call's result as an additional parameter.
GroupSpec rest_of(const GroupSpec& spec, Value computed) {
  GroupSpec rest = spec;
  Function f;
  for (const Function::Param& p : spec.function.params()) f.add_param(p.value.type(), p.name);
  Value given = f.add_param(computed.type(), "computed");
  Values params;
  for (std::size_t i = 0; i < spec.function.params().size(); ++i) params.push_back(f.param(i));
  Copier copy(spec.function, params, f);
  copy.set(computed.node(), {given});
  for (NodeId n : live_nodes(spec.function))
    if (!copy.has(n)) copy.copy(n);
  for (const Function::Result& r : spec.function.results()) f.add_result(copy(r.value), r.name);
  rest.function = f;
  rest.param_strides.push_back(dense_strides(computed.shape()));
  rest.param_is_weight.push_back(false);
  return rest;
}

void append_rest(Candidate& out, const GroupSpec& spec, Value computed, const TargetInfo& info) {
  const int given = static_cast<int>(spec.function.params().size());
  out.temporaries.push_back({computed.type(), false});
  Candidate rest = nest_candidate(rest_of(spec, computed), info);
  for (Candidate::Step& step : rest.steps) {
    for (Operand& o : step.operands) {
      if (o.kind == Operand::Kind::temporary) o.index += 1;
      if (o.kind == Operand::Kind::param && o.index == given) o = {Operand::Kind::temporary, 0};
    }
    out.steps.push_back(std::move(step));
  }
  for (Candidate::Temporary& t : rest.temporaries) out.temporaries.push_back(std::move(t));
}

}  // namespace

std::optional<LibraryCall> matmul_call(Value v, std::string name) {
  const Axes contract = axes_of(v.attrs(), "contract"), batch = axes_of(v.attrs(), "batch");
  const int ra = v.operand(0).rank(), rb = v.operand(1).rank();
  const int b = static_cast<int>(batch.size() / 2);
  if (contract.size() != 2 || b > 1 || ra != b + 2 || rb != b + 2) return std::nullopt;
  if (b == 1 && (batch[0] != 0 || batch[1] != 0)) return std::nullopt;
  // The library does not support empty sums.
  if (v.operand(0).shape()[contract[0]].low() < 1) return std::nullopt;
  // The call's settings say whether an operand's matrix is transposed.
  LibraryCall call{std::move(name), v, v, {}, {}};
  call.settings.push_back({"transpose_a", contract[0] == b});
  call.settings.push_back({"transpose_b", contract[1] == b + 1});
  return call;
}

std::optional<LibraryCall> convolution_call(Value v, std::string name) {
  const Attrs& a = v.attrs();
  if (!a.integer("channels_last")) return std::nullopt;
  for (AttrName list :
       {AttrName("strides"), AttrName("dilations"), AttrName("pads_low"), AttrName("pads_high")})
    for (const Dim& d : a.dims(list))
      if (!d.is_number()) return std::nullopt;
  LibraryCall call{
      std::move(name), v, v, {}, {{"channels_last", 1}, {"groups", a.integer("groups")}}};
  add_list(call, "strides", a.dims("strides"));
  add_list(call, "dilations", a.dims("dilations"));
  add_list(call, "pads_low", a.dims("pads_low"));
  add_list(call, "pads_high", a.dims("pads_high"));
  return call;
}

std::optional<std::size_t> param_of(Value v) {
  if (!v.is(ops::param)) return std::nullopt;
  return static_cast<std::size_t>(v.attrs().integer("index"));
}

std::optional<LibraryCall> find_library_call(const GroupSpec& spec,
                                             const LibraryAbilities& library) {
  const Function& f = spec.function;
  std::optional<LibraryCall> found;
  for (NodeId n : live_nodes(f)) {
    Value v(&f.graph(), n);
    if (v.op().kind != OpKind::contraction) continue;
    if (found || !library.takes(v.dtype())) return std::nullopt;
    for (const Value& operand : v.operands())
      if (operand.dtype() != v.dtype() || !param_of(operand)) return std::nullopt;
    found = library.call_of(v);
    if (!found) return std::nullopt;
    found->operands = {*param_of(v.operand(0)), *param_of(v.operand(1))};
  }
  if (!found) return std::nullopt;
  for (std::size_t p : found->operands)
    if (!lies_in_rows(f.param(p).shape(), spec.param_strides[p])) return std::nullopt;
  take_epilogue(*found, users_of(f), library);
  return found;
}

Candidate library_candidate(const GroupSpec& spec, const LibraryCall& call, std::string name,
                            const TargetInfo& info) {
  Candidate out;
  out.name = std::move(name);
  Candidate::Step step;
  step.what = call.name;
  for (std::size_t p : call.operands)
    step.operands.push_back({Operand::Kind::param, static_cast<int>(p)});
  step.settings = call.settings;
  const bool whole = spec.function.results().size() == 1 && spec.function.result(0) == call.last;
  step.operands.push_back({whole ? Operand::Kind::result : Operand::Kind::temporary, 0});
  out.steps.push_back(std::move(step));
  if (!whole) append_rest(out, spec, call.last, info);
  return out;
}

}  // namespace hone
