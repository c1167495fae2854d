#include "compile/stats.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/error.h"

namespace hone {

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

double run_ms(const std::function<void()>& f, int times) {
  Clock::time_point start = Clock::now();
  for (int i = 0; i < times; ++i) f();
  return milliseconds(Clock::now() - start) / times;
}

}  // namespace

Interval median_interval(std::span<const double> samples) {
  HONE_ASSERT(!samples.empty(), "no samples");
  std::vector<double> s(samples.begin(), samples.end());
  std::sort(s.begin(), s.end());
  std::size_t n = s.size();
  double median = n % 2 ? s[n / 2] : (s[n / 2 - 1] + s[n / 2]) / 2;
  if (n < 6) return {median, s.front(), s.back()};
  // The median lies between the order statistics n/2 -+ 0.98 sqrt(n) with probability 0.95
  // (normal approximation of the binomial).
  double half = 0.98 * std::sqrt(static_cast<double>(n));
  auto low = static_cast<std::size_t>(std::max(0.0, std::floor(static_cast<double>(n) / 2 - half)));
  auto high =
      std::min(n - 1, static_cast<std::size_t>(std::ceil(static_cast<double>(n) / 2 + half)));
  return {median, s[low], s[high]};
}

std::vector<std::vector<double>> race(std::span<const std::function<void()>> contenders,
                                      const RaceOptions& options) {
  std::size_t n = contenders.size();
  std::vector<std::vector<double>> times(n);
  std::vector<int> repeats(n, 1);
  for (std::size_t i = 0; i < n; ++i) {
    contenders[i]();  // warms caches and pages
    double once = std::max(run_ms(contenders[i], 1), 1e-6);
    repeats[i] = static_cast<int>(std::clamp(std::ceil(options.least_sample_ms / once), 1.0, 1e5));
  }
  Clock::time_point start = Clock::now();
  for (int round = 0; round < options.rounds; ++round) {
    if (round >= 3 && milliseconds(Clock::now() - start) > options.most_seconds * 1000) break;
    for (std::size_t k = 0; k < n; ++k) {
      std::size_t i = (k + static_cast<std::size_t>(round)) % n;
      times[i].push_back(run_ms(contenders[i], repeats[i]));
    }
  }
  return times;
}

Interval paired_ratio(std::span<const double> a, std::span<const double> b) {
  HONE_ASSERT(a.size() == b.size(), "paired samples differ in number");
  std::vector<double> ratios;
  for (std::size_t i = 0; i < a.size(); ++i) ratios.push_back(a[i] / b[i]);
  return median_interval(ratios);
}

bool is_clearly_faster(std::span<const double> a, std::span<const double> b) {
  return paired_ratio(a, b).high < 0.98;
}

}  // namespace hone
