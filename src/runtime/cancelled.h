// The error of a run that ends early because its caller asked for that.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace hone {

struct Cancelled : UserError {
  enum class Why : std::uint8_t { stopped, deadline };
  Cancelled(Why w, std::string_view text) : UserError(text), why(w) {}
  Why why;
};

}  // namespace hone
