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

struct TimingOptions {
  int rounds = 20;
  double least_sample_ms = 0.2;  // a sample repeats its candidate until it is this long
  double most_seconds = 10;      // stops early, after at least three rounds
  // Leaves out what takes so many times as long as the best of those before it; 0: nothing.
  double drop_above = 0;
  // From six rounds on leaves out what is clearly slower than the best; stops when one is left.
  bool stops_when_clear = false;
};

// Milliseconds of one run of each candidate, one row a candidate, one column a round. Rounds are
// interleaved and each starts with another candidate, so that drift and neighbours affect all of
// them alike. A candidate that was left out has a shorter row, of one element at least.
std::vector<std::vector<double>> time_interleaved(std::span<const std::function<void()>>,
                                                  const TimingOptions& = {});

// Interval of a[i] / b[i], over the rounds that both have.
Interval paired_ratio(std::span<const double> a, std::span<const double> b);
// The 95 % interval of the ratio lies below 0.98: the default is kept for anything less.
bool is_clearly_faster(std::span<const double> a, std::span<const double> b);

}  // namespace hone
