// Functions to a Plan: passes, grouping, candidates, their choice, code, verification. Knows no
// file format.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compile/pipeline.h"
#include "ir/function.h"
#include "kernel/kernel.h"
#include "plan/plan.h"
#include "ref/evaluate.h"

namespace hone {

// What is compiled: one function for each set of assumptions about sizes.
struct SourceVariant {
  std::vector<Guard> guards;
  Function function;
};
struct Source {
  std::string name;
  std::vector<SourceVariant> variants;
  // Inputs for whole-model checks and timing; made up from the types when empty.
  std::vector<std::vector<Array>> samples;
};

enum class Verification : std::uint8_t { none, kernels, model };

struct Backend;

struct CompileOptions {
  // cpu: generated kernels only; onednn: the library wherever it fits; auto: the best candidate of
  // each group, measured or predicted; multi needs several devices and is refused where there is
  // one.
  std::string strategy = "auto";
  std::vector<std::string> targets = {"native"};  // x86-64-v3, x86-64-v4, native
  // Null: backend("cpu"). Of a backend without a device nothing can be checked or timed.
  const Backend* backend = nullptr;
  Verification verification = Verification::kernels;
  bool measure = false;  // time the candidates of each group; else predict
  int threads = 0;       // of compilation and of timed runs; 0: the machine's
  bool cache = true;     // the compile cache on disk
  bool one_op_groups = false;
  bool strip_graph = false;
  bool keep = false;  // functions and kernels in the CompileReport
  PassOptions passes = {};
  std::size_t most_variants = 16;
  std::optional<std::int64_t> max_memory = {};  // bytes; larger plans are refused before they run
  std::function<void(Plan&)> on_plan = {};      // sees the finished plan before it is checked
};

// One variant on its way to the plan's variant of the same number. Kept on request.
struct VariantReport {
  Function imported;                        // for the sizes that the guards let in
  std::vector<PassRecord> passes;           // the last function is what was scheduled
  std::vector<std::vector<NodeId>> groups;  // per group of the plan: its nodes of that function
};

// What a compilation did, for tables, reports, tests and HONE_DEBUG.
struct CompileReport {
  std::vector<PassRecord> passes;
  double passes_ms = 0, schedule_ms = 0, codegen_ms = 0, verify_ms = 0, measure_ms = 0,
         prepare_ms = 0, total_ms = 0;
  int groups = 0, kernels = 0, compiled = 0, from_cache = 0, verified = 0, verified_from_cache = 0;
  int whole = 0, whole_from_cache = 0;  // functions that were checked whole
  int library_groups = 0;               // groups for which a library candidate was chosen
  // With CompileOptions::keep only.
  std::vector<VariantReport> variants;
  std::vector<Kernel> kernels_made;  // of Plan::kernels, in order
};

Plan compile(const Source&, const CompileOptions& = {}, CompileReport* = nullptr);

// All that sizes must satisfy: the variant's guards, and the equalities its function recorded.
std::vector<Guard> conditions_of(const SourceVariant&);
// Whether the guards hold for these sizes.
bool guards_hold(const std::vector<Guard>&, const Sizing& sizes);

// Why this build and machine have nothing for a strategy to do; empty when it can be tried.
std::string absence_of(std::string_view strategy);

}  // namespace hone
