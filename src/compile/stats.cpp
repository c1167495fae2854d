#include "compile/stats.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

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

namespace {

class Timing {
 public:
  Timing(std::span<const std::function<void()>> candidates, const TimingOptions& options)
      : candidates_(candidates), options_(options), times_(candidates.size()) {}

  std::vector<std::vector<double>> run() {
    for (std::size_t i = 0; i < candidates_.size(); ++i) start(i);
    const Clock::time_point start = Clock::now();
    for (int round = 0; round < options_.rounds && !running_.empty(); ++round) {
      if (round >= 3 && milliseconds(Clock::now() - start) > options_.most_seconds * 1000) break;
      if (options_.stops_when_clear && round >= 6) leave_slow_out();
      if (options_.stops_when_clear && round >= 6 && running_.size() == 1) break;
      for (std::size_t k = 0; k < running_.size(); ++k) {
        const std::size_t i = running_[(k + static_cast<std::size_t>(round)) % running_.size()];
        times_[i].push_back(run_ms(candidates_[i], repeats_[i]));
      }
    }
    return std::move(times_);
  }

 private:
  // Only the first run binds libraries, copies inputs to the device and touches memory for the
  // first time: it may take this much longer, or a multiple of what that took for others.
  static constexpr double usual_first_ms = 100, of_others = 2;
  static constexpr double most_repeated_ms = 10;
  static constexpr double agree = 0.7;

  void start(std::size_t i) {
    const double first = run_ms(candidates_[i], 1);
    double once = first;
    bool is_out = is_too_slow(first - std::max(usual_first_ms, of_others * most_first_ms_));
    if (!is_out) {
      once = std::max(run_ms(candidates_[i], 1), 1e-6);
      most_first_ms_ = std::max(most_first_ms_, first - once);
      // A short run may have been interrupted; libraries may need several runs to warm up.
      double before = first;
      for (int again = 0;
           again < 3 && is_too_slow(once) && (once < most_repeated_ms || once < agree * before);
           ++again) {
        before = once;
        once = std::min(once, std::max(run_ms(candidates_[i], 1), 1e-6));
      }
      is_out = is_too_slow(once);
      best_ = std::min(best_, once);
    }
    repeats_.push_back(
        static_cast<int>(std::clamp(std::ceil(options_.least_sample_ms / once), 1.0, 1e5)));
    if (is_out)
      times_[i].push_back(once);
    else
      running_.push_back(i);
  }
  bool is_too_slow(double ms) const {
    return options_.drop_above > 0 && ms > options_.drop_above * best_;
  }

  void leave_slow_out() {
    const std::size_t best = *std::ranges::min_element(
        running_, {}, [&](std::size_t i) { return median_interval(times_[i]).median; });
    std::erase_if(running_, [&](std::size_t i) {
      return i != best && paired_ratio(times_[i], times_[best]).low > 1 / 0.98;
    });
  }

  std::span<const std::function<void()>> candidates_;
  const TimingOptions& options_;
  std::vector<std::vector<double>> times_;
  std::vector<int> repeats_;
  std::vector<std::size_t> running_;
  double best_ = std::numeric_limits<double>::infinity();
  double most_first_ms_ = 0;  // largest extra time of a first run over the second
};

}  // namespace

std::vector<std::vector<double>> time_interleaved(std::span<const std::function<void()>> candidates,
                                                  const TimingOptions& options) {
  return Timing(candidates, options).run();
}

Interval paired_ratio(std::span<const double> a, std::span<const double> b) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) ratios.push_back(a[i] / b[i]);
  return median_interval(ratios);
}

bool is_clearly_faster(std::span<const double> a, std::span<const double> b) {
  return paired_ratio(a, b).high < 0.98;
}

}  // namespace hone
