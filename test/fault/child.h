// Runs a test's work in a separate process, so that the damage of a fault stays in that process.
// Not a sandbox.
#pragma once

#include <functional>
#include <string>

namespace hone::test {

// What f returned, as text; "signal N" if a signal killed the process, "exit N" if it exited by
// itself, "timeout" after `seconds` seconds.
std::string in_child(const std::function<std::string()>& f, int seconds = 60);

}  // namespace hone::test
