// Measured rates of this machine, stored with the times of candidates. Predictions use them.
#pragma once

#include <optional>

#include "backend/backend.h"
#include "compile/store.h"

namespace hone {

// Empty when not measured on this machine before.
std::optional<MachineRates> known_rates(Store&, const Backend&);
// Measures now, in a fraction of a second, and stores the result; empty for a backend without a
// device.
std::optional<MachineRates> measured_rates(Store&, const Backend&);

}  // namespace hone
