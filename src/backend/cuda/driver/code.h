// What Binary::code holds for this backend: a header, then a cubin. The target half writes it, the
// device half launches by it.
#pragma once

#include <cstdint>

namespace hone::cuda {

inline constexpr std::uint64_t code_magic = 0x3330414455434f48;  // "HOCUDA03"

// A kernel's arguments, in order: the address of each parameter; with scratch, its address and the
// bytes of each thread (i64); each size (i64).
struct CodeHeader {
  std::uint64_t magic = code_magic;
  std::uint32_t params = 0, sizes = 0;
  std::uint32_t threads = 1;       // of a block
  std::uint32_t shared_bytes = 0;  // of a block
  std::uint32_t has_scratch = 0;
  std::uint32_t cubin_bytes = 0;
  std::uint32_t alignment = 1;      // of every parameter of the first kernel, in bytes
  std::uint32_t groups = 1;         // of the kernel's threads, in a block
  std::uint32_t blocks = 1;         // of a group, which are a cluster then
  std::uint32_t waits = 0;          // 1: it waits for the launch before it by itself
  std::uint32_t has_unaligned = 0;  // 1: there is a second kernel for other operands
  // 1: it copies from global to shared memory through the first cache.
  std::uint32_t copies_through_cache = 0;
};
static_assert(sizeof(CodeHeader) == 56);

// What a cubin calls its kernels.
inline constexpr const char* kernel_symbol = "hone_kernel";
inline constexpr const char* unaligned_symbol = "hone_kernel_unaligned";
// Every device that has clusters allows this many blocks in one. A kernel must ask for more.
inline constexpr std::uint32_t portable_cluster_blocks = 8;
// Shared memory that a block has without being asked.
inline constexpr std::uint32_t default_shared_bytes = 48 << 10;
// Of all that a block has: for what reductions of threads and the driver take.
inline constexpr std::uint32_t kept_shared_bytes = 9 << 10;

}  // namespace hone::cuda
