// Computes what depends on weights alone, before a plan is written or run. The compiler calls it,
// and a plan file holds its results; where the compiler has no such device, the machine that loads
// the plan does.
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
// no data; what a device wrote stays in its memory until somebody needs it elsewhere. Leaves out
// variants that these devices cannot run.
void run_prepare(Plan& plan, const Executable::Devices&, const std::shared_ptr<ThreadPool>&);
void run_prepare(Plan& plan, const std::shared_ptr<Device>&, const std::shared_ptr<ThreadPool>&);
// A plan file's plan, to be run. Where its compiler had no such devices and so could not prepare
// its weights, a copy of the plan is loaded with weights that these devices prepare now.
std::shared_ptr<const Executable> load_plan(std::shared_ptr<const Plan>,
                                            const Executable::Devices&);

}  // namespace hone
