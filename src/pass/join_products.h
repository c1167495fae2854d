// Joins products of one value with several constant matrices, such as queries, keys and values of
// an attention, into one product and takes the parts as windows of it. This uses the machine better
// when there are few rows, and reads the value once.
#pragma once

#include "ir/function.h"

namespace hone {

// Skips products followed by an elementwise operation, which joins the product's own group, and
// large constants.
Function join_products(const Function&);

}  // namespace hone
