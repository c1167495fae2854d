// Planted faults: each breaks one thing in the compiler or its output, through an existing
// interface of the compiler (its list of passes, its backend, the finished plan, files). Not a test
// itself; fault_test.cpp switches the faults on one at a time.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compile/compile.h"
#include "kernel/kernel.h"

namespace hone::test {

// Number of times the active fault changed something.
inline int fired = 0;

// Faults of a compilation: at most one of the break_ functions is set.
struct Fault {
  std::string name;
  std::string what;
  // break_function runs after the pass of this name, on its result, and returns the broken
  // function.
  std::string after_pass;
  std::function<Function(const Function&)> break_function;
  // Breaks a kernel before it is compiled; false if there is nothing to break in it.
  std::function<bool(Kernel&)> break_kernel;
  // Breaks the compiled binaries.
  std::function<void(std::vector<Binary>&)> break_binaries;
  // Breaks the finished plan.
  std::function<bool(Plan&)> break_plan;
  // Why no check finds the fault and no number is wrong. If empty, a check must find it.
  std::string survives;
};

std::vector<Fault> pass_faults();
std::vector<Fault> kernel_faults();
std::vector<Fault> plan_faults();

// Compile options that include the fault. Only one fault at a time, because a Backend consists of
// plain functions.
CompileOptions options_with(const Fault&);

}  // namespace hone::test
