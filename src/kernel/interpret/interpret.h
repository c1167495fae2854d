// Executes kernels from their statements: no code generation, plain memory. The threads of a group,
// the lanes of a loop and independent iterations of a grid run in lockstep, one operation for all
// of them at a time. Slow compared with machine code, but finds errors that machine code hides.
#pragma once

#include <memory>
#include <span>

#include "kernel/interpret/checks.h"
#include "kernel/kernel.h"

namespace hone {

// A kernel, prepared once. Immutable: may run in several threads at once.
class Interpreter {
 public:
  // Throws UserError for an invalid kernel, such as one with a barrier outside of a group.
  explicit Interpreter(const Kernel&);
  ~Interpreter();
  Interpreter(Interpreter&&) noexcept;

  // Runs iterations [begin, end) of the grid, on the memory of each parameter and the sizes in the
  // order of Kernel::sizes. A kernel with several grids runs as a whole: from 0 to its chunks.
  // Throws UserError that names the kernel, the statement, the iteration and the thread.
  void run(std::span<const std::span<std::byte>> params, std::span<const std::int64_t> sizes,
           std::int64_t begin, std::int64_t end, const InterpretChecks& = {}) const;

 private:
  struct Prepared;
  std::unique_ptr<const Prepared> prepared_;
};

// Runs all iterations of the grid once.
void interpret(const Kernel&, std::span<const std::span<std::byte>> params,
               std::span<const std::int64_t> sizes, const InterpretChecks& = {});

}  // namespace hone
