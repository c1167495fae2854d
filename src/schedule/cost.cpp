#include "schedule/cost.h"

#include <algorithm>
#include <vector>

#include "base/few.h"
#include "base/text.h"
#include "ops/common.h"
#include "schedule/updates.h"

namespace hone {

namespace {

Dim bytes_of(Value v) { return v.type().is_tensor() ? byte_count(v.type()) : Dim(0); }

Dim dot_flops(Value v) {
  Dim contracted = 1;
  const Dims& pairs = v.attrs().dims("contract");
  for (std::size_t i = 0; i < pairs.size(); i += 2)
    contracted = contracted * v.operand(0).shape()[static_cast<int>(pairs[i].number())];
  return Dim(2) * v.shape().count() * contracted;
}

// Weights are [out, in / groups, taps...], or [taps..., in / groups, out] channels-last.
Dim conv_flops(Value v) {
  bool last = v.attrs().integer_or("channels_last", 0) != 0;
  const Shape& w = v.operand(1).shape();
  Dim taps_and_inputs = 1;
  for (int i = 0; i < w.rank(); ++i)
    if (i != (last ? w.rank() - 1 : 0)) taps_and_inputs = taps_and_inputs * w[i];
  return Dim(2) * v.shape().count() * taps_and_inputs;
}

// Both contractions; counts all keys, even those that queries do not see.
Dim attention_flops(Value v) {
  const Shape &q = v.operand(0).shape(), &k = v.operand(1).shape();
  Dim rows = 1;
  for (int i = 0; i + 1 < q.rank(); ++i) rows = rows * q[i];
  return Dim(2) * rows * k[-2] * (q[-1] + v.shape()[-1]);
}

Dim window_flops(Value v) { return v.shape().count() * product(v.attrs().dims("window")); }

Dim node_flops(Value v) {
  const Op& op = v.op();
  if (&op == &ops::dot) return dot_flops(v);
  if (&op == &ops::conv) return conv_flops(v);
  if (&op == &ops::attention) return attention_flops(v);
  if (op.kind == OpKind::leaf || op.kind == OpKind::movement || !v.type().is_tensor()) return 0;
  if (v.attrs().has("window")) return window_flops(v);
  if (v.operand_count() > 0 && op.kind == OpKind::reduction) return v.operand(0).shape().count();
  return v.shape().count();
}

bool is_quiet(const Op& op) {
  return op.kind == OpKind::leaf || &op == &ops::broadcast || &op == &ops::reshape ||
         &op == &ops::cast || &op == &ops::transpose;
}

}  // namespace

namespace {

// For a parameter read at data-dependent positions, at most the bytes taken from it.
Dim bytes_read(const Function& f, Value param) {
  Dim taken = 0;
  for (NodeId n : live_nodes(f)) {
    const std::span<const Value> operands = f.graph().operands(n);
    const Op& op = f.graph().op(n);
    const bool takes = &op == &ops::dynamic_slice || &op == &ops::gather;
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (operands[i] == param) {
        if (!takes || i > 0) return bytes_of(param);
        taken = taken + bytes_of({&f.graph(), n});
      }
  }
  for (const Function::Result& r : f.results())
    if (r.value == param) return bytes_of(param);
  return min(taken, bytes_of(param));
}

}  // namespace

Dim ideal_bytes(const GroupSpec& group) {
  const Function& f = group.function;
  Dim total = 0;
  for (const Function::Param& p : f.params()) total = total + bytes_read(f, p.value);
  for (const Function::Result& r : f.results()) total = total + bytes_of(r.value);
  for (auto [result, param] : group.updates) {
    const Value changed = f.result(static_cast<std::size_t>(result));
    const Value whole = f.param(static_cast<std::size_t>(param));
    total = total - bytes_of(changed) - bytes_read(f, whole) + bytes_of(changed_part(changed));
  }
  return total;
}

Dim ideal_flops(const Function& group) {
  Dim total = 0;
  for (NodeId n : live_nodes(group)) total = total + node_flops({&group.graph(), n});
  return total;
}

std::string group_name(const Function& group) {
  constexpr std::size_t most = 4;
  std::vector<std::string_view> names, quiet;
  for (NodeId n : live_nodes(group)) {
    const Op& op = group.graph().op(n);
    if (op.kind == OpKind::leaf) continue;
    std::vector<std::string_view>& list = is_quiet(op) ? quiet : names;
    if (std::find(list.begin(), list.end(), op.name) == list.end()) list.push_back(op.name);
  }
  if (names.empty()) names = quiet;
  if (names.empty()) return "fill";
  std::string out(names[0]);
  for (std::size_t i = 1; i < std::min(names.size(), most); ++i) out += cat("+", names[i]);
  return names.size() > most ? out + "+..." : out;
}

namespace {

// In the format of operator<<.
void add_origin(const Origin& o, std::string& out) {
  if (!o.kind.empty()) out += "node ";
  if (o.kind.empty()) (out += o.name) += ':';
  append(out, o.index);
  if (!o.kind.empty()) ((((out += " '") += o.name) += "' (") += o.kind) += ')';
}

}  // namespace

std::string group_origins(const Function& f, std::span<const NodeId> members) {
  constexpr std::size_t most = 8;
  Few<const Origin*, most> all;
  for (NodeId n : members)
    for (const Origin& o : f.graph().origins(n))
      if (std::none_of(all.begin(), all.end(), [&](const Origin* p) { return *p == o; }))
        all.push_back(&o);
  constexpr std::size_t most_around = 32;  // for the text around a name and an operator
  std::string out;
  std::size_t length = 0;
  for (const Origin* o : all) length += o->name.size() + o->kind.size() + most_around;
  if (all.size() <= most) out.reserve(length);
  for (std::size_t i = 0; i < std::min(all.size(), most); ++i) {
    if (i) out += ", ";
    add_origin(*all[i], out);
  }
  if (all.size() > most) out += cat(", and ", all.size() - most, " more");
  return out;
}

}  // namespace hone
