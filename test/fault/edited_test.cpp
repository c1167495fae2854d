// Edited plan files with a correct checksum: if any single number is changed, the plan is refused,
// fails its self-test, or computes the same. It never crashes.
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "base/json.h"
#include "plan/check.h"
#include "plan/plan_json.h"
#include "runtime/self_test.h"
#include "test/fault/child.h"
#include "test/fault/models.h"
#include "verify/model/self_test.h"

namespace hone::test {
namespace {

using Arrays = std::map<std::string, Array, std::less<>>;

// A plan as it is stored in its file.
struct Written {
  Json json;
  Arrays arrays;

  explicit Written(const Plan& p) {
    json = plan_to_json(p, [&](std::string_view name, const Array& a) {
      std::string key = cat(arrays.size(), ".", name);
      // The code is stored in the plan, which does not live long enough.
      arrays.emplace(key, Array(a.dtype(), a.dims(), Storage::copy(a.bytes())));
      return key;
    });
  }
  std::shared_ptr<Plan> read(const Json& edited) const {
    auto p = std::make_shared<Plan>(plan_from_json(edited, [&](std::string_view name) {
      const auto it = arrays.find(name);
      if (it == arrays.end()) throw UserError("no tensor ", name);
      return it->second;
    }));
    p->reading.mapped = 1;  // as if read from a file
    check(*p, "edited");
    return p;
  }
};

// Records of how the plan was made do not affect the results.
bool is_record(const std::string& key) {
  return key == "strategies" || key == "groups" || key == "machine";
}

// Calls f with each number and its path.
void for_each_number(Json& j, const std::string& path,
                     const std::function<void(Json&, const std::string&)>& f) {
  if (j.is_number()) return f(j, path);
  if (j.is_array())
    for (std::size_t i = 0; i < j.array().size(); ++i)
      for_each_number(const_cast<Json&>(j.array()[i]), cat(path, "[", i, "]"), f);
  if (j.is_object())
    for (auto& [key, value] : const_cast<Json::Object&>(j.object()))
      if (!is_record(key)) for_each_number(value, cat(path, ".", key), f);
}

std::vector<Json> other_numbers(const Json& n) {
  if (!n.is_integer()) return {n.real() * 2 + 1};
  const std::int64_t i = n.integer();
  std::vector<Json> out;
  for (std::int64_t other : {i + 1, i - 1, i + 64, std::int64_t{0}, i * 2, -i - 1,
                             std::int64_t{1} << 31, std::numeric_limits<std::int64_t>::max()})
    if (other != i) out.push_back(other);
  return out;
}

std::string ending_of(const Written& written, const Json& edited, const SmallModel& m,
                      const std::vector<Array>& expected) {
  return in_child([&]() -> std::string {
    try {
      const std::shared_ptr<Plan> plan = written.read(edited);
      Session session(Executable::load(plan, open_device("cpu")),
                      {.threads = 2, .max_memory = std::int64_t{1} << 30});
      const std::vector<Array> got = session.run(m.inputs[0]);
      if (got == expected) return "equal";
      run_self_tests(plan, {open_device("cpu")},
                     {.max_memory = std::int64_t{1} << 30, .checks_content = false});
      return "other numbers, and the self-test passes";
    } catch (const SelfTestFailure&) {
      return "self-test";
    } catch (const UserError& e) {
      return "message";
    } catch (const InternalError& e) {
      return cat("defect: ", e.what());
    } catch (const std::bad_alloc&) {
      return "message";
    }
  });
}

class EditedPlan : public ::testing::TestWithParam<std::size_t> {};

TEST_P(EditedPlan, IsRefusedOrFailsItsSelfTestOrComputesTheSame) {
  const SmallModel m = small_models()[GetParam()];
  Plan plan = compile(m.source, {.strategy = "cpu", .threads = 1, .cache = false});
  record_self_tests(plan, {});
  const Written written(plan);
  const std::vector<Array> expected = session_of(written.read(written.json))->run(m.inputs[0]);
  std::map<std::string, int> endings;
  Json edited = written.json;
  std::size_t turn = 0;
  int edits = 0;
  const char* all = std::getenv("HONE_EDITS");  // if set: every kind of edit of every number
  const std::size_t at_once = all ? 8 : 3;
  for_each_number(edited, "", [&](Json& number, const std::string& path) {
    const Json before = number;
    const std::vector<Json> others = other_numbers(before);
    // A few edits per number, in rotation: all kinds occur, and the test stays short.
    for (std::size_t k = 0; k < std::min(at_once, others.size()); ++k) {
      number = others[(turn + k) % others.size()];
      const std::string ending = ending_of(written, edited, m, expected);
      ++endings[ending];
      ++edits;
      EXPECT_TRUE(ending == "equal" || ending == "message" || ending == "self-test")
          << m.name << path << ": " << before.text() << " -> " << number.text() << ": " << ending;
    }
    ++turn;
    number = before;
  });
  EXPECT_GE(edits, 190);
  for (const auto& [ending, times] : endings) RecordProperty(ending, times);
  EXPECT_GT(endings["message"], 20);
}

INSTANTIATE_TEST_SUITE_P(Small, EditedPlan,
                         ::testing::Range(std::size_t{0}, small_models().size()));

}  // namespace
}  // namespace hone::test
