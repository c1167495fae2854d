// Synchronizes the streams of a variant: if a step uses memory that an earlier step of another
// stream used, the earlier step records an event and the later one waits for it.
#pragma once

#include "plan/plan.h"

namespace hone {

// Handles the steps outside of bodies; each runs on one stream together with its bodies. Renumbers
// the events.
void add_stream_events(Variant&);

}  // namespace hone
