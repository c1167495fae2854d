// Computes what depends only on weights, before a plan is written or run. The compiler calls it,
// and a plan file holds its results. If the compiler lacks the device, the machine that loads the
// plan calls it.
#pragma once

#include <memory>

#include "base/thread_pool.h"
#include "plan/plan.h"
#include "runtime/executable.h"

namespace hone {

// For each constant that a library call on this device reads in another form, adds a prepared
// buffer in that form and a step that fills it, in variants whose target is the best of this
// machine. Libraries choose the form by machine, so such a plan runs only where the library chooses
// the same form, and is refused elsewhere.
void pack_constants(Plan& plan, Device&);

// Packs constants, runs the prepare steps of every variant and fills the prepared buffers that have
// no data. Results on a device stay in its memory until they are needed elsewhere. Skips variants
// that these devices cannot run.
void run_prepare(Plan& plan, const Executable::Devices&, const std::shared_ptr<ThreadPool>&);
void run_prepare(Plan& plan, const std::shared_ptr<Device>&, const std::shared_ptr<ThreadPool>&);
// Loads the plan of a plan file, ready to run. If its compiler lacked these devices and could not
// prepare the weights, loads a copy of the plan whose weights these devices prepare now.
std::shared_ptr<const Executable> load_plan(std::shared_ptr<const Plan>,
                                            const Executable::Devices&);

}  // namespace hone
