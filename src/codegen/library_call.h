// Builds library candidates for every backend: one step calls the library for the group's anchor
// and the following operations that the call can fuse; a generated kernel computes the rest.
// Independent of any library: a backend says what its own can do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernel/kernel.h"
#include "target/target_info.h"

namespace hone {

struct LibraryCall {
  std::string name;                   // LIBRARY.FUNCTION
  Value anchor, last;                 // `last`: the call's result
  std::vector<std::size_t> operands;  // group parameters
  std::vector<std::pair<std::string, std::int64_t>> settings;
};

struct LibraryAbilities {
  bool (*takes)(DType);
  // The call for an anchor, without its operands; nullopt when the library has none.
  std::optional<LibraryCall> (*call_of)(Value anchor);
  // Gelu after the bias; null: none.
  bool (*has_gelu_tanh)(DType) = nullptr;
  // After a bias, can add a value of the result's type; without a bias, fuses nothing.
  bool has_residual = false;
};

// [b?, m, k] x [b?, k, n]; each matrix may be transposed, see settings transpose_a and transpose_b.
std::optional<LibraryCall> matmul_call(Value dot, std::string name);

// Convolution in channels-last form with constant window sizes: settings channels_last, groups,
// strides0 and so on, dilations0, pads_low0, pads_high0.
std::optional<LibraryCall> convolution_call(Value conv, std::string name);

// The index of the group parameter that the value is, if any.
std::optional<std::size_t> param_of(Value);

// The call for the group's only contraction, whose operands are parameters, with the bias,
// residual, relu or gelu after it. The group's function consists of core operations.
std::optional<LibraryCall> find_library_call(const GroupSpec&, const LibraryAbilities&);

// The call, then a kernel for the rest of the group, whose function consists of core operations.
Candidate library_candidate(const GroupSpec&, const LibraryCall&, std::string name,
                            const TargetInfo&);

}  // namespace hone
