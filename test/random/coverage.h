// What random functions consist of: how often each operation occurs, by dtype, and which ONNX
// operators they were made with.
#pragma once

#include <array>
#include <map>
#include <string>

#include "test/random/generate.h"

namespace hone::fuzz {

class Coverage {
 public:
  using ByDType = std::array<std::int64_t, dtype_count>;

  // Bodies of control flow count too.
  void add(const Function&);
  void add(const Generated&);  // also counts its ONNX operators

  // By operation and, where it has one, kind: "scatter set". The dtype is that of result 0.
  const std::map<std::string, ByDType>& counts() const { return counts_; }
  std::int64_t uses(const Op&) const;
  // The number of functions that contain an ONNX operator.
  const std::map<std::string, std::int64_t, std::less<>>& operators() const { return operators_; }
  // A line for each operation, with a column for each dtype, and a line for each operator.
  std::string table() const;

 private:
  std::map<std::string, ByDType> counts_;
  std::map<const Op*, std::int64_t> uses_;
  std::map<std::string, std::int64_t, std::less<>> operators_;
};

}  // namespace hone::fuzz
