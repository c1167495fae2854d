// Which of two sizes is larger, for all values of their symbols. Answers yes only if it can prove
// it.
#pragma once

#include <vector>

#include "type/dim.h"

namespace hone {

// A multiple of 64 that is at least d. Factors are rounded up where that costs little, which keeps
// the expression a polynomial.
Dim aligned_bytes(const Dim& d);

// True if a >= b is proved for every value of the symbols.
bool is_at_least(const Dim& a, const Dim& b);

// The maximum of some sizes, without those that another one always covers. Kept short: beyond a
// few, two are replaced by a common upper bound.
class Largest {
 public:
  void add(Dim);
  void add_all(const Largest&, const Dim& more);  // each of them plus `more`
  bool empty() const { return list_.empty(); }
  Dim size() const;

 private:
  static constexpr std::size_t most = 6;
  Dims list_;
};

}  // namespace hone
