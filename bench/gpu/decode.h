// One step of generating text: GPT-2 124M with one token and a cache of keys and values, which is
// updated in place. Random weights.
#pragma once

#include <random>

#include "api/hone.h"

namespace hone {

// A piece of random numbers around 0, repeated.
Array random_weight(DType, std::vector<std::int64_t> dims, std::mt19937_64&);

struct DecodeSizes {
  std::int64_t layers = 12, heads = 12, depth = 64, length = 1024, words = 50257;
};

// Inputs: token and position, i64; k0, v0, k1 and so on, donated, whose next values are the outputs
// k0_next and so on.
void build_decode(Builder&, DType, const DecodeSizes& = {});

}  // namespace hone
