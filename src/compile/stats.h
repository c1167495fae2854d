// Robust timing on noisy machines: interleaved rounds, medians, distribution-free intervals of
// paired ratios. Not a profiler.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace hone {

struct Interval {
  double median = 0, low = 0, high = 0;  // 95 % interval of the median, by order statistics
};

// Needs at least one sample; with fewer than six, the interval is the whole range.
Interval median_interval(std::span<const double> samples);

struct TimingOptions {
  int rounds = 20;
  double least_sample_ms = 0.2;  // a sample repeats its candidate for at least this long
  double most_seconds = 10;      // stops early, after at least three rounds
  // Drops a candidate that is this many times slower than the best of those before it; 0: none.
  double drop_above = 0;
  // After six rounds, drops candidates that are clearly slower than the best; stops when one is
  // left.
  bool stops_when_clear = false;
};

// Milliseconds per run: one row per candidate, one column per round. Rounds are interleaved and
// each starts with another candidate, so that drift and other processes affect all candidates
// alike. A dropped candidate has a shorter row, of at least one element.
std::vector<std::vector<double>> time_interleaved(std::span<const std::function<void()>>,
                                                  const TimingOptions& = {});

// Interval of a[i] / b[i], over the rounds that both have.
Interval paired_ratio(std::span<const double> a, std::span<const double> b);
// True if the 95 % interval of the ratio lies below 0.98; for smaller differences the default is
// kept.
bool is_clearly_faster(std::span<const double> a, std::span<const double> b);

}  // namespace hone
