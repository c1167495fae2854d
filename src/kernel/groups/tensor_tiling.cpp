#include "kernel/groups/tensor_tiling.h"

#include <algorithm>
#include <cmath>

#include "kernel/nest/blocking.h"

namespace hone {

namespace {

// Shapes of a group's tile, and of a subgroup's part of it.
struct TileForm {
  std::int64_t m, n, k, rows, columns;
};

constexpr TileForm forms[] = {
    {128, 256, 32, 64, 64}, {256, 128, 32, 64, 64}, {128, 256, 64, 64, 64}, {256, 128, 64, 64, 64},
    {128, 128, 32, 64, 64}, {128, 128, 32, 64, 32}, {128, 128, 64, 64, 64}, {128, 128, 64, 64, 32},
    {128, 64, 32, 32, 32},  {128, 64, 64, 32, 32},  {64, 128, 32, 32, 32},  {64, 128, 64, 32, 32},
    {64, 64, 32, 32, 32},   {64, 64, 64, 32, 32},   {32, 64, 64, 16, 32},   {64, 32, 64, 32, 16},
    {32, 128, 64, 32, 32},  {128, 32, 64, 32, 32},  {16, 128, 64, 16, 32},  {128, 16, 64, 32, 16},
    {32, 32, 64, 16, 16},   {16, 64, 64, 16, 16},   {64, 16, 64, 16, 16},   {16, 32, 64, 16, 16},
    {32, 16, 64, 16, 16},   {16, 16, 64, 16, 16},   {16, 16, 32, 16, 16},   {16, 32, 128, 16, 32},
    {16, 32, 256, 16, 32},  {16, 16, 256, 16, 16},  {32, 32, 128, 32, 32},  {32, 32, 256, 32, 32},
    {32, 64, 128, 32, 64},  {64, 32, 128, 64, 32},  {64, 64, 128, 64, 64}};

constexpr std::int64_t stage_counts[] = {1, 2, 3, 4};
constexpr std::int64_t part_counts[] = {1, 2, 3, 4, 6, 8, 12, 16};
constexpr std::int64_t ahead_counts[] = {1, 2, 4};
// If predictions are equal, the first one is taken.
constexpr std::int64_t depth_counts[] = {8, 4, 2, 1};

// Measured on an H100. For a group that has a processor for itself: its start and end, a step, what
// each thread copies, pieces of 16 x 8 x 16, and the minimum for a depth of 16; loads through
// registers. For parts: the second kernel, and what it reads. For divided steps: each part of one,
// each number that a thread adds up at the end, and the second barrier of a step if memory holds
// one step. Then the share of the shorter of latency and work that the longer one does not hide.
struct Costs {
  double start_us, step_us, copy_us, piece_us, sixteenth_us, fetch_us, launch_us,
      parts_bytes_per_us, vectors_per_us, depth_us, sum_us, wait_us, seen_latency;
};
// For tiles whose elements are known to threads.
constexpr Costs of_known_tiles{2.4, 0.1, 0.016, 0.0038, 0.04, 0.7, 2.3,
                               3e6, 7e3, 0,     0.008,  0,    0.05};
// For tiles whose elements are hidden: fitted to 62 tilings of 4096 x 4096 x 4096 and 16 x 4096 x
// 4096, from which they are 17 % away (root mean square), and 46 of the latter.
constexpr Costs of_opaque_tiles{6,     0.08,  0.012, 0.0033, 0.021, 0.32, 11,
                                1.4e6, 1.9e3, 0.02,  0,      0.06,  0.2};

double ceil_over(double a, std::int64_t b) { return std::ceil(a / static_cast<double>(b)); }

}  // namespace

std::int64_t TensorTiling::bytes() const {
  // A tile is stored along the depth or across it.
  const auto tile = [&](std::int64_t side) {
    return ceil_ratio(std::max(side * (k + row_gap), k * (side + row_gap)) * 2, 64) * 64;
  };
  return std::max(stages * (tile(m) + tile(n)),
                  depths * (m / rows * put_rows()) * (n + row_gap) * 4);
}

bool TensorTiling::fits(const TargetInfo& target) const {
  // The machine cannot distinguish more copies of one thread than this.
  constexpr std::int64_t most_copies = 48;
  if (std::min({m, n, k, rows, columns}) < 16 || stages < 1 || parts < 1) return false;
  if (depths < 1 || k % (16 * depths) != 0 || (depths > 1 && parts > 1)) return false;
  if (ahead < 1 || ahead > 4 || (ahead > 1 && stages > 2)) return false;
  return m % rows == 0 && n % columns == 0 && rows % 16 == 0 && columns % 16 == 0 && k % 16 == 0 &&
         m * k % (vector_width * threads()) == 0 && n * k % (vector_width * threads()) == 0 &&
         (depths > 1 || m * n % (vector_width * threads()) == 0) &&
         threads() <= target.group_threads &&
         (m + n) * k / (vector_width * threads()) * std::max(stages, ahead) <= most_copies &&
         bytes() <= target.group_bytes;
}

bool TensorTiling::divides_steps(const GroupProblem& p) const {
  if (ahead == 1) return true;
  return p.k.is_number() && ceil_ratio(ceil_ratio(p.k.number(), k), parts) % ahead == 0;
}

Tuning TensorTiling::named() const {
  return {{"tile_m", m},    {"tile_n", n},        {"tile_k", k},
          {"rows", rows},   {"columns", columns}, {"stages", stages},
          {"parts", parts}, {"depths", depths},   {"ahead", ahead}};
}

TensorTiling TensorTiling::of(const Tuning& t, const TensorTiling& otherwise) {
  return {value_or(t, "tile_m", otherwise.m),
          value_or(t, "tile_n", otherwise.n),
          value_or(t, "tile_k", otherwise.k),
          value_or(t, "rows", otherwise.rows),
          value_or(t, "columns", otherwise.columns),
          value_or(t, "stages", otherwise.stages),
          value_or(t, "parts", otherwise.parts),
          value_or(t, "depths", t.empty() ? otherwise.depths : 1),
          value_or(t, "ahead", t.empty() ? otherwise.ahead : 1),
          otherwise.strip};
}

double predicted_us(const GroupProblem& p, const TensorTiling& t) {
  // For the whole machine, and for one of its processors.
  constexpr double processors = 132, cache_bytes_per_us = 5.5e6, bytes_per_us = 1e5,
                   products_per_us = 2.1e6, shared_bytes = 220e3, registers = 65536,
                   threads_at_once = 2048;
  const Costs& c = t.strip > 0 ? of_opaque_tiles : of_known_tiles;
  const auto number = [](std::int64_t x) { return static_cast<double>(x); };
  const double m = typical(p.m), n = typical(p.n), k = typical(p.k), batch = typical(p.batch),
               parts = number(t.parts), threads = number(t.threads());
  const double groups = batch * ceil_over(m, t.m) * ceil_over(n, t.n) * parts,
               steps = ceil_over(ceil_over(k, t.k), t.parts), each = std::ceil(groups / processors);
  const double thread_registers =
      number(t.rows * t.columns) / 32 + number(t.rows + t.columns) / 4 + 56;
  const double resident = std::max(
      1.0, std::floor(std::min({shared_bytes / number(t.bytes()), threads_at_once / threads,
                                registers / (threads * std::min(thread_registers, 255.0))})));
  const double loaded = number((t.m + t.n) * t.k), sixteenths = number(t.k / 16 / t.depths),
               turns = std::ceil(threads / 128), pieces = number(t.rows / 16 * (t.columns / 8));
  const double one_step = c.step_us + loaded / 8 / threads * turns * c.copy_us +
                          sixteenths * std::max(c.sixteenth_us, pieces * turns * c.piece_us) +
                          (t.stages <= 2 ? c.fetch_us / number(t.ahead) : 0.0);
  const double latency = std::ceil(each / resident) * (c.start_us + steps * one_step);
  const double cache_us =
      loaded * 2 / std::min(bytes_per_us, cache_bytes_per_us / std::min(groups, processors));
  const double busy = std::max(
      {number(t.m * t.n * t.k) / products_per_us, loaded / 8 / c.vectors_per_us, cache_us});
  const double working = c.start_us + each * steps * busy;
  double us = std::max(latency, working);
  // The costs of hidden tiles were fitted with this term for divided steps only.
  if (t.strip == 0 || t.depths > 1) us += c.seen_latency * std::min(latency, working);
  if (t.parts > 1) us += c.launch_us + parts * m * n * batch * 8 / c.parts_bytes_per_us;
  if (t.depths > 1)
    us += number(t.depths - 1) * c.depth_us + number(t.depths * t.m * t.n) / threads * c.sum_us +
          (t.stages == 1 ? steps * c.wait_us : 0);
  return us;
}

std::vector<TensorTiling> tensor_tilings(const GroupProblem& p, const TargetInfo& target,
                                         TensorOperandsLie lie, std::size_t most) {
  struct Rated {
    TensorTiling tiling;
    double us;
  };
  std::vector<Rated> all;
  for (const TileForm& f : forms)
    for (const std::int64_t stages : stage_counts) {
      const bool is_copied = stages > 2;
      if (is_copied ? lie != TensorOperandsLie::in_vectors || target.has_opaque_tiles
                    : stages == 2 && !target.has_opaque_tiles)
        continue;
      for (const std::int64_t parts : part_counts) {
        // With fewer steps than stages the later stages would be empty.
        constexpr std::int64_t least_steps = 2;
        if (parts > 1 && (!p.k.is_number() || ceil_ratio(p.k.number(), f.k) < parts * least_steps))
          continue;
        for (const std::int64_t depths : depth_counts) {
          // With divided steps there are few groups, so each needs many bytes in flight.
          constexpr std::int64_t deep_stages = 4;
          if (depths > 1 && (parts > 1 || (stages < deep_stages && !target.has_opaque_tiles)))
            continue;
          for (const std::int64_t ahead : ahead_counts) {
            // Positions in images are long expressions, and each step ahead repeats them.
            if (ahead > 1 && (depths == 1 || p.is_convolution)) break;
            const TensorTiling t{f.m,    f.n,   f.k,    f.rows, f.columns,
                                 stages, parts, depths, ahead,  target.has_opaque_tiles ? 16 : 0};
            if (t.fits(target) && t.divides_steps(p)) all.push_back({t, predicted_us(p, t)});
          }
        }
      }
    }
  std::ranges::stable_sort(all, {}, &Rated::us);
  std::vector<TensorTiling> out;
  for (const Rated& r : all) {
    if (out.size() == most) break;
    out.push_back(r.tiling);
  }
  return out;
}

}  // namespace hone
