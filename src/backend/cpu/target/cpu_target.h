// The CPU as a target: kernels through LLVM, library candidates through oneDNN. Runs nothing.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "codegen/target.h"

namespace hone::cpu {

inline constexpr std::string_view target_names[] = {"native", "x86-64-v3", "x86-64-v4"};
inline constexpr std::string_view library_names[] = {"onednn"};

std::unique_ptr<Target> make_target(std::string_view isa);

// Groups anchored by a matrix product or a convolution in f32: the library computes the anchor
// with what it can fuse, generated kernels compute the rest.
std::vector<Candidate> onednn_candidates(const GroupSpec&, const TargetInfo&);

}  // namespace hone::cpu
