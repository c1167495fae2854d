// The CPU as a target: kernels through LLVM, library candidates through oneDNN. Runs nothing.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "codegen/target.h"

namespace hone::cpu {

std::unique_ptr<Target> make_target(std::string_view isa);

// Groups anchored by a matrix product or a convolution in f32: the library computes the anchor
// with what it can fuse, generated kernels compute the rest.
std::vector<Candidate> onednn_candidates(const GroupSpec&, const TargetInfo&);

}  // namespace hone::cpu
