// Tensors of model files as plain numbers.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "import/onnx/model.h"
#include "type/dtype.h"

namespace hone::onnx {

// A tensor: numbers as f64, which holds integers below 2^53; larger ones, which mean no limit, are
// the largest of these.
struct Numbers {
  DType dtype = DType::f32;
  std::vector<std::int64_t> dims;
  std::vector<double> values;

  std::int64_t count() const;
};
// Values by name; null: not known.
using NumbersByName = std::function<const Numbers*(std::string_view name)>;
inline constexpr double most_whole = 0x1p53 - 1;

// What an initializer holds; nothing where its data lie in another file or have other dtypes than
// the usual ones.
std::optional<Numbers> numbers_of(const Tensor&);

}  // namespace hone::onnx
