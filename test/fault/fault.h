// Planted faults: each breaks one thing of the compiler or of what it wrote, through an interface
// that the compiler offers anyway (its list of passes, its backend, the finished plan, files). No
// test itself; fault_test.cpp switches them on one at a time.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compile/compile.h"
#include "kernel/kernel.h"

namespace hone::test {

// How often the fault that is switched on has changed something.
inline int fired = 0;

// Faults of a compilation: at most one of the three is set.
struct Fault {
  std::string name;
  std::string what;
  // Run after the pass of this name, on the function that it made; gives the broken one.
  std::string after_pass;
  std::function<Function(const Function&)> break_function;
  // Breaks a kernel before it is compiled; false when there is nothing to break in it.
  std::function<bool(Kernel&)> break_kernel;
  // Breaks what a compilation of kernels gave.
  std::function<void(std::vector<Binary>&)> break_binaries;
  // Breaks the finished plan.
  std::function<bool(Plan&)> break_plan;
  // Why no check finds it and no number is wrong; empty: a check must find it.
  std::string survives;
};

std::vector<Fault> pass_faults();
std::vector<Fault> kernel_faults();
std::vector<Fault> plan_faults();

// Compile options with the fault in them. One at a time: a Backend is made of plain functions.
CompileOptions options_with(const Fault&);

}  // namespace hone::test
