// Timing that can be trusted on a noisy machine: interleaved rounds, medians, distribution-free
// intervals of paired ratios. Not a profiler.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace hone {

struct Interval {
  double median = 0, low = 0, high = 0;  // 95 % interval of the median, by order statistics
};

// Needs at least one sample; with fewer than six the interval is the whole range.
Interval median_interval(std::span<const double> samples);

struct RaceOptions {
  int rounds = 20;
  double least_sample_ms = 0.2;  // a sample repeats its contender until it is this long
  double most_seconds = 10;      // stops early, after at least three rounds
};

// Milliseconds of one run of each contender, one row a contender, one column a round. Rounds are
// interleaved and each starts with another contender, so that drift and neighbours hit all alike.
std::vector<std::vector<double>> race(std::span<const std::function<void()>> contenders,
                                      const RaceOptions& = {});

// Interval of a[i] / b[i].
Interval paired_ratio(std::span<const double> a, std::span<const double> b);
// By more than noise: what is chosen without a clock gives way to nothing less.
bool is_clearly_faster(std::span<const double> a, std::span<const double> b);

}  // namespace hone
