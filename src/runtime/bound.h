// The steps of a variant for one set of sizes: every expression evaluated and checked, bodies laid
// out flat with jumps between them. Holds no addresses: those change from run to run.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "runtime/device.h"
#include "runtime/executable.h"

namespace hone {

struct BoundOp {
  enum class Kind : std::uint8_t { launch, call, jump, jump_unless, refuse, require, wait };
  Kind kind = Kind::launch;
  bool is_small = false;      // not worth other threads
  std::uint32_t first = 0;    // of its pointers
  std::uint32_t scalars = 0;  // launch: the first of its sizes
  std::uint32_t target = 0;   // jump: next op; call, refuse, require: index of what
  std::int64_t chunks = 1;    // launch
  ProgramEntry entry{};       // launch
  const Step* step = nullptr;
};

// Where an operand starts.
struct BoundAddress {
  PlanBuffer::Kind kind = PlanBuffer::Kind::arena;
  std::uint32_t index = 0;
  std::int64_t offset = 0;
};

struct BoundProgram {
  std::vector<BoundOp> ops;
  std::vector<BoundAddress> addresses;
  std::vector<std::int64_t> scalars;
  std::vector<std::unique_ptr<BoundCall>> calls;
  std::vector<std::string> refusals;
  std::size_t arena_bytes = 0, arena_lower_bound = 0;
  std::size_t kernel_scratch = 0, library_scratch = 0;  // per thread; they share one piece
  // What its own tables take, and what libraries took for its calls, as measured.
  std::size_t table_bytes = 0, library_bytes = 0;
};

// `values` are those of executable.symbols(). Throws UserError when sizes overflow, a view leaves
// its buffer, or a library cannot do what is asked; inside a body such a fault becomes a refusal
// that is raised only when the body is reached.
BoundProgram bind_steps(const Executable&, const Variant&, std::span<const std::int64_t> values);

// The sizes that a plan's inputs decide, in order of name.
std::vector<Dim> input_symbols(const Plan&);
// Whether the guard's comparison is true of its two values.
bool holds(const Guard&, std::int64_t a, std::int64_t b);
// Value of an expression over input_symbols(), whose values are given.
std::int64_t evaluate(const Dim&, std::span<const Dim> symbols,
                      std::span<const std::int64_t> values);

}  // namespace hone
