// Tensors of model files as plain numbers.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "import/onnx/file/model.h"
#include "type/dtype.h"

namespace hone::onnx {

// A tensor: numbers as f64, exact for integers below 2^53; larger ones, which mean "no limit",
// become the largest of these; strings as their numbers in the table of type/text.h.
struct Numbers {
  DType dtype = DType::f32;
  std::vector<std::int64_t> dims;
  std::vector<double> values;
  // Elements whose value the operator's page leaves open; empty: none.
  std::vector<bool> open = {};

  std::int64_t count() const;
  bool is_open(std::size_t i) const { return i < open.size() && open[i]; }
  void leave_open(std::size_t i) {
    open.resize(values.size());
    open[i] = true;
  }
  // Adds an element whose value is open.
  void add_open() {
    values.push_back(0);
    leave_open(values.size() - 1);
  }
};
// Values by name; null: unknown.
using NumbersByName = std::function<const Numbers*(std::string_view name)>;
inline constexpr double most_whole = 0x1p53 - 1;

// How far apart two evaluations of a tensor may be, relative to its largest element.
double tolerance(DType);
// The same as a number.
double allowed_difference(const Numbers&);
// The largest number of a dtype; for wide integers a smaller one that stands for all.
double largest_number(DType);

// The dtype that the format gives this number; empty: it has none.
std::optional<DType> dtype_of(std::int64_t data_type);
// Contents of an initializer; empty if its data is in another file or has an unusual dtype.
std::optional<Numbers> numbers_of(const Tensor&);

}  // namespace hone::onnx
