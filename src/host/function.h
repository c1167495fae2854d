// The functions behind host operations, by name. They read and write dense operands in memory.
// Plans name them and are not trusted, so each function checks its operands before it computes.
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
  void* data = nullptr;  // operands that are only read are never written

  std::size_t count() const;
  template <class T>
  std::span<T> as() const {
    return {static_cast<T*>(data), count()};
  }
};

using HostSettings = std::vector<std::pair<std::string, std::int64_t>>;

// Operands that are read come first.
struct HostCall {
  std::vector<HostOperand> operands;
  HostSettings settings;

  const HostOperand& at(std::size_t i) const { return operands[i]; }
  std::int64_t setting(std::string_view key) const;  // 0 if missing
};

struct HostFunction {
  std::string_view name;
  std::vector<DType> dtypes;         // of the operands
  bool (*fits)(const HostCall&);     // checks sizes and settings; dtypes are already checked
  void (*compute)(const HostCall&);  // throws UserError for invalid contents
};

// Null when no function has that name.
const HostFunction* find_host_function(std::string_view name);
// Throws UserError unless the function takes such operands.
void check(const HostFunction&, const HostCall&);

std::span<const HostFunction> image_functions();
std::span<const HostFunction> text_functions();

}  // namespace hone
