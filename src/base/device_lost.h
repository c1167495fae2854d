#pragma once

#include "base/error.h"

namespace hone {

// A device failed, and this process can use it no more.
struct DeviceLost : UserError {
  using UserError::UserError;
};

}  // namespace hone
