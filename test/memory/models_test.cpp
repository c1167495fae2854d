// The memory of the four real models, each opened from its plan file in a fresh process: the report
// before the first run matches what malloc and mmap return, and steady runs allocate nothing.
#include "test/compile/models.h"

#include <cstdio>

#include "base/json.h"
#include "plan/plan_file.h"
#include "test/memory/watch.h"

#ifdef HONE_WATCHES_MEMORY
namespace hone {
namespace {

using namespace test;

struct Case {
  std::string model, strategy;
};

class PlanMemory : public ::testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() { cache_ = std::make_unique<EmptyCache>(); }
  static void TearDownTestSuite() { cache_ = nullptr; }

  static fs::path plan_file() {
    const auto& [model, strategy] = GetParam();
    const fs::path file = cache_->directory() / cat(model, "-", strategy, ".hone");
    if (!fs::exists(file)) {
      CompileOptions options;
      options.strategy = strategy;
      write_plan(file, compile(model_source(model), options));
    }
    return file;
  }

  // A model's smallest test set is its last one.
  static Json probe(int threads, int sessions, int runs) {
    const fs::path root = models_root() / GetParam().model;
    int last = 0;
    while (fs::exists(root / cat("test_data_set_", last + 1))) ++last;
    const std::string command =
        cat(HONE_MEMORY_PROBE, " ", plan_file().string(), " ",
            (root / cat("test_data_set_", last)).string(), " ", threads, " ", sessions, " ", runs);
    std::FILE* pipe = ::popen(command.c_str(), "r");
    std::string text;
    char part[4096];
    while (std::fgets(part, sizeof part, pipe)) text += part;
    EXPECT_EQ(::pclose(pipe), 0) << command;
    return Json::parse(text, command);
  }

  static std::unique_ptr<EmptyCache> cache_;
};
std::unique_ptr<EmptyCache> PlanMemory::cache_;

TEST_P(PlanMemory, PeakIsWhatTheReportSays) {
  for (int threads : {1, 2})
    for (int sessions : {1, 2}) {
      const Json got = probe(threads, sessions, 3);
      const double expected = got.at("expected").real(), seen = got.at("seen").real();
      // Without AVX-512 the library's calls allocate memory that it does not report: on AVX2 0.5 to
      // 6.01 MB depending on the model, the same for all threads and sessions.
      const bool is_known = got.at("library_calls").integer() == 0 ||
                            open_default_device()->description() == "x86-64-v4";
      EXPECT_GE(seen, 0.98 * expected) << threads << " threads, " << sessions;
      const double untold = is_known ? 0 : 6 << 20;
      EXPECT_LE(seen, 1.02 * expected + untold) << threads << " threads, " << sessions;
      std::printf("%d threads, %d sessions: reported %.0f, seen %.0f (%+.2f %%), resident %lld\n",
                  threads, sessions, expected, seen, 100 * (seen / expected - 1),
                  static_cast<long long>(got.at("peak_rss").integer()));
    }
}

TEST_P(PlanMemory, SteadyRunsGiveEqualBitsAndAllocateOnlyInTheLibrary) {
  for (int threads : {1, 2}) {
    const Json got = probe(threads, 1, GetParam().strategy == "cpu" ? 1000 : 50);
    EXPECT_TRUE(got.at("equal_bits").boolean()) << threads;
    const bool calls_library = got.at("library_calls").integer() > 0;
    EXPECT_EQ(got.at("allocations").integer() > 0, calls_library) << threads << got.text();
    if (GetParam().strategy == "cpu") {
      EXPECT_FALSE(calls_library);
    }
  }
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const char* strategy : {"cpu", "onednn", "auto"})
    for (const std::string& model : model_names()) out.push_back({model, strategy});
  return out;
}

INSTANTIATE_TEST_SUITE_P(Real, PlanMemory, ::testing::ValuesIn(cases()), [](const auto& info) {
  return info.param.model + "_" + info.param.strategy;
});

}  // namespace
}  // namespace hone
#endif
