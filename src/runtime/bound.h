// The steps of a variant for one set of sizes: every expression is evaluated and checked, bodies
// are flattened with jumps between them. Holds no addresses: they change from run to run.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "runtime/device.h"
#include "runtime/executable.h"
#include "runtime/host_step.h"

namespace hone {

struct BoundOp {
  enum class Kind : std::uint8_t {
    launch,
    call,
    transfer,  // from one device to another
    host,
    jump,
    jump_unless,
    refuse,
    require,
    measure,
    record,
    wait
  };
  Kind kind = Kind::launch;
  bool is_small = false;       // too little work for several threads
  bool updates_state = false;  // writes to memory that outlives the run
  std::uint16_t stream = 0;    // of the executable's
  std::uint32_t first = 0;     // of its operands' places
  std::uint32_t scalars = 0;   // launch: the first of its sizes
  // jump: next op; call, transfer, host, refuse, require, measure: index in the list of that kind;
  // record, wait: the event; launch: its scratch in units of scratch_unit
  std::uint32_t target = 0;
  std::int64_t chunks = 1;  // launch
  KernelHandle entry{};     // launch
  const Step* step = nullptr;

  static constexpr std::size_t scratch_unit = 64;
};

// Where an operand starts.
struct BoundAddress {
  PlanBuffer::Kind kind = PlanBuffer::Kind::arena;
  std::uint16_t device = 0;  // of the executable's
  std::uint32_t index = 0;
  std::int64_t offset = 0;
};

// A copy between the host's memory and that of the stream's device.
struct BoundTransfer {
  std::size_t bytes = 0;
  bool is_upload = false;
  std::uint16_t host = 0;  // the other device, which shares the host's memory
};

struct BoundProgram;

// The steps that follow a measured size. They are bound when the sizes are known, and kept for the
// last values of these sizes.
struct BoundTail {
  struct Size {
    const Step* step = nullptr;
    std::size_t symbol = 0;  // index in LoadedEntry::symbols; none if the size is a number
    Dim size = 0, most = 0;
    std::int64_t value = -1;  // that `program` is bound to
  };
  std::vector<Size> sizes;
  const std::vector<Step>* steps = nullptr;
  std::size_t first = 0;  // of these steps
  bool in_body = false;   // else in the function itself, up to its end
  std::unique_ptr<BoundProgram> program;

  static constexpr std::size_t none = ~std::size_t{0};
};

// What a program needs of one device.
struct DeviceNeeds {
  std::size_t arena_bytes = 0, arena_lower_bound = 0;
  std::size_t kernel_scratch = 0, library_scratch = 0;  // per thread; both use the same memory

  std::size_t scratch() const {
    return kernel_scratch > library_scratch ? kernel_scratch : library_scratch;
  }
};

// How many placements (addresses of the operands of a run) are remembered: for callers that
// alternate between a few buffers.
inline constexpr std::size_t most_placements = 4;

// All ops with the operands of one placement; recorded after some runs with it.
struct Recorded {
  std::uint64_t placement = 0;
  std::unique_ptr<Recording> recording = nullptr;
  int runs = 0;
  std::uint64_t last_use = 0;
};

struct BoundProgram {
  std::vector<std::int64_t> values;  // of LoadedEntry::symbols; not_known: to be measured
  std::vector<BoundTail> tails;
  std::vector<DeviceMemory> places;  // memory that the addresses refer to
  std::uint64_t placement = 0;       // StepRunner::Memory::placement of `places`
  std::vector<BoundOp> ops;
  std::vector<BoundAddress> addresses;
  std::vector<OperandReach> reaches;  // of the addresses
  std::vector<std::int64_t> scalars;
  std::vector<std::unique_ptr<BoundCall>> calls;
  std::vector<BoundTransfer> transfers;
  std::vector<HostStep> hosts;
  std::vector<std::string> refusals;
  std::vector<DeviceNeeds> needs;  // per device of the executable
  bool updates_states = false;     // an op does
  bool waits_for_host = false;     // the host reads a value or computes a step
  std::array<Recorded, most_placements> recorded;
  std::uint64_t uses = 0;  // of `recorded`
  // Bytes of its own tables, and bytes that libraries allocated for its calls, as measured.
  std::size_t table_bytes = 0, library_bytes = 0;
};

// Bytes that a result may need, as an expression of the input sizes.
inline Dim result_bytes(const Variant& v, std::size_t i) {
  return v.result_bytes.empty() ? byte_count(v.results[i]) : v.result_bytes[i];
}

// Memory of the program and of all that it owns.
std::size_t bound_bytes(const BoundProgram&);

// `values` are those of the entry's symbols. Throws UserError when sizes overflow, a view leaves
// its buffer, or a library cannot do what is asked; inside a body such a fault becomes a refusal
// that is raised only when the body is reached.
BoundProgram bind_steps(const Executable&, const Variant&, std::span<const std::int64_t> values);
// Binds the steps of a tail of `from` for measured sizes. Throws UserError when a size is outside
// of what its step allows.
void bind_tail(const Executable&, const Variant&, const BoundProgram& from, BoundTail&,
               std::span<const std::int64_t> found);

}  // namespace hone
