// The contents of Binary::code for this backend: a header, then a cubin. The target half writes it;
// the device half uses it to launch.
#pragma once

#include <cstdint>

namespace hone::cuda {

inline constexpr std::uint64_t code_magic = 0x3330414455434f48;  // "HOCUDA03"

// What a kernel copies from global to shared memory through the L1 cache.
enum class CacheCopies : std::uint32_t {
  none,
  again,  // some of it more than once: by several groups, or by one group in several steps
  once,   // of each parameter, every group copies a part of its own, or all groups copy the same
};

// A kernel's arguments, in order: the address of each parameter; with scratch, its address and the
// bytes per thread (i64); each size (i64).
struct CodeHeader {
  std::uint64_t magic = code_magic;
  std::uint32_t params = 0, sizes = 0;
  std::uint32_t threads = 1;       // of a block
  std::uint32_t shared_bytes = 0;  // of a block
  std::uint32_t has_scratch = 0;
  std::uint32_t cubin_bytes = 0;
  std::uint32_t alignment = 1;      // bytes; for all parameters of the first kernel
  std::uint32_t groups = 1;         // groups of the kernel per block
  std::uint32_t blocks = 1;         // per group; if more than 1, a cluster
  std::uint32_t waits = 0;          // 1: it waits for the previous launch itself
  std::uint32_t has_unaligned = 0;  // 1: has a second kernel for other operands
  CacheCopies copies = CacheCopies::none;
};
static_assert(sizeof(CodeHeader) == 56);

// The names of the kernels in a cubin.
inline constexpr const char* kernel_symbol = "hone_kernel";
inline constexpr const char* unaligned_symbol = "hone_kernel_unaligned";
// Every device with clusters allows this many blocks per cluster. A kernel must request more
// explicitly.
inline constexpr std::uint32_t portable_cluster_blocks = 8;
// Shared memory available to a block without a request.
inline constexpr std::uint32_t default_shared_bytes = 48 << 10;
// The part reserved for reductions across threads and for the driver.
inline constexpr std::uint32_t kept_shared_bytes = 9 << 10;

}  // namespace hone::cuda
