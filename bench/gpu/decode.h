// One step of text generation: GPT-2 124M with one token and a key/value cache that is updated in
// place. Random weights.
#pragma once

#include <random>

#include "api/compiler.h"

namespace hone {

// A block of random numbers around 0, repeated to fill the tensor.
Array random_weight(DType, std::vector<std::int64_t> dims, std::mt19937_64&);

struct DecodeSizes {
  std::int64_t layers = 12, heads = 12, depth = 64, length = 1024, words = 50257;
};

// Inputs: token and position, i64; k0, v0, k1 and so on, which are donated. The outputs k0_next and
// so on are their next values.
void build_decode(Builder&, DType, const DecodeSizes& = {});

}  // namespace hone
