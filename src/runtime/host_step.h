// A host function made ready for operands of given sizes. The host computes it whatever device the
// step is for: operands in other memory are brought to the host and back.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "host/function.h"
#include "runtime/device.h"

namespace hone {

class HostStep {
 public:
  // Throws UserError when the function is not known, or takes other operands.
  HostStep(std::string_view name, std::vector<CallOperand> operands,
           std::span<const std::pair<std::string, std::int64_t>> settings);

  // The stream is finished before the function begins, and afterwards.
  void run(const Device&, Stream&, std::span<const DeviceMemory> operands) const;
  std::size_t operands() const { return operands_.size(); }

 private:
  const HostFunction* function_;
  HostCall call_;
  struct Operand {
    std::size_t bytes;
    bool is_written;
  };
  std::vector<Operand> operands_;
};

}  // namespace hone
