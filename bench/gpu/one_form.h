// A backend that prefers one form of candidates with a given tuning, to time it. Builds no kernels
// itself.
#pragma once

#include <string>

#include "backend/backend.h"

namespace hone {

// The form's name and numbers of its tuning: "tensor:tile_m=128,tile_k=32"; what is not named, the
// form chooses. A group that does not allow it is computed as usual. Throws UserError for text of
// another shape. One at a time in a process.
Backend with_one_form(const Backend&, const std::string& form);

}  // namespace hone
