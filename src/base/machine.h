// What the operating system reports about this machine, for display. Nothing is measured, and
// nothing here influences generated code.
#pragma once

#include <cstdint>
#include <string>

namespace hone {

struct Machine {
  std::string processor;        // "Intel(R) Xeon(R) Processor"; empty when unknown
  int processors = 0;           // available to this process
  std::int64_t l1 = 0, l2 = 0;  // bytes of data cache of one processor; 0: unknown
  std::int64_t l3 = 0;
  std::int64_t memory = 0;  // bytes
};

Machine this_machine();

// Seconds of processor time since the machine started: of all processes, and of this one. Zeros
// when the system does not report it.
struct BusyTime {
  double all = 0, own = 0;
};
BusyTime busy_time();
// The share of the machine's processors that other processes used in the last `seconds`; 0 to 1.
double share_of_others(const BusyTime& before, double seconds);

// Bytes that this process can use: the machine's memory, or less where a control group limits it.
std::int64_t usable_memory();

}  // namespace hone
