// What the program tells about memory, and how it refuses.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"
#include "cli/commands.h"
#include "test/compile/models.h"

namespace hone::cli {
namespace {

namespace fs = std::filesystem;

class Memory : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { cache_ = std::make_unique<test::EmptyCache>(); }
  static void TearDownTestSuite() { cache_ = nullptr; }

  static RunOptions options() {
    const fs::path model = test::models_root() / "ultraface_rfb_320";
    RunOptions o;
    o.model = model;
    o.strategy = "cpu";
    o.threads = 1;
    o.inputs = {model / "test_data_set_0" / "input_0.pb"};
    o.output_dir = cache_->directory() / "out";
    return o;
  }
  static std::string printed(const RunOptions& o) {
    testing::internal::CaptureStdout();
    EXPECT_EQ(run(o), exit_ok);
    return testing::internal::GetCapturedStdout();
  }
  static std::unique_ptr<test::EmptyCache> cache_;
};
std::unique_ptr<test::EmptyCache> Memory::cache_;

TEST_F(Memory, IsToldBeforeTheResultsAndResidentMemoryAfter) {
  RunOptions o = options();
  const std::string text = printed(o);
  const std::size_t memory = text.find("memory: "), resident = text.find("resident: ");
  EXPECT_EQ(memory, 0u) << text;
  EXPECT_NE(text.find(" + arena "), std::string::npos) << text;
  EXPECT_GT(resident, text.find("boxes: ")) << text;
  o.quiet = true;
  EXPECT_EQ(printed(o).find("memory"), std::string::npos);
}

TEST_F(Memory, StandsInJson) {
  RunOptions o = options();
  o.json = true;
  const Json out = Json::parse(printed(o), "run");
  const Json& memory = out.at("memory");
  std::int64_t sum = 0;
  for (const char* part : {"weights", "prepared", "file", "plan", "code", "arena", "scratch",
                           "staging", "steps", "library"})
    sum += memory.at(part).integer();
  EXPECT_EQ(memory.at("peak").integer(), sum);
  EXPECT_GT(memory.at("arena").integer(), 0);
  EXPECT_GE(out.at("resident").at("peak_rss").integer(), memory.at("arena").integer());
  EXPECT_EQ(out.at("results").array().size(), 2u);

  BenchOptions bench_options;
  static_cast<ModelOptions&>(bench_options) = o;
  bench_options.inputs = o.inputs;
  bench_options.duration = bench_options.warm_up = 0;
  testing::internal::CaptureStdout();
  EXPECT_EQ(bench(bench_options), exit_ok);
  const Json timed = Json::parse(testing::internal::GetCapturedStdout(), "bench");
  EXPECT_EQ(timed.at("memory").at("arena"), memory.at("arena"));
  EXPECT_GT(timed.at("resident").at("rss").integer(), 0);
}

TEST_F(Memory, AboveTheLimitIsRefusedWithTheNeededFigure) {
  RunOptions o = options();
  o.json = true;
  const std::int64_t peak = Json::parse(printed(o), "run").at("memory").at("peak").integer();
  o.max_memory = peak;
  printed(o);
  o.max_memory = peak - 1;
  testing::internal::CaptureStdout();
  try {
    run(o);
    ADD_FAILURE() << "ran with less than it needs";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find(cat("needs ", peak, " bytes")), std::string::npos)
        << e.what();
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

}  // namespace
}  // namespace hone::cli
