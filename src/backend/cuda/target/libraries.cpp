#include "backend/cuda/target/libraries.h"

#include <bit>

#include "codegen/library_call.h"
#include "kernel/nest/lower.h"
#include "ops/common.h"
#include "ops/expand.h"
#include "ops/ops.h"

namespace hone::cuda {

namespace {

bool is_half(DType t) { return t == DType::f16 || t == DType::bf16; }

// Its operands hold tf32 values, so tensor cores multiply them without rounding.
bool is_tf32(Value v) {
  return v.attrs().has("mode") && v.attrs().get<std::string>("mode") == "tf32";
}

std::optional<LibraryCall> with_tf32(std::optional<LibraryCall> call, Value v) {
  if (call && is_tf32(v)) call->settings.push_back({"tf32", 1});
  return call;
}

constexpr LibraryAbilities cublaslt = {
    .takes = [](DType t) { return t == DType::f32 || t == DType::f64 || is_half(t); },
    .call_of = [](Value v) -> std::optional<LibraryCall> {
      if (!v.is(ops::dot)) return std::nullopt;
      return with_tf32(matmul_call(v, "cublaslt.matmul"), v);
    },
    // With the machine's approximate tanh.
    .has_gelu_tanh = [](DType t) { return byte_size(t) == 2; },
};

// A cuDNN graph is compiled for each size, so it is only offered for known sizes.
constexpr LibraryAbilities cudnn = {
    .takes = [](DType t) { return is_half(t) || t == DType::f32; },
    .call_of = [](Value v) -> std::optional<LibraryCall> {
      const bool has_tensor_cores = is_half(v.dtype()) || is_tf32(v);
      if (!v.is(ops::conv) || v.rank() != 4 || !v.shape().is_static() || !has_tensor_cores)
        return std::nullopt;
      return with_tf32(convolution_call(v, "cudnn.conv"), v);
    },
    .has_residual = true,
};

// The call for the group's only attention, whose operands are parameters.
std::optional<LibraryCall> attention_call(const Function& f) {
  std::optional<LibraryCall> found;
  for (NodeId n : live_nodes(f)) {
    const Value v(&f.graph(), n);
    if (!v.is(ops::attention)) continue;
    if (found || !is_half(v.dtype()) || v.rank() > 4 || v.attrs().has("softcap"))
      return std::nullopt;
    found = LibraryCall{"cudnn.attention", v, v, {}, {}};
    for (const Value& operand : v.operands()) {
      const std::optional<std::size_t> param = param_of(operand);
      if (!param || !operand.shape().is_static()) return std::nullopt;
      found->operands.push_back(*param);
    }
    const auto scale = static_cast<float>(v.attrs().real("scale"));
    found->settings.push_back({"scale_bits", std::bit_cast<std::uint32_t>(scale)});
    if (v.operands().size() > 3) {
      const DType t = v.operand(3).dtype();
      if (!is_half(t) && t != DType::f32) return std::nullopt;
      found->settings.push_back({"mask", 1});
    }
    if (v.attrs().has("causal")) {
      const Dim& offset = v.attrs().dims("causal")[0];
      if (!offset.is_number()) return std::nullopt;
      found->settings.push_back({"causal", 1});
      found->settings.push_back({"causal_offset", offset.number()});
    }
  }
  return found;
}

// For the group's only attention: cuDNN rounds the unnormalised softmax weights to the dtype of the
// values before multiplying, but sums the unrounded weights.
Function with_rounded_weights(const Function& f) {
  const auto attention = [](const Graph& from, NodeId n) {
    Function inner;
    Values operands;
    for (const Value& v : from.operands(n))
      operands.push_back(inner.add_param(v.type(), cat("operand", operands.size())));
    inner.add_result(ops::attention(operands, from.attrs(n)));
    const Function steps =
        expand_composites(inner, [](const Op& op) { return &op == &ops::softmax; });
    return transform(steps, [&](NodeId at, Copier& copy, Function&) -> Values {
      if (&steps.graph().op(at) != &ops::softmax) return {};
      const Value scores = copy(steps.graph().operands(at)[0]);
      const Axes axes = {scores.rank() - 1};
      const auto each = [&](Value row) { return broadcast_back(row, axes, scores.shape()); };
      const Value powers = ops::exp(scores - each(reduce_axes(ops::reduce_max, scores, axes)));
      const Value sum = reduce_axes(ops::reduce_sum, powers, axes);
      return {cast_to(cast_to(powers, operands[2].dtype()), scores.dtype()) * each(1.0 / sum)};
    });
  };
  return transform(f, [&](NodeId n, Copier& copy, Function& to) -> Values {
    if (&f.graph().op(n) != &ops::attention) return {};
    Values arguments;
    for (const Value& v : f.graph().operands(n)) arguments.push_back(copy(v));
    return inline_call(to.graph(), attention(f.graph(), n), arguments);
  });
}

// Proposes `count` forms of the call, which differ in the setting `choice`.
void propose(std::vector<Proposal>& out, const GroupSpec& spec, LibraryCall call,
             std::string_view library, std::string_view choice, int count, const TargetInfo& info) {
  for (int i = 0; i < count; ++i) {
    if (i > 0) call.settings.push_back({std::string(choice), i});
    const std::string name = i == 0 ? std::string(library) : cat(library, "-", i);
    out.push_back({library_candidate(spec, call, name, info), std::string(library), ""});
    if (i > 0) call.settings.pop_back();
  }
}

}  // namespace

std::vector<Proposal> library_proposals(const GroupSpec& given, const TargetInfo& info) {
  std::vector<Proposal> out;
  GroupSpec spec = given;
  spec.function = expand_for_kernels(given.function, &ops::attention);
  if (const auto call = attention_call(spec.function)) {
    propose(out, spec, *call, cudnn_name, "plan", 2, info);
    for (Proposal& p : out) p.rounded = with_rounded_weights(spec.function);
    return out;
  }
  spec.function = expand_for_kernels(given.function);
  if (const auto call = find_library_call(spec, cublaslt))
    propose(out, spec, *call, cublaslt_name, "algorithm", 3, info);
  if (const auto call = find_library_call(spec, cudnn);
      call && spec.param_is_weight[call->operands[1]])
    propose(out, spec, *call, cudnn_name, "plan", 3, info);
  return out;
}

}  // namespace hone::cuda
