// What this machine was measured to do, kept beside the times of candidates. Predictions use it.
#pragma once

#include <optional>

#include "backend/backend.h"
#include "compile/store.h"

namespace hone {

// Nothing when it was not measured here before.
std::optional<MachineRates> known_rates(Store&, const Backend&);
// Measured now, in a fraction of a second, and kept; nothing for a backend without a machine.
std::optional<MachineRates> measured_rates(Store&, const Backend&);

}  // namespace hone
