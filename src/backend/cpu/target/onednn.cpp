// oneDNN library candidates: channels-last convolutions and matrix products in f32.
#include <optional>

#include "backend/cpu/target/cpu_target.h"
#include "codegen/library_call.h"
#include "kernel/nest/lower.h"
#include "ops/common.h"

namespace hone::cpu {

namespace {

std::optional<LibraryCall> call_of(Value v) {
  return v.is(ops::conv)  ? convolution_call(v, "onednn.conv")
         : v.is(ops::dot) ? matmul_call(v, "onednn.matmul")
                          : std::nullopt;
}

constexpr LibraryAbilities abilities = {
    .takes = [](DType t) { return t == DType::f32; },
    .call_of = call_of,
};

}  // namespace

std::vector<Candidate> onednn_candidates(const GroupSpec& given, const TargetInfo& info) {
  GroupSpec spec = given;
  spec.function = expand_for_kernels(given.function);
  const std::optional<LibraryCall> call = find_library_call(spec, abilities);
  if (!call) return {};
  return {library_candidate(spec, *call, "onednn", info)};
}

}  // namespace hone::cpu
