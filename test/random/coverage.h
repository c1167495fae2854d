// What random functions are made of: how often each operation stands in them, by dtype, and which
// operators of ONNX they were made with.
#pragma once

#include <array>
#include <map>
#include <string>

#include "test/random/generate.h"

namespace hone::fuzz {

class Coverage {
 public:
  using ByDType = std::array<std::int64_t, dtype_count>;

  // Bodies of control flow count, too.
  void add(const Function&);
  void add(const Generated&);  // and its operators of ONNX

  // By operation and, where it has one, kind: "scatter set". The dtype is that of result 0.
  const std::map<std::string, ByDType>& counts() const { return counts_; }
  std::int64_t uses(const Op&) const;
  // How many functions an operator of ONNX is in.
  const std::map<std::string, std::int64_t, std::less<>>& operators() const { return operators_; }
  // A line for each, with a column for each dtype, and for each operator.
  std::string table() const;

 private:
  std::map<std::string, ByDType> counts_;
  std::map<const Op*, std::int64_t> uses_;
  std::map<std::string, std::int64_t, std::less<>> operators_;
};

}  // namespace hone::fuzz
