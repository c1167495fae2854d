// The passes of the compiler as a list, and their runner. Not the scheduler.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/function.h"
#include "pass/rewrite.h"

namespace hone {

struct Pass {
  std::string_view name;
  std::string_view does;
  Function (*run)(const Function&, RuleLog*);
  bool is_needed = false;  // later passes require it
};

// All passes of the compiler in order. Start reading here.
std::span<const Pass> pipeline();

struct PassRecord {
  std::string_view name;
  double ms = 0;
  std::size_t nodes_before = 0, nodes_after = 0;
  bool changed = false;
  // Only with PassOptions::keep or watch.
  std::optional<Function> after;
  RuleLog rules;
};

struct PassOptions {
  // Experiments and tests with planted faults pass another list, which must outlive the call.
  std::span<const Pass> list = pipeline();
  // Names of passes to leave out; an unknown or a needed one is a UserError.
  std::vector<std::string> off = {};
  bool verify_each = false;                           // always on in debug builds
  bool keep = false;                                  // keep functions and rules in the records
  std::function<void(const PassRecord&)> watch = {};  // called after each pass
};

// Runs the list: times and verifies each. Types of parameters and results are kept; a pass that
// changes them is an InternalError that names it.
Function run_passes(const Function&, const PassOptions& = {},
                    std::vector<PassRecord>* records = nullptr);

}  // namespace hone
