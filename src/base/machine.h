// What the operating system says of this machine, for people. Nothing is measured and nothing here
// decides how code is made.
#pragma once

#include <cstdint>
#include <string>

namespace hone {

struct Machine {
  std::string processor;        // "Intel(R) Xeon(R) Processor"; empty when not told
  int processors = 0;           // that this process may use
  std::int64_t l1 = 0, l2 = 0;  // bytes of data cache of one processor; 0: not told
  std::int64_t l3 = 0;
  std::int64_t memory = 0;  // bytes
};

Machine this_machine();

// Seconds of processor time since the machine started: of everything, and of this process. Zeros
// when the system does not tell.
struct BusyTime {
  double all = 0, own = 0;
};
BusyTime busy_time();
// The share of the machine's processors that others took during `seconds` that ended now; 0 to 1.
double share_of_others(const BusyTime& before, double seconds);

// Bytes that this process can use: the machine's memory, or less where a control group says so.
std::int64_t usable_memory();

}  // namespace hone
