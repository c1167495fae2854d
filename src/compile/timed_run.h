// Runs of a session for timing: inputs and outputs are already in the memory of the plan's devices.
#pragma once

#include <memory>
#include <vector>

#include "runtime/session.h"

namespace hone {

class TimedRun {
 public:
  // The first run copies the inputs to devices that have their own memory. Later runs copy only
  // donated inputs: each run overwrites these and must start from the same contents.
  TimedRun(Session&, const std::vector<Array>& inputs);
  void operator()();

 private:
  struct Memory {
    Memory(DType, std::int64_t elements);
    TensorRef ref() const;
    DType dtype;
    std::vector<std::int64_t> dims;  // one axis until they are set
    std::size_t bytes;
    OwnedMemory memory;
  };

  Session* session_;
  const std::vector<Array>& inputs_;
  std::vector<std::unique_ptr<Memory>> donated_;  // per input; null: read in place
  std::vector<std::unique_ptr<Memory>> outputs_;
};

}  // namespace hone
