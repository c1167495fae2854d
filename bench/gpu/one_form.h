// A backend that prefers one form of candidates with a given tuning, to time it. Builds no kernels
// itself.
#pragma once

#include <string>

#include "backend/backend.h"

namespace hone {

// `form` is the name of a form and values of its tuning, as in "tensor:tile_m=128,tile_k=32". The
// form chooses values that are not named. Groups that do not allow it are computed as usual. Throws
// UserError for other text. The last call decides for all backends made here.
Backend with_one_form(const Backend&, const std::string& form);

}  // namespace hone
