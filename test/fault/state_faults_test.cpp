// Planted faults in what a plan does with states: each is refused when the plan is loaded, or found
// by its self-tests, which compare numbers only here.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "compile/program.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "runtime/self_test.h"
#include "test/compile/models.h"

namespace hone {
namespace {

constexpr std::int32_t input = ProgramEntry::no_state;

// Two sums of one type, the second of which reads the first; and a ring of rows.
ProgramGraph sums() {
  const Type row = f32({40}), rows = f32({8, 40});
  ProgramGraph p{"sums", {{"a", "model", row}, {"b", "model", row}, {"ring", "model", rows}}, {}};
  Function f;
  const Value a = f.add_param(row, "a", true), b = f.add_param(row, "b", true),
              ring = f.add_param(rows, "ring", true), x = f.add_param(row, "x"),
              at = f.add_param(Type(DType::i64, {2}), "at");
  f.add_result(reduce_axes(ops::reduce_sum, a, {0}), "before");
  f.add_result(a * 0.5 + x, "next a", 0);
  f.add_result(b * 0.25 + ops::sqrt(ops::abs(a)), "next b", 1);
  const Value place = ops::mod(at, integer_like(at, 1));
  f.add_result(ops::dynamic_update(Values{ring, reshape_to(x, {1, 40}), place}), "next ring", 2);
  p.entries.push_back({"step", f, {0, 1, 2, input, input}});
  return p;
}

struct StateFault {
  const char* name;
  std::function<bool(PlanEntry&)> plant;  // whether there was a place for it
};

bool writes(const PlanEntry& e, const Step& s, std::uint32_t result) {
  const Variant& v = e.variants[0];
  for (std::size_t i = 0; i < s.operands.size(); ++i) {
    const PlanBuffer& b = v.buffers[s.operands[i].buffer];
    if (s.written[i] && b.kind == PlanBuffer::Kind::result && b.index == result) return true;
  }
  return false;
}

std::vector<StateFault> faults() {
  return {
      {"an update is skipped",
       [](PlanEntry& e) {
         return std::erase_if(e.variants[0].steps, [&](const Step& s) { return writes(e, s, 1); }) >
                0;
       }},
      {"stored to another state of the type",
       [](PlanEntry& e) {
         std::swap(e.result_alias[1], e.result_alias[2]);
         return true;
       }},
      {"stored twice",
       [](PlanEntry& e) {
         e.result_alias[2] = e.result_alias[1];
         return true;
       }},
      {"a state is read after its update",
       [](PlanEntry& e) {
         std::vector<Step>& steps = e.variants[0].steps;
         const auto update =
             std::ranges::find_if(steps, [&](const Step& s) { return writes(e, s, 1); });
         if (update == steps.begin() || update == steps.end()) return false;
         std::rotate(steps.begin(), update, update + 1);
         return true;
       }},
      {"a window one row off",
       [](PlanEntry& e) {
         for (Step& s : e.variants[0].steps)
           for (std::size_t i = 0; i < s.operands.size(); ++i) {
             if (!s.written[i] || !writes(e, s, 3)) continue;
             s.operands[i].offset = s.operands[i].offset + Dim(40 * 4);
             for (Dim& d : s.operands[i].dims)
               if (d == Dim(8)) d = 7;
             return true;
           }
         return false;
       }},
      {"an entry takes another state of the type",
       [](PlanEntry& e) {
         // As an updated b that lies where a is: what the next run reads as a.
         std::swap(e.states[0], e.states[1]);
         return true;
       }},
  };
}

TEST(StateFaults, AreFound) {
  test::EmptyCache cache;
  OptimizeRequest request;
  request.strategies = {"cpu"};
  request.rounds = 3;
  request.budget = 1;
  const Plan right = optimize(sums(), request).plan;
  const Executable::Devices devices = {open_device("cpu")};
  const SelfTestOptions numbers{.threads = {1}, .is_same_machine = true, .checks_content = false};
  ASSERT_FALSE(run_self_tests(std::make_shared<const Plan>(right), devices, numbers).empty());
  int found = 0;
  for (const StateFault& fault : faults()) {
    SCOPED_TRACE(fault.name);
    auto wrong = std::make_shared<Plan>(right);
    ASSERT_TRUE(fault.plant(wrong->entries[0]));
    std::string says;
    // The last changes no number of a run: the content of the plan says that it was edited.
    SelfTestOptions options = numbers;
    options.checks_content =
        std::string_view(fault.name) == "an entry takes another state of the type";
    try {
      run_self_tests(wrong, devices, options);
    } catch (const UserError& e) {
      says = e.what();
    }
    EXPECT_FALSE(says.empty());
    found += !says.empty();
  }
  EXPECT_EQ(found, 6);
}

// A cache that grows by the rows of x, and the sum of each of its columns.
ProgramGraph growing() {
  constexpr std::int64_t most = 32;
  const Type whole = f32({2, most, 8});
  ProgramGraph p{"growing", {{"cache", "cache", whole, {}, 1}}, {}};
  Function f;
  const Dim past = Dim::symbol("past", 0, most - 4), n = Dim::symbol("n", 1, 4);
  const Value cache = f.add_param(f32({2, past, 8}), "cache"), x = f.add_param(f32({2, n, 8}), "x");
  const Value now = concat_values(Values{cache, ops::tanh(x)}, 1);
  f.add_result(reduce_axes(ops::reduce_sum, now, {1}), "sums");
  f.add_result(now, "next");
  f.store(1, 0, Capacity{1, most});
  p.entries.push_back({"step", f, {0, input}});
  return p;
}

// New rows of a cache that lie one row too far leave a hole before them.
TEST(StateFaults, RowsOfACacheAtAWrongPlaceAreFound) {
  test::EmptyCache cache;
  OptimizeRequest request;
  request.strategies = {"cpu"};
  request.rounds = 3;
  request.budget = 1;
  Plan plan = optimize(growing(), request).plan;
  const Executable::Devices devices = {open_device("cpu")};
  const SelfTestOptions numbers{.threads = {1}, .is_same_machine = true, .checks_content = false};
  ASSERT_FALSE(run_self_tests(std::make_shared<const Plan>(plan), devices, numbers).empty());
  int moved = 0;
  for (Step& s : plan.main().variants[0].steps)
    for (std::size_t i = 0; i < s.operands.size(); ++i) {
      View& v = s.operands[i];
      const PlanBuffer& b = plan.main().variants[0].buffers[v.buffer];
      if (!s.written[i] || b.kind != PlanBuffer::Kind::result || b.index != 1) continue;
      if (v.offset == Dim(0)) continue;  // of what the cache holds already
      v.offset = v.offset + Dim(8 * 4);
      ++moved;
    }
  ASSERT_GT(moved, 0);
  EXPECT_THROW(run_self_tests(std::make_shared<const Plan>(plan), devices, numbers), UserError);
}

}  // namespace
}  // namespace hone
