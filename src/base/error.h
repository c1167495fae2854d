// Errors of two kinds. UserError: the model, file, flag or machine is at fault and the caller can
// fix it; InternalError: an invariant of this code base does not hold. Not a logging facility.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace hone {

// Concatenates parts into a string, each printed with operator<<.
template <class... Parts>
std::string cat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

// States what was given, what is allowed and what to do. Form: `op-or-file: what is wrong: values
// met; what to do`.
struct UserError : std::runtime_error {
  template <class... Parts>
  explicit UserError(std::string_view first, const Parts&... rest)
      : std::runtime_error(cat(first, rest...)) {}
};

// Not enough memory. The message names the purpose and the amount.
struct OutOfMemory : UserError {
  using UserError::UserError;
};

struct InternalError : std::logic_error {
  template <class... Parts>
  explicit InternalError(std::string_view first, const Parts&... rest)
      : std::logic_error(cat(first, rest...)) {}
};

}  // namespace hone

// Never reachable from input. One of the two macros that hide control flow.
#define HONE_ASSERT(cond, ...)                                                              \
  do {                                                                                      \
    if (!(cond)) [[unlikely]]                                                               \
      throw ::hone::InternalError(__FILE__, ":", __LINE__, ": ", #cond, ": ", __VA_ARGS__); \
  } while (false)
