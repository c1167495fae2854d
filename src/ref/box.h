// Evaluates boxes of values, all elements of a box at once: for single elements that depend on long
// rows. Internal to ref.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ref/frame.h"

namespace hone {

class Boxes {
 public:
  // In one mode: strict rounds every result, stepwise also every sum.
  Boxes(Frame& frame, Mode mode) : frame_(frame), mode_(mode) {}

  // An element of a reduction; empty if its operand depends on other operations than elementwise
  // ones, reductions and simple movements, or if that takes more than `most` elements.
  std::optional<Element> reduced(Value, std::int64_t flat, std::int64_t most);
  // The number of elements that were computed.
  std::int64_t computed() const { return computed_; }

 private:
  // Starts and sizes, by axis.
  struct Window {
    Sizes low, sizes;
  };
  std::optional<Wide> of(Value, const Window&);
  std::optional<Wide> of_op(Value, const Window&);
  std::optional<Wide> of_operands(Value, const Window& of_each, const Sizes& result);
  std::optional<Wide> broadcast(Value, const Window&);
  std::optional<Wide> transposed(Value, const Window&);
  std::optional<Wide> reshaped(Value, const Window&);
  std::optional<Wide> of_reduction(Value, const Window&);
  Wide of_array(const Array&, DType, const Window&) const;

  Frame& frame_;
  Mode mode_;
  std::int64_t most_ = 0, computed_ = 0, kept_ = 0;
  std::map<std::pair<std::size_t, Sizes>, Wide> known_;
};

// Whether the operation reduces axes to one element each.
bool reduces_axes(const Op&);

}  // namespace hone
