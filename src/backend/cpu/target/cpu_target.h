// The CPU as a target: kernels through LLVM, library candidates through oneDNN. Does not run
// anything.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "codegen/target.h"

namespace hone::cpu {

inline constexpr std::string_view target_names[] = {"native", "x86-64-v3", "x86-64-v4"};
inline constexpr std::string_view library_names[] = {"onednn"};

std::unique_ptr<Target> make_target(std::string_view isa);

// For groups anchored by an f32 matrix product or convolution: the library computes the anchor and
// what it can fuse; generated kernels compute the rest.
std::vector<Candidate> onednn_candidates(const GroupSpec&, const TargetInfo&);

}  // namespace hone::cpu
