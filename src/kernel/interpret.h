// Kernels executed from their statements: no code generation, plain memory. The threads of a group,
// the lanes of a loop and independent iterations of a grid run in step, one operation for all of
// them at a time. Slow next to machine code, but it finds what machine code hides.
#pragma once

#include <memory>
#include <span>

#include "kernel/interpret_checks.h"
#include "kernel/kernel.h"

namespace hone {

// A kernel, prepared once. Immutable: may run in several threads at once.
class Interpreter {
 public:
  // Throws UserError for a kernel that makes no sense, such as a barrier outside of a group.
  explicit Interpreter(const Kernel&);
  ~Interpreter();
  Interpreter(Interpreter&&) noexcept;

  // Iterations [begin, end) of the grid, on the memory of each parameter and the sizes in the order
  // of Kernel::sizes. A kernel with several grids runs as a whole: from 0 to its chunks. Throws
  // UserError that names the kernel, the statement, the iteration and the thread.
  void run(std::span<const std::span<std::byte>> params, std::span<const std::int64_t> sizes,
           std::int64_t begin, std::int64_t end, const InterpretChecks& = {}) const;

 private:
  struct Prepared;
  std::unique_ptr<const Prepared> prepared_;
};

// All iterations of the grid, once.
void interpret(const Kernel&, std::span<const std::span<std::byte>> params,
               std::span<const std::int64_t> sizes, const InterpretChecks& = {});

}  // namespace hone
