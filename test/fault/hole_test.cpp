// Each fault must be found, or the candidate that has it replaced.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "test/fault/child.h"
#include "test/fault/hole_faults.h"
#include "test/fault/tried.h"

namespace hone::test {
namespace {

const std::vector<Hole>& holes() {
  static const std::vector<Hole> all = hole_faults();
  return all;
}

class Holes : public testing::TestWithParam<std::size_t> {};

TEST_P(Holes, AreClosed) {
  const auto& [fault, model] = holes()[GetParam()];
  const std::string found = in_child([&] {
    const Plan plan = compile(model.source, {.strategy = "cpu", .threads = 1, .cache = false});
    const std::string wrong = first_wrong_number(plan, model) + refusals(plan);
    if (!wrong.empty()) return "without it: " + wrong;
    const Finding f = try_fault(fault, model);
    return cat(words[static_cast<int>(f.outcome)], ": ", f.how);
  });
  std::printf("%-28s %s\n", fault.name.c_str(), found.substr(0, 160).c_str());
  EXPECT_TRUE(found.starts_with("refused") || found.starts_with("replaced"))
      << fault.name << " (" << fault.what << "): " << found;
}

INSTANTIATE_TEST_SUITE_P(Planted, Holes, testing::Range(std::size_t{0}, holes().size()),
                         [](const auto& info) {
                           std::string name = holes()[info.param].fault.name;
                           std::ranges::replace_if(
                               name, [](char c) { return !std::isalnum(c); }, '_');
                           return name;
                         });

}  // namespace
}  // namespace hone::test
