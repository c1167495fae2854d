#include "cli/strategy_table.h"

#include <algorithm>
#include <cstdio>

#include "base/amount.h"
#include "cli/run/table.h"

namespace hone::cli {

namespace {

// The last column: remarks that the times do not show.
std::string remark(const StrategyRecord& r, const StrategyRecord& chosen) {
  if (r.chosen) return "<- chosen";
  if (!r.failure.empty()) return r.failure;
  if (r.ms >= chosen.ms) return "";
  return r.high < chosen.low ? "faster, but an earlier run chose otherwise"
                             : "no significant difference";
}

}  // namespace

std::string strategy_table(const std::vector<StrategyRecord>& records) {
  Table table({"strategy", "one run", "95 % interval", "of best", "error", "limit", "compile",
               "memory", ""});
  const auto chosen = std::ranges::find(records, true, &StrategyRecord::chosen);
  for (const StrategyRecord& r : records) {
    if (!r.failure.empty() && r.ms < 0) {
      table.add({r.name, "-", "-", "-", "-", "-", "-", "-", r.failure});
      continue;
    }
    char ratio[24];
    std::snprintf(ratio, sizeof ratio, "%.2fx", r.ratio_to_best);
    const std::string interval = r.low == r.high
                                     ? std::string("timed once")
                                     : cat(milliseconds(r.low), " .. ", milliseconds(r.high));
    table.add({r.name, milliseconds(r.ms), interval, r.ratio_to_best > 0 ? ratio : "-",
               small_number(r.max_error), small_number(r.error_limit), milliseconds(r.compile_ms),
               bytes_text(r.peak_bytes), remark(r, *chosen)});
  }
  return table.text();
}

}  // namespace hone::cli
