// Makes machine code runnable: copies it to executable memory and fills in the helpers' addresses.
// Does not depend on a compiler.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "backend/cpu/device/kernel_abi.h"
#include "base/executable_memory.h"
#include "plan/binary.h"

namespace hone {

// Owns the code; functions from it are valid while it lives.
class LoadedBinary {
 public:
  // nullptr when there is no such entry.
  KernelFunction find(std::string_view name) const;
  // Throws UserError when there is no such entry.
  KernelFunction entry(std::string_view name) const;
  std::size_t code_bytes() const { return memory_.size(); }

 private:
  friend LoadedBinary load(std::span<const Binary* const>, std::string_view);
  ExecutableMemory memory_;
  std::map<std::string, std::size_t, std::less<>> offsets_;
};

// Several binaries share one mapping; their entries must have different names. Throws UserError
// naming `where` when the processor or the flag HONE_CPU_ISA does not allow the binary's
// instruction set.
LoadedBinary load(std::span<const Binary* const>, std::string_view where = "machine code");
LoadedBinary load(const Binary&, std::string_view where = "machine code");

}  // namespace hone
