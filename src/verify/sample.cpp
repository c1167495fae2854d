#include "verify/sample.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <random>
#include <tuple>

#include "base/error.h"
#include "base/flags.h"
#include "base/random.h"
#include "ref/compare.h"
#include "type/text.h"
#include "verify/masks.h"

namespace hone {

namespace {

// Numbers that operations on reals treat specially. Finite numbers are small enough that no order
// of adding products overflows, and the huge ones do not sum to zero, because the result would then
// be the rounding error. Ties of roundings to whole numbers, bf16, f16 and f32, and numbers
// slightly above a tie, also after rounding to another dtype.
constexpr double special_reals[] = {0.0,
                                    -0.0,
                                    1.0,
                                    -1.0,
                                    0.5,
                                    1 + 0x1p-8,
                                    1 + 0x3p-8,
                                    1 + 0x1p-8 + 0x1p-23,
                                    1 + 0x1p-11,
                                    1 + 0x3p-11,
                                    1 + 0x1p-11 + 0x1p-40,
                                    1 + 0x1p-24,
                                    1e-40,
                                    -1e-40,
                                    1e-3,
                                    65504,
                                    1e15,
                                    -3e14,
                                    std::numeric_limits<double>::infinity(),
                                    -std::numeric_limits<double>::infinity(),
                                    std::numeric_limits<double>::quiet_NaN()};

// The limits of integers and their neighbors, the divisor of a quotient that overflows, and a shift
// by all bits.
constexpr std::size_t special_integers = 6;
std::int64_t special_integer(DType t, std::uint64_t pick) {
  const auto bits = static_cast<std::uint64_t>(bit_size(t)), top = std::uint64_t{1} << (bits - 1);
  const std::uint64_t all[special_integers] = {
      top, top - 1, top + 1, ~std::uint64_t{0}, ~std::uint64_t{1}, bits};
  return static_cast<std::int64_t>(all[pick % special_integers]);
}

std::size_t special_count(DType t) {
  if (is_float(t)) return std::size(special_reals);
  return t == DType::b1 || t == DType::text ? 0 : special_integers;
}

// One of every few stretches holds a single number, so that short rows hold nothing else.
constexpr std::int64_t stretch = 64, stretches_apart = 6;
bool is_in_stretch(std::int64_t i) { return i / stretch % stretches_apart == 1; }

// One of 16 elements is special in all inputs, so that special numbers meet, and on average one
// more in each: few enough that a reduction is not always NaN.
constexpr std::int64_t special_apart = 16, special_place = 3, edge_place = 11;

// The number of this element among those that are special in all inputs; empty if it is not. Very
// small inputs have none of their own: in draws after the first, their first elements are special.
std::optional<std::int64_t> special_number(std::int64_t i, DType t, bool is_first_draw) {
  if (!is_first_draw && i < special_place) return i;
  if (i % special_apart != special_place || (is_float(t) && is_in_stretch(i))) return std::nullopt;
  if (!is_float(t)) return i / special_apart;
  const std::int64_t stretches_before = (i / stretch + stretches_apart - 2) / stretches_apart;
  return i / special_apart - stretches_before * (stretch / special_apart);
}

// How many elements of so many are special in all inputs.
std::int64_t special_places(std::int64_t count, DType t) {
  constexpr std::int64_t enough = 1024;
  std::int64_t out = 0;
  for (std::int64_t i = special_place; i < std::min(count, enough); i += special_apart)
    out += !is_float(t) || !is_in_stretch(i);
  return out > 0 ? out : std::max<std::int64_t>(count, 1);
}

// Deals all of `count` numbers in a random order, then all again in another order.
std::size_t dealt(std::uint64_t seed, std::int64_t number, std::size_t count) {
  const auto at = static_cast<std::size_t>(number);
  Random random(seed * 1000 + at / count);
  std::vector<std::size_t> deck(count);
  for (std::size_t k = 0; k < count; ++k) {
    const auto to = static_cast<std::size_t>(random.below(static_cast<int>(k) + 1));
    deck[k] = deck[to];
    deck[to] = k;
  }
  return deck[at % count];
}

// The seed of a draw says how many special numbers earlier draws dealt: one more than that in some
// bits, which are 0 in the first draw.
constexpr int dealt_shift = 20, dealt_bits = 12;
constexpr std::uint64_t most_dealt = (std::uint64_t{1} << dealt_bits) - 1;

struct Draw {
  explicit Draw(std::uint64_t of_draw)
      : seed(of_draw & ~(most_dealt << dealt_shift)),
        is_first((of_draw >> dealt_shift & most_dealt) == 0),
        first(is_first ? 0 : static_cast<std::int64_t>(of_draw >> dealt_shift & most_dealt) - 1) {}

  std::uint64_t seed;
  bool is_first;
  std::int64_t first;

  // The special number that is dealt to this element, if any.
  std::optional<std::size_t> special(std::int64_t i, DType t) const {
    const std::optional<std::int64_t> n = special_number(i, t, is_first);
    return n ? std::optional(dealt(seed, first + *n, special_count(t))) : std::nullopt;
  }
  std::size_t edge(std::int64_t i) const {
    return static_cast<std::size_t>(first + i / special_apart);
  }
};

// Cycles through the edges, each as itself or as the next lower or higher number of the dtype; then
// with the other sign, and so on until each occurred with both neighbors.
double edge_real(DType t, std::size_t k, std::span<const double> edges) {
  const std::size_t round = k / edges.size();
  const double steps = static_cast<double>((k + round / 2) % 3) - 1,
               x = edges[k % edges.size()] * (1 + steps * epsilon_of(t));
  return round % 2 == 0 ? x : -x;
}

double extreme_real(SplitMix64& numbers, const Draw& draw, std::int64_t i, DType t,
                    std::span<const double> edges) {
  constexpr double of_stretches[] = {-std::numeric_limits<double>::infinity(), -3e14, -0.0};
  const std::uint64_t pick = numbers.next();
  if (!edges.empty() && i % special_apart == edge_place) return edge_real(t, draw.edge(i), edges);
  if (is_in_stretch(i))
    return of_stretches[i / stretch / stretches_apart % std::ssize(of_stretches)];
  if (const std::optional<std::size_t> special = draw.special(i, t)) return special_reals[*special];
  return pick % 16 == 0 ? special_reals[pick / 16 % std::size(special_reals)]
                        : 8 * numbers.unit() - 4;
}

// NaN as arithmetic makes it, but of either sign, and with the first or all of the lower bits set.
// Adding to such bits, as rounding code does, makes another number.
std::uint64_t nan_bits(DType t, std::uint64_t pick) {
  const int all = bit_size(t), mantissa = t == DType::f64   ? 52
                                          : t == DType::f32 ? 23
                                          : t == DType::f16 ? 10
                                                            : 7;
  const std::uint64_t sign = std::uint64_t{1} << (all - 1),
                      quiet = std::uint64_t{1} << (mantissa - 1), infinity = sign - (quiet << 1);
  const std::uint64_t kinds[] = {infinity | quiet, sign | infinity | quiet, sign - 1,
                                 infinity | quiet | 1};
  return kinds[pick % std::size(kinds)];
}

// Writes the whole memory of the elements that begin here.
void put_nan(std::byte* at, DType t, std::uint64_t pick) {
  const std::uint64_t bits = nan_bits(t, pick);
  std::memcpy(at, &bits, static_cast<std::size_t>(byte_size(t)));
}

// Some stretches, longer and longer, hold one value, so that a row of a mask of any length hides
// everything or nothing: elements 6 to 7, 48 to 63, 384 to 511 and so on are false, 12 to 15, 96 to
// 127 and so on are true.
std::optional<bool> of_run(std::int64_t i) {
  const int octave = std::bit_width(static_cast<std::uint64_t>(i)) - 1;
  if (octave < 2 || (i >> (octave - 1) & 1) == 0 || octave % 3 == 1) return std::nullopt;
  return octave % 3 == 0;
}

// One of five is an infinity, of alternating sign: many random draws have none without a NaN next
// to it.
double rare_real(std::uint64_t pick, std::int64_t place) {
  if (place % 5 == 2) return place % 2 == 0 ? INFINITY : -INFINITY;
  const double x = special_reals[pick % std::size(special_reals)];
  return std::abs(x) < least_normal ? std::copysign(0.0, x) : x;
}

double real_number(SplitMix64& numbers, const Draw& draw, Fill fill, std::int64_t i, DType t,
                   std::span<const double> edges) {
  if (is_extreme(fill)) {
    const double x = extreme_real(numbers, draw, i, t, edges);
    return fill == Fill::normal_extreme && std::abs(x) < least_normal ? std::copysign(0.0, x) : x;
  }
  if (fill == Fill::rare) {
    const std::uint64_t pick = numbers.next();
    if (i % 251 == 83) return rare_real(pick, i / 251);
  }
  if (fill == Fill::negative) {
    const std::uint64_t pick = numbers.next();
    return pick % 2 == 0 ? -static_cast<double>(1 + pick / 2 % 8) / 4
                         : -2 * numbers.unit() - 0x1p-10;
  }
  const double x = 2 * numbers.unit() - 1;
  if (fill == Fill::wide) return std::ldexp(x, static_cast<int>(numbers.next() % 24) - 10);
  if (fill == Fill::tiny) return std::ldexp(x, -20 - static_cast<int>(numbers.next() % 20));
  if (fill == Fill::far) return 1000 + x;
  return fill == Fill::spread ? std::ldexp(x, static_cast<int>(numbers.next() % 7) - 3) : x;
}

std::int64_t wide_integer(DType t, std::uint64_t pick) {
  constexpr std::uint64_t of_indices = 13;  // half of them are in the range of axis sizes
  const auto all = static_cast<std::uint64_t>(bit_size(t) - is_signed(t));
  const std::uint64_t most = pick & 4 ? all : std::min(all, of_indices),
                      bits = (pick >> 3) % (most + 1);
  const auto n =
      static_cast<std::int64_t>(bits == 0 ? 0 : (pick * 0x9E3779B97F4A7C15) >> (64 - bits));
  return is_signed(t) && pick % 4 == 0 ? -n : n;
}

std::int64_t integer_number(DType t, SplitMix64& numbers, const Draw& draw, Fill fill,
                            std::int64_t i) {
  const std::uint64_t pick = numbers.next();
  if (fill == Fill::wide) return wide_integer(t, pick);
  if (fill == Fill::negative && is_signed(t)) return static_cast<std::int64_t>(pick % 16) - 8;
  if (is_extreme(fill)) {
    if (const std::optional<std::size_t> special = draw.special(i, t))
      return special_integer(t, *special);
    if (pick % 16 == 0) return special_integer(t, pick / 16);
  }
  return static_cast<std::int64_t>(pick % 8);
}

// Random numbers are made once and repeated after a prime number of elements, which is not the
// period of any tile or row of a kernel.
constexpr std::int64_t period = 4093;

// The first `bytes` bytes of the memory repeat every `after` bytes.
struct Repetition {
  std::size_t after, bytes;
};
std::array<Repetition, 2> repeats(std::size_t bytes, DType t) {
  return {{{static_cast<std::size_t>(period * byte_size(t)), std::min(bytes, sample_period_bytes)},
           {sample_period_bytes, bytes}}};
}

// The numbers that a sample repeats, made on demand.
class Numbers {
 public:
  Numbers(DType t, Fill fill, std::uint64_t seed)
      : fill_(fill), draw_(seed), random_(seed), made_(Array::zeros(t, {period})) {}

  void copy(std::span<std::byte> to, std::span<const double> edges) {
    const std::int64_t n = static_cast<std::int64_t>(to.size()) / byte_size(made_.dtype());
    for (; count_ < n; ++count_) put(count_, edges);
    std::ranges::copy(made_.bytes().first(to.size()), to.begin());
  }

 private:
  void put(std::int64_t i, std::span<const double> edges) {
    const DType t = made_.dtype();
    if (is_float(t)) {
      made_.set_real(i, real_number(random_, draw_, fill_, i, t, edges));
      if (!is_small(t) && std::isnan(made_.real(i)))
        put_nan(made_.writable_bytes().data() + i * byte_size(t), t, static_cast<std::uint64_t>(i));
    } else if (t == DType::b1)
      made_.set_integer(i, of_run(i).value_or((random_.next() & 1) ^ (fill_ == Fill::negative)));
    else if (t == DType::text)
      made_.set_integer(i,
                        static_cast<std::int64_t>(text_number(cat("text ", random_.next() % 8))));
    else
      made_.set_integer(i, integer_number(t, random_, draw_, fill_, i));
  }

  Fill fill_;
  Draw draw_;
  Random random_;
  Array made_;
  std::int64_t count_ = 0;
};

// Keeps the numbers, because checks ask for the same ones many times.
void put_numbers(std::span<std::byte> to, DType t, Fill fill, std::uint64_t seed,
                 std::span<const double> edges) {
  if (!edges.empty()) return Numbers(t, fill, seed).copy(to, edges);
  constexpr std::size_t most_kept = 256;
  static std::mutex mutex;
  static std::map<std::tuple<DType, Fill, std::uint64_t>, Numbers> kept;
  const std::scoped_lock lock(mutex);
  if (kept.size() >= most_kept) kept.clear();
  kept.try_emplace({t, fill, seed}, t, fill, seed).first->second.copy(to, edges);
}

// For Fill::wide: twice as large as all others, so that no earlier element is as extreme.
void put_extremes_last(std::span<std::byte> to, DType t) {
  constexpr std::size_t few = 16;
  const auto size = static_cast<std::size_t>(byte_size(t)), n = to.size() / size;
  if (!is_float(t) || is_small(t) || n <= few) return;
  Array ends = Array::zeros(t, {2});
  ends.set_real(0, -0x1p14);
  ends.set_real(1, 0x1p14);
  std::ranges::copy(ends.bytes(), to.subspan((n - 2) * size).begin());
}

}  // namespace

std::uint64_t sample_seed() { return static_cast<std::uint64_t>(flag_number("HONE_SEED")); }

std::int64_t extreme_draws(std::int64_t count, DType t, std::size_t edges) {
  if (count < 1) return 1;
  // Each edge with two neighbors, of both signs.
  const auto all = static_cast<std::int64_t>(std::max(special_count(t), 6 * edges));
  const std::int64_t each = special_places(count, t);
  return std::max<std::int64_t>(1, (all + each - 1) / each + (count <= special_place ? 1 : 0));
}

std::uint64_t seed_of_draw(std::uint64_t seed, std::int64_t draw, std::int64_t count, DType t) {
  if (draw == 0) return seed;
  // The first draw of a very small input deals nothing.
  const auto before = static_cast<std::uint64_t>((count <= special_place ? draw - 1 : draw) *
                                                 special_places(count, t));
  return seed + ((before % most_dealt + 1) << dealt_shift);
}

void sample(std::span<std::byte> to, DType t, Fill fill, std::uint64_t seed,
            std::span<const double> edges) {
  const auto once = static_cast<std::size_t>(period * byte_size(t));
  put_numbers(to.first(std::min(to.size(), once)), t, fill, seed + (sample_seed() << 32), edges);
  for (const auto& [after, bytes] : repeats(to.size(), t))
    for (std::size_t at = after; at < bytes; at += after)
      std::memcpy(to.data() + at, to.data(), std::min(after, bytes - at));
  if (fill == Fill::wide) put_extremes_last(to, t);
}

std::optional<Hash128> sample_digest(std::span<const std::byte> of, DType t) {
  const std::byte* at = of.data();
  const auto both = repeats(of.size(), t);
  for (const auto& [after, bytes] : both)
    if (bytes > after && std::memcmp(at, at + after, bytes - after) != 0) return std::nullopt;
  return hash128(of.first(std::min(of.size(), both[0].after)));
}

Array sample_array(const Type& type, const Sizing& sizes, Fill fill, std::uint64_t seed,
                   std::span<const double> edges) {
  std::vector<std::int64_t> dims;
  for (const Dim& d : type.shape.dims) dims.push_back(size_of(d, sizes));
  Array a = Array::zeros(type.dtype, dims);
  sample(a.writable_bytes(), type.dtype, fill, seed, edges);
  if (type.dtype == DType::b1) hide_rows(a.writable_bytes(), type.dtype, dims, seed);
  return a;
}

}  // namespace hone
