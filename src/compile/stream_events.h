// Puts the streams of a variant in order: where a step uses memory that a step of another stream
// used before, an event is recorded after that one and waited for before this one.
#pragma once

#include "plan/plan.h"

namespace hone {

// The steps outside of bodies; each with its bodies runs on one stream. Numbers the events anew.
void add_stream_events(Variant&);

}  // namespace hone
