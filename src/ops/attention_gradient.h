// The derivative of attention, as an operation of its own: what it is made of needs memory that
// grows with the lengths, not with their product.
#pragma once

#include "ir/graph.h"

namespace hone {

// For Op::grad of attention.
Values attention_derivatives(const Call&, std::span<const Value> results,
                             std::span<const Value> dy);
// Reference of ops::attention_gradient.
std::vector<Wide> attention_gradient_meaning(const Evaluation&);

}  // namespace hone
