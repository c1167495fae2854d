#include "backend/cpu/target/measure.h"

#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "backend/cpu/isa/isa.h"

namespace hone::cpu {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// 12 chains hide a latency of 4 to 6 cycles at two multiply-adds per cycle.
constexpr int chains = 12, trips = 2000;

[[gnu::target("avx512f")]] float chains_512(float seed) {
  __m512 sum[chains], a = _mm512_set1_ps(seed), b = _mm512_set1_ps(1e-9f);
#pragma GCC unroll 12
  for (int i = 0; i < chains; ++i) sum[i] = _mm512_set1_ps(static_cast<float>(i));
  for (int t = 0; t < trips; ++t) {
#pragma GCC unroll 12
    for (int i = 0; i < chains; ++i) sum[i] = _mm512_fmadd_ps(sum[i], a, b);
  }
  __m512 all = sum[0];
#pragma GCC unroll 12
  for (int i = 1; i < chains; ++i) all = _mm512_add_ps(all, sum[i]);
  float lanes[16];
  _mm512_storeu_ps(lanes, all);
  return lanes[0] + lanes[5] + lanes[10] + lanes[15];
}

[[gnu::target("avx2,fma")]] float chains_256(float seed) {
  __m256 sum[chains], a = _mm256_set1_ps(seed), b = _mm256_set1_ps(1e-9f);
#pragma GCC unroll 12
  for (int i = 0; i < chains; ++i) sum[i] = _mm256_set1_ps(static_cast<float>(i));
  for (int t = 0; t < trips; ++t) {
#pragma GCC unroll 12
    for (int i = 0; i < chains; ++i) sum[i] = _mm256_fmadd_ps(sum[i], a, b);
  }
  __m256 all = sum[0];
#pragma GCC unroll 12
  for (int i = 1; i < chains; ++i) all = _mm256_add_ps(all, sum[i]);
  float lanes[8];
  _mm256_storeu_ps(lanes, all);
  return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}

}  // namespace

double measure_fma_gflops(double milliseconds) {
  const bool wide = allowed_isa() >= Isa::v4;
  const double work = 2.0 * chains * trips * (wide ? 16 : 8) / 1e9;
  double best = 0;
  volatile float sink = 0;
  for (Clock::time_point start = Clock::now(); seconds_since(start) * 1000 < milliseconds;) {
    Clock::time_point once = Clock::now();
    sink = sink + (wide ? chains_512(0.999f) : chains_256(0.999f));
    best = std::max(best, work / seconds_since(once));
  }
  return best;
}

double measure_copy_gbytes(std::size_t bytes, double milliseconds) {
  std::vector<char> from(bytes, 1), to(bytes, 2);
  double best = 0;
  volatile char sink = 0;
  for (Clock::time_point start = Clock::now(); seconds_since(start) * 1000 < milliseconds;) {
    const int repeats = static_cast<int>(std::max<std::size_t>(1, (1 << 18) / bytes));
    Clock::time_point once = Clock::now();
    for (int i = 0; i < repeats; ++i) {
      std::memcpy(to.data(), from.data(), bytes);
      sink = to[static_cast<std::size_t>(i) % bytes];
    }
    best = std::max(best, 2.0 * static_cast<double>(bytes) * repeats / seconds_since(once) / 1e9);
  }
  static_cast<void>(sink);
  return best;
}

namespace {

// The sum of the rates that the threads measure concurrently.
template <class Measure>
double together(int threads, const Measure& measure) {
  std::vector<double> rates(static_cast<std::size_t>(threads));
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < rates.size(); ++i)
    others.emplace_back([&, i] { rates[i] = measure(); });
  rates[0] = measure();
  others.clear();
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

}  // namespace

MachineRates measure_rates(int threads) {
  const std::size_t share = (std::size_t{64} << 20) / static_cast<std::size_t>(threads);
  const std::size_t sizes[] = {12 << 10, 256 << 10, 4 << 20, std::max<std::size_t>(share, 8 << 20)};
  MachineRates out;
  out.threads = threads;
  out.fma_gflops = together(threads, [] { return measure_fma_gflops(10); });
  for (std::size_t bytes : sizes)
    out.copies.push_back({static_cast<std::int64_t>(bytes), together(threads, [&] {
                            return measure_copy_gbytes(bytes, bytes > (1 << 20) ? 60 : 10);
                          })});
  return out;
}

}  // namespace hone::cpu
