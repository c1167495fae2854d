// Library candidates of oneDNN: convolutions of channels last, products of matrices, in f32.
#include <optional>

#include "backend/cpu/target/cpu_target.h"
#include "codegen/library_call.h"
#include "kernel/lower.h"
#include "ops/common.h"

namespace hone::cpu {

namespace {

void add_list(LibraryCall& call, const std::string& name, const Dims& list) {
  for (std::size_t i = 0; i < list.size(); ++i)
    call.settings.push_back({cat(name, i), list[i].number()});
}

std::optional<LibraryCall> convolution(Value v) {
  const Attrs& a = v.attrs();
  if (!a.integer("channels_last")) return std::nullopt;
  for (AttrName name :
       {AttrName("strides"), AttrName("dilations"), AttrName("pads_low"), AttrName("pads_high")})
    for (const Dim& d : a.dims(name))
      if (!d.is_number()) return std::nullopt;
  LibraryCall call{
      "onednn.conv", v, v, {}, {{"channels_last", 1}, {"groups", a.integer("groups")}}};
  add_list(call, "strides", a.dims("strides"));
  add_list(call, "dilations", a.dims("dilations"));
  add_list(call, "pads_low", a.dims("pads_low"));
  add_list(call, "pads_high", a.dims("pads_high"));
  return call;
}

std::optional<LibraryCall> call_of(Value v) {
  return v.is(ops::conv)  ? convolution(v)
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
  const std::optional<LibraryCall> call = find_library_call(spec.function, abilities);
  if (!call) return {};
  return {library_candidate(spec, *call, "onednn", info)};
}

}  // namespace hone::cpu
