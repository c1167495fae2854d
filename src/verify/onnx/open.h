// Finds the elements of results whose value an operator's page leaves open for given operands, so
// that correct evaluations differ there.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "import/onnx/file/model.h"
#include "verify/onnx/numbers.h"

namespace hone::onnx {

class Noise;

// meaning_of(), which evaluates a node again on other operands.
using MeaningOf = std::optional<std::vector<Numbers>>(const Node&, std::int64_t opset,
                                                      std::span<const Numbers* const> inputs,
                                                      const NumbersByName& outer, Noise* noise);

// Whether an operand holds elements that are open themselves; NaN or such elements.
bool has_open(std::span<const Numbers* const> operands);
bool has_unknown(std::span<const Numbers* const> operands);

// Marks elements of the results that depend on NaN or on open elements. Where a page speaks of
// neither, the result may be that of any number in their place: several are tried. False: no
// results are known with other numbers.
bool leave_unknown_open(MeaningOf, const Node&, std::int64_t opset,
                        std::span<const Numbers* const> inputs, const NumbersByName& outer,
                        std::vector<Numbers>& results);

// Marks elements of the results that rounding decides: operands that are slightly different give
// others. Not for operators that round once, as their results have no such elements.
void leave_rounding_open(MeaningOf, const Node&, std::int64_t opset,
                         std::span<const Numbers* const> inputs, const NumbersByName& outer,
                         std::vector<Numbers>& results);

// Changes numbers by about as much as roundings in their dtype do; each time others.
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : state_(seed) {}
  void add_to(Numbers&);

 private:
  std::uint64_t state_;
};

}  // namespace hone::onnx
