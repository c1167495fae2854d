// The instructions of the hottest loops. bench/gates measures their speed: a test cannot require a
// quiet machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "base/sanitizer.h"
#include "cases.h"
#include "group_runner.h"
#include "kernel/tiles/contraction.h"

namespace hone::test {

namespace {

class InnerLoop : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, InnerLoop, ::testing::ValuesIn(llvm::targets()));

// The instructions of an innermost loop: from a label to a jump back to it.
using Loop = std::vector<std::string>;
std::vector<Loop> inner_loops(const std::string& code) {
  std::vector<Loop> loops;
  std::string label;
  Loop open;
  std::istringstream lines(code);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find_first_not_of(" \t");
    if (first == std::string::npos || line[first] == '#') continue;
    if (first == 0) {
      label = line.substr(0, line.find(':'));
      open.clear();
    } else if (line[first] != '.') {
      open.push_back(line.substr(first));
      if (open.back()[0] != 'j') continue;
      std::istringstream words(open.back());
      std::string jump, to;
      words >> jump >> to;
      if (to == label) loops.push_back(open);
    }
  }
  return loops;
}

std::ptrdiff_t multiply_adds(const Loop& loop) {
  return std::count_if(loop.begin(), loop.end(),
                       [](const std::string& i) { return i.starts_with("vfmadd"); });
}

}  // namespace

TEST_P(InnerLoop, OfAContractionMostlyMultipliesAndAdds) {
  if (with_address_sanitizer || with_thread_sanitizer) GTEST_SKIP() << "kernels are instrumented";
  Function f;
  Value x = f.add_param(f32({512, 512}), "x"), w = f.add_param(f32({512, 512}), "w");
  f.add_result(ops::matmul(x, w));
  GroupSpec spec = spec_of(f);
  spec.param_is_weight[1] = true;
  std::optional<Candidate> candidate = contraction_candidate(spec, cpu::target_info(GetParam()));
  ASSERT_TRUE(candidate);
  Loop most;
  for (const Candidate::Step& step : candidate->steps)
    if (const Kernel* kernel = std::get_if<Kernel>(&step.what))
      for (const Loop& loop : inner_loops(assembly(*kernel, GetParam())))
        if (multiply_adds(loop) > multiply_adds(most)) most = loop;
  std::string text;
  bool on_the_stack = false;
  for (const std::string& i : most) {
    text += i + "\n";
    on_the_stack |= i.find("(%rsp") != std::string::npos || i.find("(%rbp") != std::string::npos;
  }
  // Half of the registers hold sums, one multiply-add each.
  EXPECT_GE(multiply_adds(most), cpu::target_info(GetParam()).vector_registers / 2) << text;
  EXPECT_GE(5 * multiply_adds(most), 2 * std::ssize(most)) << text;
  EXPECT_FALSE(on_the_stack) << text;
}

}  // namespace hone::test
