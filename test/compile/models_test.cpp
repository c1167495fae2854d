// What a model must do from file to numbers, for the four real models.
#include "test/compile/models.h"

#include <immintrin.h>

#include <atomic>

#include "backend/cpu/isa/isa.h"
#include "plan/plan_file.h"
#include "verify/sizes.h"

namespace hone {
namespace {

using namespace test;

class Models : public ::testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() { cache_ = std::make_unique<EmptyCache>(); }
  static void TearDownTestSuite() { cache_ = nullptr; }

  std::shared_ptr<const Plan> compiled(const std::string& strategy,
                                       CompileReport* report = nullptr) {
    CompileOptions options;
    options.strategy = strategy;
    return std::make_shared<const Plan>(compile(model_source(GetParam()), options, report));
  }
  static std::unique_ptr<EmptyCache> cache_;
};
std::unique_ptr<EmptyCache> Models::cache_;

TEST_P(Models, PassTheirSetsUnderEveryStrategy) {
  Source source = model_source(GetParam());
  for (const char* strategy : {"cpu", "onednn", "auto"}) {
    std::unique_ptr<Session> session = session_of(compiled(strategy), 2);
    for (const TestSet& set : test_sets(GetParam()))
      expect_close(session->run(set.inputs), set.outputs, GetParam() + " " + strategy);
  }
}

TEST_P(Models, PassTheirSetsUnderTheReference) {
  Source source = model_source(GetParam());
  for (const TestSet& set : test_sets(GetParam())) {
    std::vector<std::vector<std::int64_t>> dims;
    for (const Array& a : set.inputs) dims.push_back(a.dims());
    bool served = false;
    for (const SourceVariant& v : source.variants) {
      if (served || !guards_hold(v.guards, bind_sizes(v.function, dims))) continue;
      expect_close(evaluate(v.function, set.inputs), set.outputs, GetParam() + " ref");
      served = true;
    }
    EXPECT_TRUE(served);
  }
}

TEST_P(Models, CompileNothingTheSecondTime) {
  compiled("cpu");
  CompileReport second;
  compiled("cpu", &second);
  EXPECT_EQ(second.compiled, 0);
  EXPECT_EQ(second.verified, 0);
  EXPECT_GT(second.from_cache, 0);
}

TEST_P(Models, RunFromThePlanFile) {
  fs::path file = cache_->directory() / (GetParam() + ".hone");
  write_plan(file, *compiled("cpu"));
  auto plan = std::make_shared<const Plan>(read_plan(file));
  std::unique_ptr<Session> session = session_of(plan);
  for (const TestSet& set : test_sets(GetParam()))
    expect_close(session->run(set.inputs), set.outputs, GetParam() + " from its plan file");
}

TEST_P(Models, GiveEqualBitsOnAnyNumberOfThreadsAndInEveryRun) {
  auto plan = compiled("cpu");
  const TestSet set = test_sets(GetParam())[0];
  std::vector<Array> first = session_of(plan, 1)->run(set.inputs);
  for (int threads : {2, 4}) {
    std::unique_ptr<Session> session = session_of(plan, threads);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(session->run(set.inputs), first) << threads;
  }
}

TEST_P(Models, NeedLittleMoreArenaThanWhatLives) {
  auto plan = compiled("cpu");
  for (const TestSet& set : test_sets(GetParam())) {
    // A session keeps the largest arena it has needed so far.
    std::unique_ptr<Session> session = session_of(plan);
    session->run(set.inputs);
    for (std::size_t i = 0; i < set.inputs.size(); ++i)
      session->bind_input(i, as_input(set.inputs[i]));
    MemoryReport m = session->memory();
    EXPECT_LE(static_cast<double>(m.arena), 1.1 * static_cast<double>(m.arena_lower_bound))
        << GetParam();
    EXPECT_GT(m.arena, 0u);
  }
}

// A plan with code for two machines holds one copy of the data that both read.
TEST_P(Models, ServeTwoTargetsFromOneFile) {
  CompileOptions options;
  options.strategy = "cpu";
  options.targets = {"x86-64-v3", "x86-64-v4"};
  if (cpu::machine_isa() < cpu::Isa::v4) GTEST_SKIP() << "this machine has no AVX-512";
  fs::path file = cache_->directory() / (GetParam() + "-two.hone");
  write_plan(file, compile(model_source(GetParam()), options));
  for (const char* isa : {"x86-64-v3", "x86-64-v4"}) {
    ::setenv("HONE_CPU_ISA", isa, 1);
    std::unique_ptr<Session> session = session_of(std::make_shared<const Plan>(read_plan(file)));
    ::unsetenv("HONE_CPU_ISA");
    for (const TestSet& set : test_sets(GetParam()))
      expect_close(session->run(set.inputs), set.outputs, GetParam() + " " + isa);
  }
}

// Rounding, denormal flushing and exception masks, but not the status flags that operations raise.
unsigned float_mode() { return _mm_getcsr() & ~0x3fU; }

// Checks the mode of its threads after everything that they compute.
class WatchedPool final : public ThreadPool {
 public:
  int threads() const override { return inner_->threads(); }
  void run(std::int64_t chunks, Body body, void* context) override {
    Job job{this, body, context};
    inner_->run(
        chunks,
        [](void* given, std::int64_t begin, std::int64_t end, int thread) {
          const Job& j = *static_cast<Job*>(given);
          const unsigned before = float_mode();
          j.body(j.context, begin, end, thread);
          ++j.pool->calls;
          j.pool->changes += float_mode() != before;
        },
        &job);
  }
  std::atomic<int> calls{0}, changes{0};

 private:
  struct Job {
    WatchedPool* pool;
    Body body;
    void* context;
  };
  std::unique_ptr<ThreadPool> inner_ = make_thread_pool({.threads = 2});
};

TEST_P(Models, LeaveTheModeOfFloatsAsItIs) {
  const TestSet set = test_sets(GetParam())[0];
  const unsigned usual = _mm_getcsr();
  constexpr unsigned flush_to_zero = 0x8000, denormals_are_zero = 0x40;
  for (const char* strategy : {"cpu", "onednn"})
    for (unsigned mode : {usual, usual | flush_to_zero | denormals_are_zero}) {
      const auto pool = std::make_shared<WatchedPool>();
      Session session(Executable::load(compiled(strategy), open_device("cpu")), {.pool = pool});
      _mm_setcsr(mode);
      const unsigned before = float_mode();
      session.run(set.inputs);
      const unsigned after = float_mode();
      _mm_setcsr(usual);
      EXPECT_EQ(after, before) << strategy;
      EXPECT_EQ(pool->changes, 0) << strategy;
      // In the smallest model every step is too small to run on the pool.
      EXPECT_TRUE(pool->calls > 0 || GetParam() == "silero_vad") << strategy;
    }
}

INSTANTIATE_TEST_SUITE_P(Real, Models, ::testing::ValuesIn(model_names()),
                         [](const auto& info) { return info.param; });

TEST(Magika, ServesEveryBatchFromOnePlan) {
  EmptyCache cache;
  CompileOptions options;
  options.strategy = "cpu";
  Source source = model_source("magika_v3_3");
  auto plan = std::make_shared<const Plan>(compile(source, options));
  std::unique_ptr<Session> session = session_of(plan, 2);
  const TestSet eight = test_sets("magika_v3_3")[0];
  const std::vector<Array> whole = session->run(eight.inputs);
  // Rows are independent: row i of any batch equals row i mod 8 of the batch of eight.
  for (std::int64_t batch : {1, 3, 8, 17}) {
    Array input = Array::zeros(DType::i32, {batch, 2048});
    for (std::int64_t i = 0; i < batch * 2048; ++i)
      input.set_integer(i, eight.inputs[0].integer(i % (8 * 2048)));
    std::vector<Array> got = session->run(std::vector<Array>{input});
    ASSERT_EQ(got[0].dims(), (std::vector<std::int64_t>{batch, 214}));
    for (std::int64_t i = 0; i < batch * 214; ++i)
      ASSERT_NEAR(got[0].real(i), eight.outputs[0].real(i % (8 * 214)), 2e-4) << batch;
  }
}

TEST(Errors, NameTheNodeAfterAllPasses) {
  EmptyCache cache;
  Source source = model_source("magika_v3_3");
  std::unique_ptr<Session> session =
      session_of(std::make_shared<const Plan>(compile(source, {.strategy = "cpu"})));
  try {
    session->run(std::vector<Array>{Array::zeros(DType::i32, {2, 2047})});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("bytes"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("2047"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace hone
