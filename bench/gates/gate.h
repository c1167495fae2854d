// Gates: ratios of two ways to do one thing, timed side by side, against a bound. Each prints one
// JSON line with all of its attempts. Not a test: it needs a quiet machine.
#pragma once

#include <functional>
#include <string>

#include "compile/stats.h"

namespace hone::gates {

// A ratio of times, and that of the least times, which a neighbour on the same core disturbs least:
// it is recorded and decides nothing.
struct Ratio : Interval {
  double of_least = 0;
};

// Interleaved rounds of two contenders, and the interval of time(a) / time(b), round by round. With
// one thread the times are the thread's own, which other work on the machine disturbs less.
struct Race {
  std::function<void()> a, b;
  int threads = 1;
};
inline constexpr int rounds = 25;
Ratio ratio_of(const Race&);

// At most three attempts, until one holds: for a floor its median is no lower, for a ceiling its 95
// % interval is not wholly above.
void at_least(const std::string& name, double floor, const std::function<Ratio()>& measure);
void at_most(const std::string& name, double ceiling, const std::function<Ratio()>& measure);
void only(std::string part);  // skips gates whose name does not hold it
int missed();                 // gates of which no attempt held

// The line about this machine that comes first.
void print_machine();

}  // namespace hone::gates
