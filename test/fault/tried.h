// Compiles a model with a planted fault and runs the plan on inputs that no verification has used.
#pragma once

#include <string>

#include "test/fault/fault.h"
#include "test/fault/models.h"

namespace hone::test {

// crashed: no number was returned, but the user gets no message to act on.
enum class Outcome { not_planted, refused, replaced, harmless, wrong, crashed };
inline constexpr const char* words[] = {"nothing",  "refused", "replaced",
                                        "harmless", "WRONG",   "CRASHED"};

struct Finding {
  Outcome outcome = Outcome::not_planted;
  std::string how;  // the message, or the first wrong number
};

Finding try_fault(const Fault&, const SmallModel&);
// Empty if the plan computes the model.
std::string first_wrong_number(const Plan&, const SmallModel&);
// The first candidate that the plan lists as refused, with the reason; else empty.
std::string refusals(const Plan&);

}  // namespace hone::test
