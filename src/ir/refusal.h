// The refusal of a run because of the contents or sizes of its inputs. Not an error of the
// function.
#pragma once

#include <cstddef>

#include "base/error.h"

namespace hone {

struct InputRefusal : UserError {
  // By how much a number misses its range, or two sizes differ; 0 if no number tells.
  double excess = 0;
  // Of the refusing node in the order of evaluation: the interpreter fills it in.
  std::size_t place = 0;

  template <class... Parts>
  explicit InputRefusal(double by, std::string_view first, const Parts&... rest)
      : UserError(first, rest...), excess(by) {}
};

}  // namespace hone
