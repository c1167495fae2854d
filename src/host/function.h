// The functions behind host operations, by name: dense operands in memory, read or written. Plans
// name them and are not trusted, so each checks its operands before it computes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "type/dtype.h"

namespace hone {

struct HostOperand {
  DType dtype = DType::f32;
  std::vector<std::int64_t> dims;
  void* data = nullptr;  // never written when only read

  std::size_t count() const;
  template <class T>
  std::span<T> as() const {
    return {static_cast<T*>(data), count()};
  }
};

using HostSettings = std::vector<std::pair<std::string, std::int64_t>>;

// Those that are read come first.
struct HostCall {
  std::vector<HostOperand> operands;
  HostSettings settings;

  const HostOperand& at(std::size_t i) const { return operands[i]; }
  std::int64_t setting(std::string_view key) const;  // 0 when it is not there
};

struct HostFunction {
  std::string_view name;
  std::vector<DType> dtypes;         // of the operands
  bool (*fits)(const HostCall&);     // sizes and settings; operands have the dtypes
  void (*compute)(const HostCall&);  // throws UserError for contents that it refuses
};

// Null when there is none of that name.
const HostFunction* find_host_function(std::string_view name);
// Throws UserError unless the function takes such operands.
void check(const HostFunction&, const HostCall&);

std::span<const HostFunction> image_functions();
std::span<const HostFunction> text_functions();

}  // namespace hone
