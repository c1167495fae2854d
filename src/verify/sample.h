// Made-up inputs for verification and timing: seeded random data and extreme values. Never zeros.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "base/hash.h"
#include "ref/evaluate.h"
#include "type/array.h"

namespace hone {

enum class Fill : std::uint8_t {
  random,  // reals uniform in [-1, 1), integers in [0, 8); bools mixed, with ever longer stretches
           // of a single value, so that a row of a mask may hide everything
  spread,  // the same, but reals of magnitudes from 1/8 to 8
  negative,  // negative reals, half of them from a few values, so that many are equal; integers in
             // [-8, 8); bools are the opposite of the other fills', so that a condition takes both
             // branches
  wide,  // numbers of magnitudes from 2^-10 to 2^13, of both signs; integers over the whole range
         // of the dtype. With more than 16 reals, the last is the largest and the one before it
         // the lowest, so that a maximum which skips the end is wrong
  tiny,  // reals of magnitudes from 2^-40 to 2^-20, which no absolute error can hide
  far,   // reals from 999 to 1001: in a difference of their squares mostly rounding remains
  extreme,  // mixes in zeros of both signs, denormals, ties of roundings, large numbers,
            // infinities, NaN of several bits, and integer limits, at partly the same places in all
            // inputs; some stretches of 64 elements hold a single number, the first of them
            // -infinity. A small array holds few of them: several draws hold them all
  normal_extreme,  // the same without denormals: for devices that may treat them as zeros
  hiding,          // random; of operands that mask rows, see hide_rows() in verify/masks.h
  rare,  // random numbers, with one in 251 of the extreme ones except denormals: so few that a row
         // of hundreds holds at most one infinity, and its sum is not always NaN
};

constexpr bool is_extreme(Fill fill) {
  return fill == Fill::extreme || fill == Fill::normal_extreme;
}
// For devices that keep denormals, or may not keep them.
constexpr Fill extreme_of(bool keeps_denormals) {
  return keeps_denormals ? Fill::extreme : Fill::normal_extreme;
}
// A device that does not keep denormals may treat smaller numbers as zero.
inline constexpr double least_normal = std::numeric_limits<float>::min();

// Elements of every dtype repeat after this many bytes, a prime number of pages.
inline constexpr std::size_t sample_period_bytes = std::size_t{61} * 4096;

// The flag HONE_SEED. Other seeds give other numbers, which may find other faults.
std::uint64_t sample_seed();

// `to` must hold whole elements. In extreme contents, one of 16 elements is one of `edges` or next
// to it, of either sign (verify/kernel/edges.h).
void sample(std::span<std::byte> to, DType, Fill, std::uint64_t seed,
            std::span<const double> edges = {});
// The number of draws of extreme contents after which an array of `count` elements held each
// special number, and each of `edges` edges with its neighbors; and the seed of one of these draws.
std::int64_t extreme_draws(std::int64_t count, DType, std::size_t edges = 0);
std::uint64_t seed_of_draw(std::uint64_t seed, std::int64_t draw, std::int64_t count, DType);
// A digest of what sample() wrote; empty when the elements do not repeat, as for Fill::wide.
// Detects any changed byte but hashes only the first period, which is faster than hashing all
// bytes.
std::optional<Hash128> sample_digest(std::span<const std::byte>, DType);
// The sizing must contain the type's symbols. Bools have rows that hide_rows() changes.
Array sample_array(const Type&, const Sizing&, Fill, std::uint64_t seed,
                   std::span<const double> edges = {});

}  // namespace hone
