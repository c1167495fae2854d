// Which of two sizes is the larger, for all values of their symbols. Proves what it can; says no to
// the rest.
#pragma once

#include <vector>

#include "type/dim.h"

namespace hone {

// A multiple of 64 that holds d bytes. Factors are rounded where that costs little, which keeps the
// expression a polynomial.
Dim aligned_bytes(const Dim& d);

// a >= b for every value of the symbols, as far as it can be proved.
bool is_at_least(const Dim& a, const Dim& b);

// The largest of some sizes, without those that another one always covers. Never long: beyond a
// few, two are replaced by a bound of both.
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
