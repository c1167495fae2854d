#include "import/gguf/blocks.h"

#include <cstring>

#include "base/error.h"
#include "type/dtype.h"

namespace hone::gguf {

namespace {

// Element j of the 32 in a block whose low four bits are in 16 bytes.
int low_bits(const std::uint8_t (&low)[16], int j) {
  return j < 16 ? low[j] & 15 : low[j - 16] >> 4;
}

int fifth_bit(const std::uint8_t (&fifth)[4], int j) { return (fifth[j / 8] >> (j % 8) & 1) << 4; }

void block(const Q4_0& b, float* to) {
  const float d = f16_to_f32(b.d);
  for (int j = 0; j < 32; ++j) to[j] = d * static_cast<float>(low_bits(b.low, j) - 8);
}

void block(const Q4_1& b, float* to) {
  const float d = f16_to_f32(b.d), m = f16_to_f32(b.m);
  for (int j = 0; j < 32; ++j) to[j] = d * static_cast<float>(low_bits(b.low, j)) + m;
}

void block(const Q5_0& b, float* to) {
  const float d = f16_to_f32(b.d);
  for (int j = 0; j < 32; ++j)
    to[j] = d * static_cast<float>((low_bits(b.low, j) | fifth_bit(b.fifth, j)) - 16);
}

void block(const Q5_1& b, float* to) {
  const float d = f16_to_f32(b.d), m = f16_to_f32(b.m);
  for (int j = 0; j < 32; ++j)
    to[j] = d * static_cast<float>(low_bits(b.low, j) | fifth_bit(b.fifth, j)) + m;
}

void block(const Q8_0& b, float* to) {
  const float d = f16_to_f32(b.d);
  for (int j = 0; j < 32; ++j) to[j] = d * static_cast<float>(b.q[j]);
}

// Scale and minimum of part p: for the first four parts the low six bits of a byte; for the others
// the low four bits are in the last four bytes and the rest above those six.
struct PartScale {
  int scale, minimum;
};
PartScale part_scale(const std::uint8_t (&s)[12], int p) {
  if (p < 4) return {s[p] & 63, s[p + 4] & 63};
  return {(s[p + 4] & 15) | (s[p - 4] >> 6 << 4), (s[p + 4] >> 4) | (s[p] >> 6 << 4)};
}

// Q4_K, and Q5_K with its additional fifth bits.
template <class K>
void block_k(const K& b, float* to) {
  const float d = f16_to_f32(b.d), dmin = f16_to_f32(b.dmin);
  for (int p = 0; p < 8; ++p) {
    const PartScale s = part_scale(b.scales, p);
    const float scale = d * static_cast<float>(s.scale), m = dmin * static_cast<float>(s.minimum);
    for (int i = 0; i < 32; ++i) {
      const int byte = b.low[p / 2 * 32 + i];
      int q = p % 2 == 0 ? byte & 15 : byte >> 4;
      if constexpr (requires { b.fifth; }) q |= (b.fifth[i] >> p & 1) << 4;
      to[p * 32 + i] = scale * static_cast<float>(q) - m;
    }
  }
}
void block(const Q4_K& b, float* to) { block_k(b, to); }
void block(const Q5_K& b, float* to) { block_k(b, to); }

// Rows 0 and 1 of a half are in the low halves of 64 bytes, rows 2 and 3 in the high halves; bits 2
// row and 2 row + 1 of 32 bytes are the two highest.
void block(const Q6_K& b, float* to) {
  const float d = f16_to_f32(b.d);
  for (int k = 0; k < 256; ++k) {
    const int half = k / 128, row = k / 32 % 4, i = k % 32;
    const int byte = b.low[half * 64 + row % 2 * 32 + i];
    const int low = row < 2 ? byte & 15 : byte >> 4;
    const int high = b.high[half * 32 + i] >> (2 * row) & 3;
    const float scale = d * static_cast<float>(b.scales[k / 16]);
    to[k] = scale * static_cast<float>((low | high << 4) - 32);
  }
}

template <class Block>
void all(std::span<const std::byte> from, std::span<float> to, std::size_t elements) {
  const std::size_t count = from.size() / sizeof(Block);
  HONE_ASSERT(count * sizeof(Block) == from.size() && count * elements == to.size(),
              "whole blocks, one number an element");
  Block b;
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(&b, from.data() + i * sizeof b, sizeof b);
    block(b, to.data() + i * elements);
  }
}

}  // namespace

void dequantize(GgufType type, std::span<const std::byte> blocks, std::span<float> to) {
  switch (type) {
    case GgufType::q4_0:
      return all<Q4_0>(blocks, to, 32);
    case GgufType::q4_1:
      return all<Q4_1>(blocks, to, 32);
    case GgufType::q5_0:
      return all<Q5_0>(blocks, to, 32);
    case GgufType::q5_1:
      return all<Q5_1>(blocks, to, 32);
    case GgufType::q8_0:
      return all<Q8_0>(blocks, to, 32);
    case GgufType::q4_k:
      return all<Q4_K>(blocks, to, 256);
    case GgufType::q5_k:
      return all<Q5_K>(blocks, to, 256);
    case GgufType::q6_k:
      return all<Q6_K>(blocks, to, 256);
    default:
      HONE_ASSERT(false, "only blocks are dequantised");
  }
}

}  // namespace hone::gguf
