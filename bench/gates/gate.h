// Gates: each compares the ratio of two timings, measured side by side, with a bound, and prints
// one JSON line with all its attempts. Not a test: it needs a quiet machine.
#pragma once

#include <functional>
#include <string>

#include "compile/stats.h"

namespace hone::gates {

// A ratio of times. `of_least` is the ratio of the least times, which are least disturbed by other
// work on the same core; it is recorded only and does not affect the verdict.
struct Ratio : Interval {
  double of_least = 0;
};

// Interleaved rounds of two contenders. ratio_of returns the interval of time(a) / time(b), round
// by round. With one thread it uses the thread's own processor time, which is less affected by
// other work on the machine.
struct Race {
  std::function<void()> a, b;
  int threads = 1;
};
inline constexpr int rounds = 25;
Ratio ratio_of(const Race&);

// Make at most three attempts, until one passes. A floor passes if the median is at least the
// floor; a ceiling passes unless the whole 95 % interval is above it.
void at_least(const std::string& name, double floor, const std::function<Ratio()>& measure);
void at_most(const std::string& name, double ceiling, const std::function<Ratio()>& measure);
void only(std::string part);  // skips gates whose name does not contain `part`
int missed();                 // number of gates for which no attempt passed

// Prints the first line, which describes this machine.
void print_machine();

}  // namespace hone::gates
