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
// symbols and values must live as long.
class SizeValues {
 public:
  SizeValues(std::span<const Dim> symbols, std::span<const std::int64_t> values)
      : symbols_(symbols), values_(values) {}

  std::int64_t operator()(const Dim& d) {
    if (d.is_number()) return d.number();
    if (const auto at = known_.find(d.expr()); at != known_.end()) return at->second.value;
    const std::int64_t value = evaluate(d, symbols_, values_);
    known_.emplace(d.expr(), Known{d, value});
    return value;
  }

 private:
  std::span<const Dim> symbols_;
  std::span<const std::int64_t> values_;
  struct Known {
    Dim size;  // keeps the address of its expression from being used again
    std::int64_t value;
  };
  std::unordered_map<const DimExpr*, Known> known_;
};

}  // namespace hone
