// Products of one value with several constant matrices become one product, whose parts are windows:
// queries, keys and values of an attention. Few rows fill a machine better that way, and the value
// is read once.
#pragma once

#include "ir/function.h"

namespace hone {

// Left alone where something elementwise follows a part, since that joins the part's own product,
// and where the constants are large.
Function join_products(const Function&);

}  // namespace hone
