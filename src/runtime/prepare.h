// Computes what depends on weights alone, before a plan is written or run. The compiler calls it;
// a plan file holds its results.
#pragma once

#include <memory>

#include "base/thread_pool.h"
#include "plan/plan.h"
#include "runtime/executable.h"

namespace hone {

// Constants that library calls on this device read in another form get a prepared buffer in that
// form, and a step that fills it, in variants whose target is the best of this machine. Libraries
// choose the form by machine, so such a plan runs where the library chooses alike, and is refused
// elsewhere.
void pack_constants(Plan& plan, Device&);

// Packs constants, runs the prepare steps of every variant and fills the prepared buffers that have
// no data; what a device wrote stays in its memory until somebody needs it elsewhere. Throws
// UserError when these devices cannot run a variant.
void run_prepare(Plan& plan, const Executable::Devices&, const std::shared_ptr<ThreadPool>&);
void run_prepare(Plan& plan, const std::shared_ptr<Device>&, const std::shared_ptr<ThreadPool>&);
// The plan, or where it was compiled on a machine that could not prepare its weights, a copy of it
// with weights that these devices prepared.
std::shared_ptr<const Plan> with_prepared(std::shared_ptr<const Plan>, const Executable::Devices&);

}  // namespace hone
