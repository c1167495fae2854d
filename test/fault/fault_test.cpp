// Every planted fault of a compilation must be found by the default verification or by ordinary
// error handling before a wrong number is returned. Prints what found it.
#include "test/fault/fault.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <sstream>

#include "test/fault/child.h"
#include "test/fault/models.h"
#include "test/fault/tried.h"

namespace hone::test {
namespace {

std::vector<Fault> all_faults() {
  std::vector<Fault> all;
  for (auto* make : {pass_faults, kernel_faults, plan_faults})
    for (Fault& f : make()) all.push_back(std::move(f));
  return all;
}

const std::vector<Fault>& faults() {
  static const std::vector<Fault> all = all_faults();
  return all;
}

// One line for each model.
std::string try_on_models(const Fault& fault) {
  std::string out;
  for (const SmallModel& m : small_models()) {
    const Finding f = try_fault(fault, m);
    out += cat(static_cast<int>(f.outcome), " ", m.name, ": ", f.how, "\n");
  }
  return out;
}

std::map<Outcome, std::string> findings_of(const std::string& text) {
  std::map<Outcome, std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (std::isdigit(line[0]))
      found.emplace(static_cast<Outcome>(line[0] - '0'), line.substr(2));
    else
      found.emplace(Outcome::crashed, line);
  found.erase(Outcome::not_planted);
  return found;
}

class Faults : public testing::TestWithParam<std::size_t> {};

TEST(Faults, ModelsAreRightWithoutOne) {
  EXPECT_EQ(in_child([] {
              std::string out;
              for (const SmallModel& m : small_models()) {
                Plan plan = compile(m.source, {.strategy = "cpu", .threads = 1, .cache = false});
                out += first_wrong_number(plan, m) + refusals(plan);
              }
              return out;
            }),
            "");
}

// Random numbers do not test NaN and infinities, and only single elements of a large computation
// are judged.
TEST(Faults, ALargeProductKeepsSpecialNumbers) {
  const auto& all = faults();
  const auto fault = std::ranges::find(all, "kernel-sub-of-itself", &Fault::name);
  ASSERT_NE(fault, all.end());
  const Finding f = try_fault(*fault, large_model());
  EXPECT_TRUE(f.outcome == Outcome::refused || f.outcome == Outcome::replaced)
      << words[static_cast<int>(f.outcome)] << ": " << f.how;
}

TEST_P(Faults, NoneGivesAWrongNumber) {
  const Fault& fault = faults()[GetParam()];
  const auto found = findings_of(in_child([&] { return try_on_models(fault); }));
  EXPECT_FALSE(found.empty()) << fault.name << " broke nothing in any model";
  for (Outcome bad : {Outcome::wrong, Outcome::crashed})
    if (found.contains(bad))
      ADD_FAILURE() << fault.name << " (" << fault.what << "): " << words[static_cast<int>(bad)]
                    << ": " << found.at(bad);
  const bool is_caught = found.contains(Outcome::refused) || found.contains(Outcome::replaced);
  if (fault.survives.empty())
    EXPECT_TRUE(is_caught) << fault.name << " (" << fault.what << ") was not noticed";
  else
    EXPECT_FALSE(is_caught) << fault.name << " is caught now; it no longer survives";
  for (const auto& [outcome, how] : found)
    std::printf("%-28s %-9s %s\n", fault.name.c_str(), words[static_cast<int>(outcome)],
                how.substr(0, 160).c_str());
}

INSTANTIATE_TEST_SUITE_P(Planted, Faults, testing::Range(std::size_t{0}, faults().size()),
                         [](const auto& info) {
                           std::string name = faults()[info.param].name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace hone::test
