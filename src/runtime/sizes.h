// The size symbols of an entry, sorted by name, and expressions over them.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>

#include "plan/plan.h"

namespace hone {

// Value of a measured size that is not known yet.
inline constexpr std::int64_t not_known = -1;

// The symbols that an entry's inputs determine; and these together with the measured ones. Sorted
// by name.
Dims input_symbols(const PlanEntry&);
Dims all_symbols(const PlanEntry&);
// Value of an expression over symbols that are sorted by name.
std::int64_t evaluate(const Dim&, std::span<const Dim> symbols,
                      std::span<const std::int64_t> values);

// The same for many expressions, of which a plan has few different ones: each is computed once. The
// symbols, values and expressions must live as long.
class SizeValues {
 public:
  SizeValues(std::span<const Dim> symbols, std::span<const std::int64_t> values)
      : symbols_(symbols), values_(values) {}

  std::int64_t operator()(const Dim& d) {
    if (d.is_number()) return d.number();
    const auto [at, is_new] = known_.try_emplace(d.expr());
    if (!is_new) return at->second;
    try {
      return at->second = evaluate(d, symbols_, values_);
    } catch (...) {
      known_.erase(at);
      throw;
    }
  }

 private:
  std::span<const Dim> symbols_;
  std::span<const std::int64_t> values_;
  std::unordered_map<const DimExpr*, std::int64_t> known_;
};

}  // namespace hone
