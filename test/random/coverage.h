// What random functions are made of: how often each operation stands in them, by dtype.
#pragma once

#include <array>
#include <map>
#include <string>

#include "ir/function.h"

namespace hone::fuzz {

class Coverage {
 public:
  using ByDType = std::array<std::int64_t, dtype_count>;

  // Bodies of control flow count, too.
  void add(const Function&);

  // By operation and, where it has one, kind: "scatter set". The dtype is that of result 0.
  const std::map<std::string, ByDType>& counts() const { return counts_; }
  std::int64_t uses(const Op&) const;
  // A line for each, with a column for each dtype.
  std::string table() const;

 private:
  std::map<std::string, ByDType> counts_;
  std::map<const Op*, std::int64_t> uses_;
};

}  // namespace hone::fuzz
