// The reference for single elements: computes one output element recursively, with a memo, so that
// a large kernel can be checked on samples at its real size. Independent of Op::eval for movement
// and for sums of fewer than 256 elements (ref/box.h); not faster than evaluate() when all elements
// are needed.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "ref/element_value.h"
#include "ref/evaluate.h"

namespace hone {

class ElementEvaluator {
 public:
  // The inputs must outlive it. Throws as evaluate() does. If the modes disagree on a
  // data-dependent size, the size of the wide mode is used.
  // `rounded` is the mode used for the `strict` member of elements; Mode::wide makes both members
  // equal in half the time. Mode::stepwise rounds each addition of dot, conv and reductions, but
  // not of a cumulative sum.
  ElementEvaluator(const Function&, std::span<const Array> inputs, Mode rounded = Mode::strict);
  ~ElementEvaluator();
  ElementEvaluator(const ElementEvaluator&) = delete;

  std::vector<std::int64_t> result_dims(std::size_t result) const;
  ElementOfModes at(std::size_t result, std::int64_t flat_index);
  ElementOfModes at(std::size_t result, std::span<const std::int64_t> index);
  // Several elements at once, which share the values they read. Empty if more than `most` elements
  // are needed on the way: evaluate() is then faster.
  std::optional<std::vector<ElementOfModes>> all_at(std::size_t result,
                                                    std::span<const std::int64_t> flat_indices,
                                                    std::int64_t most);
  // Number of element reads so far, a measure of the cost.
  std::int64_t reads() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// The elements of one mode as a tensor of one axis.
Wide listed(DType, std::span<const ElementOfModes>, Element ElementOfModes::* mode);

// In strict mode.
double evaluate_element(const Function&, std::span<const Array> inputs, std::size_t result,
                        std::span<const std::int64_t> index);

}  // namespace hone
