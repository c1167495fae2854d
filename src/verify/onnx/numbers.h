// Tensors of model files as plain numbers.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "import/onnx/model.h"
#include "type/dtype.h"

namespace hone::onnx {

// A tensor: numbers as f64, exact for integers below 2^53; larger ones, which mean "no limit",
// become the largest of these.
struct Numbers {
  DType dtype = DType::f32;
  std::vector<std::int64_t> dims;
  std::vector<double> values;

  std::int64_t count() const;
};
// Values by name; null: unknown.
using NumbersByName = std::function<const Numbers*(std::string_view name)>;
inline constexpr double most_whole = 0x1p53 - 1;

// Contents of an initializer; empty if its data is in another file or has an unusual dtype.
std::optional<Numbers> numbers_of(const Tensor&);

}  // namespace hone::onnx
