// Machine code made runnable: copied to executable memory, with the helpers' addresses filled in.
// Knows no compiler.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "backend/cpu/device/kernel_abi.h"
#include "base/executable_memory.h"
#include "plan/binary.h"

namespace hone {

// Owns the code; functions taken from it live as long as it does.
class LoadedBinary {
 public:
  // nullptr when there is none of that name.
  KernelFunction find(std::string_view name) const;
  // Throws UserError when there is none of that name.
  KernelFunction entry(std::string_view name) const;
  std::size_t code_bytes() const { return memory_.size(); }

 private:
  friend LoadedBinary load(std::span<const Binary* const>, std::string_view);
  ExecutableMemory memory_;
  std::map<std::string, std::size_t, std::less<>> offsets_;
};

// Several binaries share one mapping; their entries must have different names. Throws UserError
// naming `where` when the processor, or the flag HONE_CPU_ISA, does not allow the binary's
// instruction set.
LoadedBinary load(std::span<const Binary* const>, std::string_view where = "machine code");
LoadedBinary load(const Binary&, std::string_view where = "machine code");

}  // namespace hone
