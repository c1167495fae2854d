// The reference for single elements: computes one output element backwards from it, with a memo, so
// that a large kernel can be checked on samples at its real size. Independent of Op::eval for
// everything that moves or sums; not faster than evaluate() when all elements are wanted.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "ref/element_value.h"
#include "ref/evaluate.h"

namespace hone {

class ElementEvaluator {
 public:
  // The inputs must outlive it. Throws as evaluate() does. Where the modes disagree on a size that
  // data decides, that of the wide mode holds.
  // `rounded` is the mode of what its elements call strict; Mode::wide makes them equal in half the
  // time. Mode::stepwise rounds each addition of dot, conv and reductions, but not of a cumulative
  // sum.
  ElementEvaluator(const Function&, std::span<const Array> inputs, Mode rounded = Mode::strict);
  ~ElementEvaluator();
  ElementEvaluator(const ElementEvaluator&) = delete;

  std::vector<std::int64_t> result_dims(std::size_t result) const;
  ElementOfModes at(std::size_t result, std::int64_t flat_index);
  ElementOfModes at(std::size_t result, std::span<const std::int64_t> index);
  // Of many elements, which share what they read. Nothing once more than `most` elements are
  // needed on the way: evaluate() is faster then.
  std::optional<std::vector<ElementOfModes>> all_at(std::size_t result,
                                                    std::span<const std::int64_t> flat_indices,
                                                    std::int64_t most);
  // How often an element was read so far, which tells what the elements cost.
  std::int64_t reads() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// In the strict mode.
double evaluate_element(const Function&, std::span<const Array> inputs, std::size_t result,
                        std::span<const std::int64_t> index);

}  // namespace hone
