// Made-up inputs for verification and timing: seeded random data, extreme values, and sizes for
// symbols. Never zeros.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "plan/plan.h"
#include "ref/evaluate.h"
#include "type/array.h"

namespace hone {

enum class Fill : std::uint8_t {
  random,    // reals uniform in [-1, 1), integers in [0, 8); bools both, in some places for a while
             // only one, longer and longer, so that a row of a mask may hide all
  spread,    // the same, but reals of magnitudes from 1/8 to 8
  negative,  // reals below zero, half of them of few values, so that many are equal; integers in
             // [-8, 8), bools the opposite of the others', so that a condition takes both branches
  wide,      // numbers of magnitudes from 2^-10 to 2^13, of both signs; integers of all sizes that
             // the dtype holds. The last of more than 16 reals is the largest of all and the one
             // before it the lowest, so that a maximum which leaves out the end is wrong
  tiny,      // reals of magnitudes from 2^-40 to 2^-20, which no absolute error may hide
  far,       // reals from 999 to 1001: what is left of a difference of their squares is rounding
  extreme,  // mixes in zeros of both signs, denormals, ties of roundings, large numbers, infinities
            // and NaN of several bits, and the ends of integers, at some of the same places in all
            // inputs; some stretches of 64 elements hold a single number, the first of them
            // -infinity
  normal_extreme,  // the same, but no denormals: for devices that may take them for zeros
  rare,  // random numbers, and of 251 one of the extreme ones but for denormals: few enough that
         // a row of hundreds holds one infinity or none, and its sum is not always NaN
};

constexpr bool is_extreme(Fill fill) {
  return fill == Fill::extreme || fill == Fill::normal_extreme;
}
// For devices that keep denormals, or may not.
constexpr Fill extreme_of(bool keeps_denormals) {
  return keeps_denormals ? Fill::extreme : Fill::normal_extreme;
}
// Below it, a device that does not keep denormals may take a number for zero.
inline constexpr double least_normal = std::numeric_limits<float>::min();

// Elements of every dtype repeat after so many bytes, a prime number of pages.
inline constexpr std::size_t sample_period_bytes = std::size_t{61} * 4096;

// The flag HONE_SEED. Each seed makes up other numbers, which may find other mistakes.
std::uint64_t sample_seed();

// Whole elements of the dtype. Of 16 elements of extreme contents one is one of `edges` or next to
// it, of either sign (verify/edges.h).
void sample(std::span<std::byte> to, DType, Fill, std::uint64_t seed,
            std::span<const double> edges = {});
// A digest of what sample() wrote; nothing when its elements do not repeat, as those of Fill::wide.
// Any changed byte is seen, yet only the first period is hashed, which is faster than to hash all
// bytes.
std::optional<Hash128> sample_digest(std::span<const std::byte>, DType);
// The type's symbols must be in sizes.
Array sample_array(const Type&, const Sizing&, Fill, std::uint64_t seed,
                   std::span<const double> edges = {});

// Whether the guards hold for these sizes.
bool guards_hold(const std::vector<Guard>&, const Sizing& sizes);

// With a value for each size that data decides: about half of what it can be, few where that is
// large, and such that the checks hold, as far as a bounded search finds that.
Sizing with_measured(Sizing, const std::vector<DimBound>&, std::span<const DimCheck> checks = {});
// Whether the checks hold for these sizes; those of other sizes do not count.
bool checks_hold(std::span<const DimCheck> checks, const Sizing&);

// Sizes for the symbols of the types that satisfy the guards: small ones first. Nothing when a
// bounded search finds none.
std::optional<Sizing> sample_sizes(const std::vector<Type>&, const std::vector<Guard>&);

// Different odd sizes for the symbols, from `least` on as far as their bounds allow, so that rows,
// strides and tails show. Nothing when they do not satisfy the guards.
std::optional<Sizing> odd_sizes(const std::vector<Type>&, const std::vector<Guard>&,
                                std::int64_t least);

}  // namespace hone
