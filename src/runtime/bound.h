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
  enum class Kind : std::uint8_t {
    launch,
    call,
    jump,
    jump_unless,
    refuse,
    require,
    wait,
    measure
  };
  Kind kind = Kind::launch;
  bool is_small = false;      // not worth other threads
  std::uint32_t first = 0;    // of its pointers
  std::uint32_t scalars = 0;  // launch: the first of its sizes
  // jump: next op; call, refuse, require, measure: index of what; launch: its scratch in units of
  // buffer_alignment
  std::uint32_t target = 0;
  std::int64_t chunks = 1;  // launch
  ProgramEntry entry{};     // launch
  const Step* step = nullptr;
};

// Where an operand starts.
struct BoundAddress {
  PlanBuffer::Kind kind = PlanBuffer::Kind::arena;
  std::uint32_t index = 0;
  std::int64_t offset = 0;
};

struct BoundProgram;

// The steps after one that measures a size: they are bound when it is known, and kept for the last
// value that it had.
struct BoundTail {
  const std::vector<Step>* steps = nullptr;
  std::size_t first = 0;   // of them
  bool in_body = false;    // else the function's own, to its end
  std::size_t symbol = 0;  // of Executable::symbols(); none for a size that is a number
  Dim size = 0;            // the symbol, or that number
  std::int64_t most = 0;
  std::int64_t value = -1;  // that `program` is bound to
  std::unique_ptr<BoundProgram> program;

  static constexpr std::size_t none = ~std::size_t{0};
};

struct BoundProgram {
  std::vector<std::int64_t> values;  // of Executable::symbols(); not_known: data decides it later
  std::vector<BoundTail> tails;
  std::vector<void*> pointers;  // what the addresses were placed at
  std::uint64_t placement = 0;  // and when
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

inline constexpr std::int64_t not_known = -1;

// Bytes of memory that a result may need, over the sizes of inputs.
inline Dim result_bytes(const Variant& v, std::size_t i) {
  return v.result_bytes.empty() ? byte_count(v.results[i]) : v.result_bytes[i];
}

// Memory of the program and of what it holds.
std::size_t bound_bytes(const BoundProgram&);

// `values` are those of executable.symbols(). Throws UserError when sizes overflow, a view leaves
// its buffer, or a library cannot do what is asked; inside a body such a fault becomes a refusal
// that is raised only when the body is reached.
BoundProgram bind_steps(const Executable&, const Variant&, std::span<const std::int64_t> values);
// The steps of a tail of `from`, for a size that was found to be n.
void bind_tail(const Executable&, const Variant&, const BoundProgram& from, BoundTail&,
               std::int64_t n);

// The sizes that a plan's inputs decide, then those that data decides too; in order of name.
Dims input_symbols(const Plan&);
Dims all_symbols(const Plan&);
// Whether the guard's comparison is true of its two values.
bool holds(const Guard&, std::int64_t a, std::int64_t b);
// Value of an expression over symbols in order of name, whose values are given.
std::int64_t evaluate(const Dim&, std::span<const Dim> symbols,
                      std::span<const std::int64_t> values);

}  // namespace hone
