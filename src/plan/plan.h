// A Plan: functions over shared states; for each part of a function the kernel or library call, the
// place of every buffer, and measurements. Plain printable data; the compiler fills it in, the
// runtime runs it. Not a loaded program.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/binary.h"
#include "plan/self_test.h"
#include "type/array.h"
#include "type/bounds.h"
#include "type/capacity.h"
#include "type/type.h"

namespace hone {

// A buffer and the source of its memory. Offsets and sizes are Dims, evaluated once per new set of
// sizes.
struct PlanBuffer {
  enum class Kind : std::uint8_t {
    param,     // the caller's input `index`
    result,    // the caller's output `index`
    weight,    // Plan::weights[index], read-only
    prepared,  // Plan::prepared[index]: written by the prepare steps, read-only afterwards
    arena,     // `offset` bytes into the session's arena
  };
  Kind kind = Kind::arena;
  std::uint32_t index = 0;
  Dim offset = 0;  // arena only, a multiple of 64
  Dim bytes = 0;
  // Index in Variant::devices of the device whose memory holds it. An input or a constant that
  // several devices read has a buffer on each; a result has one buffer.
  std::uint16_t device = 0;
};

// A strided window into a buffer. Strides are in elements, the offset in bytes.
struct View {
  std::uint32_t buffer = 0;
  Dim offset = 0;
  DType dtype = DType::f32;
  Dims dims;
  Dims strides;
};

// One action of a plan. Steps form a tree: if, while and call have bodies.
struct Step {
  enum class Kind : std::uint8_t {
    launch,   // kernel `index` over `chunks` chunks
    library,  // `name`, "LIBRARY.FUNCTION", configured by `settings`
    host,     // host function `name`
    // operands[0] -> operands[1], equal dims. Between two devices, both operands are dense and one
    // of the devices uses the host's memory; `device` is the other one, whose stream copies.
    copy,
    collective,  // reserved; a plan with one is refused
    record,      // event `index` marks the stream's work so far
    wait,        // the stream continues when the work last marked by event `index` is finished
    branch,      // if: predicate operands[0] (bool scalar); body, otherwise
    loop,        // while: run `otherwise` (condition), test operands[0], run `body`, repeat
    call,        // body in its own scope (name is shown)
    refuse,      // throws UserError(name) when scalars[0] != scalars[1], or always if there are no
                 // scalars
    // Throws UserError when operands[0], an i64 scalar, is not 0. The message has `name`, that
    // number, and the allowed range scalars[0] to scalars[1].
    require,
    measure,  // sets symbol scalars[0] to operands[0] (i64 scalar), at most scalars[1]
  };
  Kind kind = Kind::launch;
  // Index in Variant::devices, and one of its streams. Steps of one stream run in order, those of
  // different streams in any order that events allow. A step that the host evaluates (a test, a
  // requirement, a measured size, a host function) waits for its stream first.
  std::uint16_t device = 0, stream = 0;
  static constexpr std::uint32_t no_group = ~0u;
  std::uint32_t index = 0;         // launch: Plan::kernels; record, wait: the event
  std::uint32_t group = no_group;  // Variant::groups entry it belongs to
  std::string name;
  std::vector<View> operands;  // launch and library: in the kernel's parameter order
  Few<bool, 8> written;        // per operand
  Dims scalars;                // launch: the sizes argument
  Dim chunks = 1;              // launch: iterations of the kernel's grid
  Dim scratch_bytes = 0;       // per thread
  std::vector<std::pair<std::string, std::int64_t>> settings;  // library and host
  std::vector<Step> body, otherwise;
};

// Calls f for every step, including those in bodies.
template <class Steps, class F>
void for_each_step(Steps& steps, const F& f) {
  for (auto& s : steps) {
    f(s);
    for_each_step(s.body, f);
    for_each_step(s.otherwise, f);
  }
}

// A kernel: an entry of a binary.
struct PlanKernel {
  std::uint32_t binary = 0;
  std::string entry;
  Hash128 hash;  // of the kernel's structure, target and compiler version
  // Threads that run one iteration of the grid together, and bytes of memory that they share.
  std::uint32_t group_threads = 1, group_bytes = 0;
};

// A candidate that was considered for a group.
struct CandidateRecord {
  std::string name;            // "generated", a library, ...
  double ms = -1;              // median of its timed runs; -1: not timed
  double low = -1, high = -1;  // 95 % interval of ms
  double predicted_ms = -1;
  double error = -1;    // max |got - wide| / max |wide| when verified; -1: not verified
  std::string refused;  // why it could not be used; empty if it could
};

// A group of the graph, for explain and reports.
struct GroupRecord {
  std::string name;     // "conv+relu", "softmax"
  std::string origins;  // ONNX nodes or source lines
  std::string chosen;   // candidate name
  std::string reason;   // "measured", "predicted", "only candidate"
  Dim bytes = 0;        // read + written, ideal
  Dim flops = 0;
  // Null: none. Shared by groups that compute the same.
  std::shared_ptr<const std::vector<CandidateRecord>> considered;

  std::span<const CandidateRecord> candidates() const {
    return considered ? std::span(*considered) : std::span<const CandidateRecord>();
  }
};

// a OP b over the symbols of the plan.
struct Guard {
  enum class Kind : std::uint8_t { equal, not_equal, less_equal, greater };
  Kind kind = Kind::equal;
  Dim a = 0, b = 0;
  bool operator==(const Guard&) const = default;
};
// Whether the guard's comparison holds for these values.
inline bool holds(const Guard& g, std::int64_t a, std::int64_t b) {
  return g.kind == Guard::Kind::equal        ? a == b
         : g.kind == Guard::Kind::not_equal  ? a != b
         : g.kind == Guard::Kind::less_equal ? a <= b
                                             : a > b;
}

// One device of a variant; runs steps and holds buffers.
struct PlanDevice {
  std::string name;    // from the lists of backends; empty: any
  std::string target;  // target of its code; "any" when no step needs a specific one
  std::uint16_t streams = 1;
  Dim arena_bytes = 0;
  Dim arena_lower_bound = 0;  // maximum over the steps of the live bytes
};

// One compiled form of the function; used when its guards hold and the machine has its devices.
struct Variant {
  std::vector<PlanDevice> devices = {{}};  // at least one
  std::uint32_t events = 0;
  std::vector<Guard> guards;
  std::vector<PlanBuffer> buffers;
  std::vector<Step> steps;
  std::vector<Step> prepare;  // weights to prepared buffers; run once by the compiler
  std::vector<GroupRecord> groups;
  std::vector<Type> results;  // result types in this variant
  // Data-dependent sizes: symbols that measure steps bind. Offsets and sizes of buffers, scratch
  // and results' memory use their upper bounds.
  std::vector<DimBound> measured;
  Dims result_bytes;  // per result: the memory that it may need; empty: that of its type
};

// Sum over its devices.
inline Dim arena_bytes(const Variant& v) {
  Dim sum = 0;
  for (const PlanDevice& d : v.devices) sum = sum + d.arena_bytes;
  return sum;
}

struct StrategyRecord {
  std::string name;
  double ms = -1, low = -1, high = -1;  // median and 95 % interval of one run
  double ratio_to_best = -1;            // median of paired ratios
  double max_error = -1;                // against the wide reference, relative to max |wide|
  double error_limit = -1;
  double compile_ms = -1;
  std::int64_t peak_bytes = -1;
  std::string failure;  // why it was not compared
  bool chosen = false;
};

struct PlanParam {
  std::string name;
  Type type;
  bool donated = false;
  // The plan supports only these contents. Small.
  std::optional<Array> required = {};
  // A parameter that is stored to, or that is a state: its memory has room for more along an axis.
  std::optional<Capacity> capacity = {};
};

struct PlanWeight {
  std::string name;
  Array data;
};

// Bytes that prepare steps wrote to the memory of a device.
class ResidentBytes {
 public:
  virtual ~ResidentBytes() = default;
  virtual std::size_t size() const = 0;
  virtual Storage download() const = 0;
};

struct PreparedBuffer {
  std::string name;
  Type type;
  Storage data;  // empty before prepare, and if the bytes are only on the device
  std::shared_ptr<const ResidentBytes> resident = nullptr;

  std::size_t size() const { return resident ? resident->size() : data.size(); }
  Storage content() const { return resident ? resident->download() : data; }
};

struct PlanCheck {
  Dim a, b;
  std::string message;
};

// Memory used to read a plan from a file, for memory reports; not stored in files.
struct PlanReading {
  std::size_t mapped = 0;     // bytes of the file; 0: the plan was made in memory
  std::size_t transient = 0;  // of heap, freed once the plan was built
};

// Memory with a name and a type that outlives runs: a weight that is trained, a moment of an
// optimiser, a cache. Entries read it and store results to it.
struct PlanState {
  static constexpr std::int64_t alignment = 64;
  std::string name;         // unique in the plan, such as "net.conv.weight"
  std::string group;        // of states that are kept, saved and exchanged together
  Type type;                // fixed sizes; along the open axis the most
  std::int64_t offset = 0;  // of its bytes in the memory of its group, a multiple of `alignment`
  // Its value when a State is made; none: zeros.
  std::optional<Array> start = {};
  // Its size along this axis, at most that of the type, is a part of its value, as in a cache that
  // grows. Its start is as long as the array; without one, 0.
  std::optional<std::uint32_t> open_axis = {};

  std::optional<Capacity> capacity() const {
    if (!open_axis) return std::nullopt;
    return Capacity{*open_axis, type.shape.dims[*open_axis].number()};
  }
};

// One function of a plan: what a session runs.
struct PlanEntry {
  static constexpr std::int32_t no_state = -1;

  std::string name = "main";
  std::vector<PlanParam> params;
  std::vector<PlanParam> results;  // donated: result i may share the buffer of a donated parameter
  std::vector<std::int32_t> result_alias;  // per result: donated parameter it overwrites, or -1
  // Per parameter: the state that it is, in Plan::states, or no_state: an input of the caller. A
  // result that overwrites such a parameter updates the state. Empty: there are none.
  std::vector<std::int32_t> states;
  std::vector<PlanCheck> checks;
  std::vector<Variant> variants;
  std::vector<StrategyRecord> strategies;
  std::string graph;                // text of the imported function, unless stripped
  std::vector<Array> graph_arrays;  // its large constants
  std::vector<SelfTest> self_tests;

  std::int32_t state_of(std::size_t param) const {
    return states.empty() ? no_state : states[param];
  }
  bool is_input(std::size_t param) const { return state_of(param) == no_state; }
  // The parameter whose memory holds the result at the end of a run; null: it has its own.
  const PlanParam* stored_to(std::size_t result) const {
    const std::int32_t param = result_alias[result];
    return param < 0 ? nullptr : &params[static_cast<std::size_t>(param)];
  }
  // The memory of the caller for the result is that of the donated parameter. With a capacity, the
  // session keeps that memory, and copies both.
  bool shares_memory(std::size_t result) const {
    const PlanParam* param = stored_to(result);
    return param && !param->capacity;
  }
  // The state that a result updates, or no_state: an output of the caller.
  std::int32_t updated_by(std::size_t result) const {
    const std::int32_t param = result_alias[result];
    return param < 0 ? no_state : state_of(static_cast<std::size_t>(param));
  }
};

// The caller's inputs: the parameters that are no states; and outputs: the results that update
// none.
inline std::vector<const PlanParam*> inputs_of(const PlanEntry& e) {
  std::vector<const PlanParam*> out;
  for (std::size_t i = 0; i < e.params.size(); ++i)
    if (e.is_input(i)) out.push_back(&e.params[i]);
  return out;
}
inline std::vector<const PlanParam*> outputs_of(const PlanEntry& e) {
  std::vector<const PlanParam*> out;
  for (std::size_t i = 0; i < e.results.size(); ++i)
    if (e.updated_by(i) == PlanEntry::no_state) out.push_back(&e.results[i]);
  return out;
}

struct Plan {
  static constexpr int format_version = 2;
  std::string name;
  std::string strategy;      // "auto", or a backend's name, ...
  std::string verification;  // "model", "kernels", "none"
  bool measured = false;     // choices were made by timing; false: by prediction
  std::vector<PlanState> states;
  std::vector<PlanEntry> entries = std::vector<PlanEntry>(1);  // at least one
  std::vector<PlanKernel> kernels;
  std::vector<Binary> binaries;
  std::vector<PlanWeight> weights;
  std::vector<PreparedBuffer> prepared;
  std::string machine;  // JSON: processor, measured rates, date, version
  // content_hash() of the verified plan; none: not recorded.
  std::optional<Hash128> content;
  PlanReading reading;

  // The first entry; a model's plan has no other.
  PlanEntry& main() { return entries.front(); }
  const PlanEntry& main() const { return entries.front(); }
};

}  // namespace hone
