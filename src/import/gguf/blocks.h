// The quantised blocks of GGUF: their layout in a file and the numbers they represent. Each block
// has low-bit integers q and a scale d; some formats add a minimum and scales of sub-blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "import/gguf/gguf_type.h"

namespace hone::gguf {

using Half = std::uint16_t;  // bits of an f16

// Blocks of 32. Element j < 16 is in the low half of byte j, element j + 16 in the high half.
struct Q4_0 {  // d (q - 8)
  Half d;
  std::uint8_t low[16];
};
struct Q4_1 {  // d q + m
  Half d, m;
  std::uint8_t low[16];
};
struct Q5_0 {  // d (q - 16); bit j of the four bytes is bit 4 of element j
  Half d;
  std::uint8_t fifth[4];
  std::uint8_t low[16];
};
struct Q5_1 {  // d q + m
  Half d, m;
  std::uint8_t fifth[4];
  std::uint8_t low[16];
};
struct Q8_0 {  // d q
  Half d;
  std::int8_t q[32];
};

// Blocks of 256 in eight parts of 32, each with a six-bit scale s and minimum m. Of each pair of
// consecutive parts, the first is in the low halves of 32 bytes, the second in the high halves.
struct Q4_K {  // d s q - dmin m
  Half d, dmin;
  std::uint8_t scales[12];
  std::uint8_t low[128];
};
struct Q5_K {  // the same; bit p of byte i is bit 4 of element i of part p
  Half d, dmin;
  std::uint8_t scales[12];
  std::uint8_t fifth[32];
  std::uint8_t low[128];
};
// Two halves of 128 elements, each four rows of 32; every 16 elements have an eight-bit scale.
struct Q6_K {  // d s (q - 32)
  std::uint8_t low[128];
  std::uint8_t high[64];
  std::int8_t scales[16];
  Half d;
};

static_assert(sizeof(Q4_0) == 18 && sizeof(Q4_1) == 20 && sizeof(Q5_0) == 22 &&
              sizeof(Q5_1) == 24 && sizeof(Q8_0) == 34 && sizeof(Q4_K) == 144 &&
              sizeof(Q5_K) == 176 && sizeof(Q6_K) == 210);

// Takes whole quantised blocks. All products are exact in f32, so each number is rounded once.
void dequantize(GgufType, std::span<const std::byte> blocks, std::span<float> to);

}  // namespace hone::gguf
