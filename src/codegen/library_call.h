// Library candidates as every backend makes them: the anchor of a group, with what follows it that
// the library does in the same call, is one step; what is left of the group is a generated kernel.
// Knows no library: a backend says what its own can do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernel/kernel.h"
#include "target/target_info.h"

namespace hone {

struct LibraryCall {
  std::string name;                   // LIBRARY.FUNCTION
  Value anchor, last;                 // `last`: what the call leaves behind
  std::vector<std::size_t> operands;  // group parameters
  std::vector<std::pair<std::string, std::int64_t>> settings;
};

struct LibraryAbilities {
  bool (*takes)(DType);
  // The call for an anchor, without its operands; nothing when the library has none.
  std::optional<LibraryCall> (*call_of)(Value anchor);
  // Behind the bias; null: none.
  bool (*has_gelu_tanh)(DType) = nullptr;
  // Behind a bias, adds another value like the result; and without one takes nothing that follows.
  bool has_residual = false;
};

// [b?, m, k] x [b?, k, n], in any order of the two axes of a matrix: settings transpose_a and
// transpose_b tell.
std::optional<LibraryCall> matmul_call(Value dot, std::string name);

// Of channels last, with numbers as sizes of windows: settings channels_last, groups, strides0 and
// so on, dilations0, pads_low0, pads_high0.
std::optional<LibraryCall> convolution_call(Value conv, std::string name);

// The parameter of the group that a value is.
std::optional<std::size_t> param_of(Value);

// The call for the only contraction of the group, whose operands are parameters, with the bias, the
// residual, the relu or the gelu behind it. The group's function is made of core operations.
std::optional<LibraryCall> find_library_call(const GroupSpec&, const LibraryAbilities&);

// The call, then a kernel for the rest of the group, whose function is made of core operations.
Candidate library_candidate(const GroupSpec&, const LibraryCall&, std::string name,
                            const TargetInfo&);

}  // namespace hone
