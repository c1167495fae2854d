// The outcome of one test under one strategy, as plain data that can be sent between processes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace hone::conformance {

enum class Verdict : std::uint8_t {
  passed,
  wrong,    // another value, type or size than the suite expects
  refused,  // rejected as unsupported or invalid, with a reason
  fault,    // an internal invariant did not hold
  crash,    // the process died
  timeout,
};
inline constexpr std::string_view verdict_names[] = {"passed", "wrong", "refused",
                                                     "fault",  "crash", "timeout"};
inline std::string_view name_of(Verdict v) { return verdict_names[static_cast<int>(v)]; }

struct Outcome {
  Verdict verdict = Verdict::passed;
  std::string reason;  // empty when passed
  double import_ms = 0, compile_ms = 0, run_ms = 0;
  // Functions that the host computes on any device, each listed once.
  std::vector<std::string> on_host;

  double total_ms() const { return import_ms + compile_ms + run_ms; }
};

Json to_json(const Outcome&);
Outcome outcome_from(const Json&);

// The reason without the parts that differ between tests: names, numbers, paths. Used as rows of
// the table.
std::string kind_of_reason(const Outcome&);

}  // namespace hone::conformance
