// A machine as data, used to size candidates and to predict times. Opens nothing and compiles
// nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hone {

struct TargetInfo {
  std::string name;  // Binary::target of code compiled for it
  int vector_bits = 256;
  int vector_registers = 16;
  std::int64_t l1_bytes = 32 << 10, l2_bytes = 1 << 20;  // of one thread
  // Results of at least this size bypass the caches: little of them would remain cached until they
  // are read, and a bypassing store does not first read the line from memory.
  std::int64_t stream_bytes = 8 << 20;

  // Work of one chunk of a loop nest, in bytes moved; an operation counts as half a byte.
  std::int64_t chunk_bytes = 48 << 10;

  // Machines whose threads run in groups that share memory; 0: the machine has no groups.
  int group_threads = 0;         // maximum in one group
  int row_threads = 0;           // maximum in a group that shares no memory; 0: the same
  std::int64_t group_bytes = 0;  // of shared memory per group
  // Of a long row and what is read with it, such as weights, that one thread takes.
  std::int64_t row_thread_bytes = 1 << 10;
  // Maximum number of blocks in a group. Each block has group_bytes for the spread arrays of its
  // threads; 0: spread memory is not supported.
  int row_blocks = 0;
  bool multiplies_halves = false;  // subgroups of 32 multiply tiles of f16 and bf16
  // The tiles are opaque f16 matrices: no thread knows which elements it holds, and a subgroup
  // fills, multiplies and stores them as a whole.
  bool has_opaque_tiles = false;

  // A launch may start before the previous one has finished, and wait for it inside.
  bool overlaps_launches = false;

  // Rates of one thread: f32 multiply-adds x 2, bytes read plus written. Typical figures until
  // measured on the machine.
  double fma_gflops = 50;
  double cache_gbytes = 60, memory_gbytes = 15;
  double launch_us = 1;  // overhead of one step of a plan

  int lanes(std::int64_t element_bytes) const {
    return static_cast<int>(vector_bits / 8 / element_bytes);
  }
};

// Rates measured on this machine in this process, of all threads together.
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
