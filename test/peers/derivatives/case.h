// The cases whose losses and derivatives are compared with PyTorch's.
#pragma once

#include <hone/hone.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace hone::peer {

// An argument of a case, and the random numbers that it gets.
struct Input {
  enum class Kind : std::uint8_t { real, whole, index, boolean };
  std::vector<std::int64_t> dims;
  double low = -2, high = 2;  // whole and index: integers from low to high, both included
  Kind kind = Kind::real;
  int open = -1;  // this axis has an open size, the same one for all arguments
};
inline Input real(std::vector<std::int64_t> dims, double low = -2, double high = 2) {
  return {std::move(dims), low, high};
}
inline Input open(std::vector<std::int64_t> dims, int axis) {
  return {.dims = std::move(dims), .open = axis};
}
// Floats that are integers: ties, zeros, the ends of ranges.
inline Input whole(std::vector<std::int64_t> dims, double low = -2, double high = 2) {
  return {std::move(dims), low, high, Input::Kind::whole};
}
inline Input index(std::vector<std::int64_t> dims, std::int64_t count) {
  return {std::move(dims), 0, static_cast<double>(count - 1), Input::Kind::index};
}
inline Input boolean(std::vector<std::int64_t> dims) {
  return {std::move(dims), 0, 1, Input::Kind::boolean};
}

// A result that is not a scalar becomes one: see weighed().
using Function = std::function<Tensor(const Tensors&)>;
// Makes the modules of a case inside the given one.
using Make = std::function<Function(nn::Module&)>;
struct Case {
  std::string name;
  std::vector<Input> inputs;
  Function function;  // or, with modules:
  Make make = {};
  bool training = false;
};

// The sum of the elements, each times the cosine of its number, from 1 on.
inline Tensor weighed(const Tensor& y) {
  const Tensor flat = reshape(y, {-1});
  return sum(flat * cos(cast(arange(flat.size(0)), DType::f32) + 1));
}

// Takes the gradients.
using Step = std::function<void(const Tensors&)>;
struct OptimizerCase {
  std::string name;
  std::function<Step(Program&, const Variables&)> make;
};

std::vector<Case> function_cases();
std::vector<Case> network_cases();
std::vector<OptimizerCase> optimizer_cases();

}  // namespace hone::peer
