// How each operation gets into a random function, one row per operation; and recipes for graph
// shapes that compilers have miscompiled or that they match.
#pragma once

#include <span>

#include "test/random/builder.h"

namespace hone::fuzz {

// Adds an operation, and what it needs, to the function and returns its result 0. If nothing fits,
// returns an invalid value or throws UserError.
struct Maker {
  const Op* op;
  int weight;
  Value (*make)(Builder&, const Op&);
};

std::span<const Maker> elementwise_makers();
std::span<const Maker> movement_makers();
std::span<const Maker> index_makers();
std::span<const Maker> row_makers();  // reductions, windows, norms, orders
std::span<const Maker> contraction_makers();
std::span<const Maker> control_makers();
std::vector<Maker> all_makers();

// x, or a similar value whose numbers mostly lie in [low, high].
Value tame(Builder&, Value x, double low, double high);
// One of the operation's samples, applied to operands of the sample's types.
Value make_sample(Builder&, const Op&);

struct Motif {
  std::string_view name;
  Value (*make)(Builder&);
};
std::span<const Motif> motifs();

// Adds nodes until the pool has at least `nodes`, or until too many attempts failed.
void grow(Builder&, int nodes);

}  // namespace hone::fuzz
