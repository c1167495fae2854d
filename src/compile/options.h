// How functions are compiled, and what a compilation reports besides the plan.
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
  // One of strategies() but `ref`. A backend's name: generated kernels only; a library's: the
  // library wherever it fits; multi: spread over the devices here, refused where there is one;
  // auto: the best candidate of each group, measured or predicted, and when measuring, the fastest
  // kind of device, or multi where it is clearly faster than that.
  std::string strategy = "auto";
  std::vector<std::string> targets = {};  // of the backend's target names; empty: the first
  // Of multi: each of these kinds of devices computes a part, one that is named twice on two of
  // them. Empty: those that are fastest.
  std::vector<std::string> devices = {};
  // Null: the one that the strategy names, else the default. Of a backend without a device nothing
  // can be checked or timed.
  const Backend* backend = nullptr;
  Verification verification = Verification::kernels;
  bool measure = false;    // time the candidates of each group; else predict
  bool tune = false;       // time other forms of the fastest candidates, too
  bool remeasure = false;  // also what was measured in earlier runs
  double budget = 15;      // seconds that measuring may take
  // A variant for a range of sizes where other choices are faster. Plans that are joined need the
  // same variants.
  bool size_ranges = true;
  bool slow_library = true;  // the library also where it has only a reference implementation
  int threads = 0;           // of compilation and of timed runs; 0: the machine's
  bool cache = true;         // the compile cache on disk
  // What compilations share; null: the cache on disk alone.
  std::shared_ptr<CompileStore> store = nullptr;
  std::function<void(const std::string&)> progress = {};  // one line at a time; may be empty
  bool one_op_groups = false;
  bool strip_graph = false;
  bool keep = false;  // functions and kernels in the CompileReport
  PassOptions passes = {};
  std::size_t most_variants = 16;
  // Bytes of MemoryReport::peak(); a plan that needs more is refused when it is planned.
  std::optional<std::int64_t> max_memory = {};
  std::function<void(Plan&)> on_plan = {};  // sees the finished plan before it is checked
};

// One variant on its way to the plan's variant of the same number. Kept on request.
struct VariantReport {
  Function imported;                        // for the sizes that the guards let in
  std::vector<PassRecord> passes;           // the last function is what was scheduled
  std::vector<std::vector<NodeId>> groups;  // per group of the plan: its nodes of that function
};

// One way to compute a variant on the devices here.
struct WayReport {
  std::size_t variant = 0;            // of the plan; of the source where one device has all of it
  std::vector<std::uint16_t> places;  // per group, the device: 0 for the first
  std::string alone = {};             // the kind of device that has all of it; places is empty then
  double ms = -1;                     // median; -1: not timed
  bool is_chosen = false;
};

// What a compilation did, for tables, reports, tests and HONE_DEBUG.
struct CompileReport {
  std::vector<PassRecord> passes;
  double passes_ms = 0, schedule_ms = 0, codegen_ms = 0, verify_ms = 0, measure_ms = 0,
         prepare_ms = 0, total_ms = 0;
  int groups = 0, kernels = 0, compiled = 0, from_cache = 0, verified = 0, verified_from_cache = 0;
  int whole = 0, whole_from_cache = 0;  // functions that were checked whole
  int library_groups = 0;               // groups for which a library candidate was chosen
  std::vector<WayReport> ways = {};     // that were compared, where there are several devices
  // With CompileOptions::keep only.
  std::vector<VariantReport> variants;
  std::vector<Kernel> kernels_made;  // of Plan::kernels, in order
};

// The names of all strategies of this build: ref, each backend that has a device and each of their
// libraries, multi, auto.
std::vector<std::string_view> strategies();
// Whether it is one of them and not `ref`. Asks no other backend for its devices.
bool can_compile(std::string_view strategy);
// Why this build and machine have nothing for a strategy to do; empty when it can be tried.
std::string absence_of(std::string_view strategy);
// Whether the strategy is a library's name.
bool names_library(std::string_view strategy);
const Backend& backend_of(const CompileOptions&);
// What plans that are compiled with these options run on.
std::shared_ptr<Device> device_of(const CompileOptions&);

}  // namespace hone
