// A session's runs as they are timed: inputs and outputs lie where the plan's devices want them.
#pragma once

#include <memory>
#include <vector>

#include "runtime/session.h"

namespace hone {

class TimedRun {
 public:
  // The first run copies the inputs to devices that have their own memory, which no other does but
  // for donated ones: each run overwrites these, and gets the same contents every time.
  TimedRun(Session&, const std::vector<Array>& inputs);
  void operator()();

 private:
  struct Memory {
    Memory(DType, std::int64_t elements);
    TensorRef ref() const;
    DType dtype;
    std::vector<std::int64_t> dims;  // elements in a row until they are set
    std::size_t bytes;
    OwnedMemory memory;
  };

  Session* session_;
  const std::vector<Array>& inputs_;
  std::vector<std::unique_ptr<Memory>> donated_;  // per input; null: read where it lies
  std::vector<std::unique_ptr<Memory>> outputs_;
};

}  // namespace hone
