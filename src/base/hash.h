// Content hashing for interning, caches and file integrity (XXH3). Detects corruption; not secure
// against an adversary.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace hone {

// Mixes b into a; order matters.
inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  a ^= b + 0x9e3779b97f4a7c15ull + (a << 12) + (a >> 4);
  a *= 0xff51afd7ed558ccdull;
  return a ^ (a >> 33);
}

std::uint64_t hash_bytes(const void* data, std::size_t size, std::uint64_t seed = 0);
inline std::uint64_t hash_text(std::string_view text, std::uint64_t seed = 0) {
  return hash_bytes(text.data(), text.size(), seed);
}

struct Hash128 {
  std::uint64_t high = 0, low = 0;
  auto operator<=>(const Hash128&) const = default;
};

Hash128 hash128(std::span<const std::byte> bytes);
Hash128 hash128(std::string_view text);
// 32 lower-case hexadecimal digits.
std::string to_hex(const Hash128&);

}  // namespace hone
