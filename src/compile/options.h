// Options of a compilation, and its report besides the plan.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compile/pipeline.h"
#include "ir/function.h"
#include "kernel/kernel.h"
#include "plan/plan.h"
#include "runtime/device.h"

namespace hone {

enum class Verification : std::uint8_t { none, kernels, model };

struct Backend;
struct CompileStore;

struct CompileOptions {
  // One of strategies() except `ref`. A backend's name: generated kernels only; a library's: the
  // library wherever it fits; multi: spread over this machine's devices, refused if there is only
  // one; auto: the best candidate of each group, measured or predicted, and when measuring, the
  // fastest kind of device, or multi if clearly faster.
  std::string strategy = "auto";
  std::vector<std::string> targets = {};  // from the backend's target names; empty: the first
  // For multi: each of these kinds of devices computes a part; a kind that is named twice uses two
  // devices. Empty: the fastest ones.
  std::vector<std::string> devices = {};
  // Null: the one that the strategy names, else the default. Without a device of the backend,
  // nothing can be checked or timed.
  const Backend* backend = nullptr;
  Verification verification = Verification::kernels;
  bool measure = false;    // time the candidates of each group; else predict times
  bool tune = false;       // also time other forms of the fastest candidates
  bool remeasure = false;  // ignore times of earlier runs
  double budget = 15;      // seconds that measuring may take
  // The plan will be joined with plans for other kinds of machines, so it needs the same variants
  // and groups: none for ranges of sizes where other choices are faster, and no groups that only
  // this kind of machine prefers.
  bool is_joined = false;
  bool slow_library = true;  // use the library even where it has only a reference implementation
  int threads = 0;           // for compilation and timed runs; 0: as many as the machine has
  bool cache = true;         // the compile cache on disk
  // Shared by compilations; null: the cache on disk only.
  std::shared_ptr<CompileStore> store = nullptr;
  std::function<void(const std::string&)> progress = {};  // one line at a time; may be empty
  bool one_op_groups = false;
  bool strip_graph = false;
  bool keep = false;  // keep functions and kernels in the CompileReport
  PassOptions passes = {};
  std::size_t most_variants = 16;
  // Limit of MemoryReport::peak() in bytes; a plan that needs more is refused during planning.
  std::optional<std::int64_t> max_memory = {};
  bool is_written = false;  // the limit also counts the file that will hold the plan
  std::function<void(Plan&)> on_plan = {};  // called with the finished plan before it is checked
};

// The compilation of one variant; has the number of the plan's variant. Kept on request.
struct VariantReport {
  Function imported;                        // narrowed to the sizes that the guards allow
  std::vector<PassRecord> passes;           // the last function is the scheduled one
  std::vector<std::vector<NodeId>> groups;  // per group of the plan: its nodes in that function
};

// One way to compute a variant on this machine's devices.
struct WayReport {
  std::size_t variant = 0;            // of the plan; of the source if one device runs everything
  std::vector<std::uint16_t> places;  // per group, the device: 0 for the first
  std::string alone = {};  // the kind of device that runs everything; `places` is then empty
  double ms = -1;          // median; -1: not timed
  bool is_chosen = false;
};

// Results of a compilation, for tables, reports, tests and HONE_DEBUG.
struct CompileReport {
  std::vector<PassRecord> passes;
  double passes_ms = 0, schedule_ms = 0, codegen_ms = 0, verify_ms = 0, measure_ms = 0,
         prepare_ms = 0, total_ms = 0;
  int groups = 0, kernels = 0, compiled = 0, from_cache = 0, verified = 0, verified_from_cache = 0;
  int verified_shortly = 0;  // of both: those whose time was up before all inputs were tried
  int whole = 0, whole_from_cache = 0;  // functions that were checked as a whole
  int library_groups = 0;               // groups for which a library candidate was chosen
  std::vector<WayReport> ways = {};     // compared ways, if there are several devices
  // Only with CompileOptions::keep.
  std::vector<VariantReport> variants;
  std::vector<Kernel> kernels_made;  // of Plan::kernels, in order
};

// The names of all strategies of this build: ref, each backend that has a device and each of their
// libraries, multi, auto.
std::vector<std::string_view> strategies();
// Whether it is one of strategies() other than `ref`. Does not query other backends' devices.
bool can_compile(std::string_view strategy);
// Why this build or machine does not support a strategy; empty when it can be tried.
std::string absence_of(std::string_view strategy);
// Whether the strategy is a library's name.
bool names_library(std::string_view strategy);
const Backend& backend_of(const CompileOptions&);
// The device that runs plans compiled with these options.
std::shared_ptr<Device> device_of(const CompileOptions&);

}  // namespace hone
