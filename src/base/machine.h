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

// Bytes that this process can use: the machine's memory, or less where a control group says so.
std::int64_t usable_memory();

}  // namespace hone
