// How each operation gets into a random function: one row an operation. And shapes of graphs that
// compilers have got wrong, or look for, as recipes.
#pragma once

#include <span>

#include "test/random/builder.h"

namespace hone::fuzz {

// Adds an operation (and what it needs) to the function; its result 0. Invalid, or a UserError,
// when nothing fits.
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

// x, or something like it whose numbers mostly lie in [low, high].
Value tame(Builder&, Value x, double low, double high);
// One of the samples of the operation, on operands of the sample's types.
Value make_sample(Builder&, const Op&);

struct Motif {
  std::string_view name;
  Value (*make)(Builder&);
};
std::span<const Motif> motifs();

// Adds nodes until there are at least that many in the pool or too many failed.
void grow(Builder&, int nodes);

}  // namespace hone::fuzz
