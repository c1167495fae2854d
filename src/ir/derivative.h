// Values of a graph that a front end made as derivatives of others: what the compiler needs to
// judge them (verify/model/derivatives.h). Does not know how they were made.
#pragma once

#include "ir/graph.h"

namespace hone {

// All values are of one graph and have float dtypes.
struct Derivative {
  Values ys, dys;  // of equal types
  // Each once. They count as independent: what an x is computed from is constant.
  Values xs, dxs;    // dxs[j] is the sum over i of d ys[i] / d xs[j], weighted by dys[i]
  Values held = {};  // count as constants although they may depend on an x
};

}  // namespace hone
