// The program's memory reports and the errors for its memory limits.
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

  using Strings = std::vector<std::string>;
  // The command-line arguments for a run of the model.
  static Strings words(const Strings& more) {
    const fs::path model = test::models_root() / "ultraface_rfb_320";
    Strings out = {
        model, "--strategy", "cpu", "--threads", "1", "-i", model / "test_data_set_0/input_0.pb"};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
  static Strings run_words(Strings more) {
    more.insert(more.end(), {"-o", cache_->directory() / "out"});
    return words(more);
  }
  static int call(int (*command)(Words), Strings words) {
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    return command(argv);
  }
  static std::string printed(int (*command)(Words), const Strings& words) {
    testing::internal::CaptureStdout();
    EXPECT_EQ(call(command, words), exit_ok);
    return testing::internal::GetCapturedStdout();
  }
  static std::unique_ptr<test::EmptyCache> cache_;
};
std::unique_ptr<test::EmptyCache> Memory::cache_;

TEST_F(Memory, IsToldBeforeTheResultsAndResidentMemoryAfter) {
  const std::string text = printed(run, run_words({}));
  const std::size_t memory = text.find("memory: "), resident = text.find("resident: ");
  EXPECT_EQ(memory, 0u) << text;
  EXPECT_NE(text.find(" + arena "), std::string::npos) << text;
  EXPECT_GT(resident, text.find("boxes: ")) << text;
  EXPECT_EQ(printed(run, run_words({"-q"})).find("memory"), std::string::npos);
}

TEST_F(Memory, StandsInJson) {
  const Json out = Json::parse(printed(run, run_words({"--json"})), "run");
  const Json& memory = out.at("memory");
  std::int64_t sum = 0;
  for (const char* part : {"weights", "prepared", "file", "plan", "code", "arena", "scratch",
                           "staging", "steps", "library"})
    sum += memory.at(part).integer();
  EXPECT_EQ(memory.at("peak").integer(), sum);
  EXPECT_GT(memory.at("arena").integer(), 0);
  EXPECT_GE(out.at("resident").at("peak_rss").integer(), memory.at("arena").integer());
  EXPECT_EQ(out.at("results").array().size(), 2u);

  const Json timed =
      Json::parse(printed(bench, words({"--json", "--duration", "0", "--warmUp", "0"})), "bench");
  EXPECT_EQ(timed.at("memory").at("arena"), memory.at("arena"));
  EXPECT_GT(timed.at("resident").at("rss").integer(), 0);
}

TEST_F(Memory, AboveTheLimitIsRefusedWithTheNeededFigure) {
  const std::int64_t peak =
      Json::parse(printed(run, run_words({"--json"})), "run").at("memory").at("peak").integer();
  printed(run, run_words({"--json", "--max-memory", cat(peak)}));
  testing::internal::CaptureStdout();
  try {
    call(run, run_words({"--json", "--max-memory", cat(peak - 1)}));
    ADD_FAILURE() << "ran with less than it needs";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find(cat("needs ", peak, " bytes")), std::string::npos)
        << e.what();
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

}  // namespace
}  // namespace hone::cli
