// A host function that is prepared for operands of given sizes. It always runs on the host:
// operands in a device's memory are copied to the host and back.
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
  // Throws UserError when the function is unknown or does not take these operands.
  HostStep(std::string_view name, std::vector<CallOperand> operands,
           std::span<const std::pair<std::string, std::int64_t>> settings);

  // Waits for the stream before the function starts, and again afterwards.
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
