// A machine as data: what candidates are sized by and times are predicted from. Opens nothing and
// compiles nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hone {

struct TargetInfo {
  std::string name;  // Binary::target of what is made for it
  int vector_bits = 256;
  int vector_registers = 16;
  std::int64_t l1_bytes = 32 << 10, l2_bytes = 1 << 20;  // of one thread
  // Results from so many bytes on are written past the caches: little of them would be left there
  // when they are read, and what is written is not read from memory first.
  std::int64_t stream_bytes = 8 << 20;

  // Work of one chunk of a loop nest, in bytes moved; an operation counts as half a byte.
  std::int64_t chunk_bytes = 48 << 10;

  // Machines whose threads run in groups that share memory; 0 threads: there are no groups.
  int group_threads = 0;         // most in one group
  int row_threads = 0;           // most in one that shares no memory; 0: as many
  std::int64_t group_bytes = 0;  // of memory that a group shares
  int subgroup_threads = 1;      // that run in step
  // The most blocks that a group may be made of, each with group_bytes for what its threads spread
  // in it; 0: nothing is spread.
  int row_blocks = 0;
  bool multiplies_halves = false;  // subgroups of 32 multiply tiles of f16 and bf16
  // They do so as matrices of f16 of which no thread knows its part: a subgroup fills, multiplies
  // and stores them as a whole.
  bool has_opaque_tiles = false;

  // Rates of one thread: multiply-adds of f32 x 2, bytes read plus written. Typical figures until
  // they are measured on the machine.
  double fma_gflops = 50;
  double cache_gbytes = 60, memory_gbytes = 15;
  double launch_us = 1;  // one step of a plan, without its work

  int lanes(std::int64_t element_bytes) const {
    return static_cast<int>(vector_bits / 8 / element_bytes);
  }
};

// What a machine was measured to do in this process, by all threads together.
struct MachineRates {
  struct Copy {
    std::int64_t bytes = 0;  // of the buffer that each thread copies
    double gbytes = 0;       // read plus written per second, in 10^9
  };
  int threads = 0;
  double fma_gflops = 0;     // multiply-adds of f32 x 2
  std::vector<Copy> copies;  // by size, smallest first
};

}  // namespace hone
