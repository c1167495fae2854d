// The backends that the conformance tests run for.
#include "ops/common.h"
#include "test/backend/conformance.h"
#include "test/far/far.h"

namespace hone::test {

namespace {

// Every backend with a device on this machine, and the far backend.
std::vector<BackendCase> cases() {
  std::vector<BackendCase> out;
  for (const std::string& name : device_names())
    out.push_back(
        {name, [name] { return open_device(name); }, &backend(name), false, name != "cpu"});
  out.push_back({"far", [] { return open_far_device(); }, &far_backend(), true});
  return out;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Listed, BackendConformance, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

namespace {

// Compiling needs no device: each job gets an entry of its own name, whatever its code.
TEST(EveryTarget, GivesEachKernelAnEntry) {
  Function f;
  const Value x = f.add_param(f32({4}), "x");
  f.add_result(x + x, "y");
  for (const Backend* b : backends()) {
    CompileOptions options{.strategy = "auto", .backend = b};
    options.verification = Verification::none;
    options.cache = false;
    const Plan plan = compile({"entries", {{{}, f}}, {}}, options);
    ASSERT_FALSE(plan.kernels.empty()) << b->name;
    for (const PlanKernel& k : plan.kernels) {
      const auto& entries = plan.binaries.at(k.binary).entries;
      EXPECT_EQ(std::ranges::count(entries, k.entry, &Binary::Entry::name), 1) << b->name;
    }
  }
}

}  // namespace

// Compilation opens devices by name.
class ListedDevices final : public testing::Environment {
 public:
  void SetUp() override { far_ = std::make_unique<FarListed>(); }
  void TearDown() override { far_ = nullptr; }

 private:
  std::unique_ptr<FarListed> far_;
};
const testing::Environment* const listed = testing::AddGlobalTestEnvironment(new ListedDevices);

}  // namespace hone::test
