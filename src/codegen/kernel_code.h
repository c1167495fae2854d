// Where the code of kernels comes from: a cache, or a compilation.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "codegen/target.h"

namespace hone {

class KernelCode {
 public:
  struct Compiled {
    const Binary* binary = nullptr;
    std::string entry;
    Hash128 key;
  };

  virtual ~KernelCode() = default;
  virtual const Target& target() const = 0;
  // In the order of the kernels. Thread-safe; each Binary keeps its address. Throws UserError when
  // the target cannot render one of them.
  virtual std::vector<Compiled> operator()(std::span<const Kernel* const>) = 0;
};

}  // namespace hone
