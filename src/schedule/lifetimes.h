// The order of groups that lets memory be free early. Does not assign places.
#pragma once

#include <vector>

#include "ir/function.h"
#include "schedule/grouping.h"

namespace hone {

// In functions that compute a part again (ops::replay), as derivatives may: moves groups that
// depend on such a part towards their first reader, so that what is computed again does not lie in
// memory until then. In these and in those that write to owned memory, such as a training step:
// moves groups that end the life of more than they make towards what they read, such as the product
// that gives a weight's derivative. `owned`: as for order_writers(), which comes after.
void shorten_lifetimes(const Function&, const std::vector<bool>& owned, Grouping&);

}  // namespace hone
