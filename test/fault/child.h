// Runs a test's work in a process of its own, so that what a fault breaks there is broken nowhere
// else. Not a sandbox.
#pragma once

#include <functional>
#include <string>

namespace hone::test {

// What f returned, as text. "signal N" when the process died of one, "exit N" when it ended itself,
// "timeout" after so many seconds.
std::string in_child(const std::function<std::string()>& f, int seconds = 60);

}  // namespace hone::test
