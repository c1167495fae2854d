// A candidate that breaks its device costs that candidate: the next process avoids it.
#include "compile/suspects.h"

#include <unistd.h>

#include <filesystem>
#include <latch>
#include <thread>

#include "compile/compile.h"
#include "kernel/kernel.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "test/backend/conformance.h"
#include "test/far/far.h"

namespace hone::test {
namespace {

// A cache directory that lives as long as this.
class Cache {
 public:
  Cache() {
    if (const char* set = std::getenv("HONE_CACHE_DIR")) before_ = set;
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directory(directory_);
    std::filesystem::permissions(directory_, std::filesystem::perms::owner_all);
    ::setenv("HONE_CACHE_DIR", directory_.c_str(), 1);
  }
  ~Cache() {
    std::filesystem::remove_all(directory_);
    before_.empty() ? ::unsetenv("HONE_CACHE_DIR") : ::setenv("HONE_CACHE_DIR", before_.c_str(), 1);
  }

 private:
  const std::filesystem::path directory_ = testing::TempDir() + cat("hone_suspects_", ::getpid());
  std::string before_;
};

// What a process knows.
struct Process {
  CompileStore store{true};
  Suspects suspects{store.verdicts};
};

const Hash128 one = hash128("one"), two = hash128("two");
void breaks() { throw DeviceLost("it broke"); }
void works() {}

TEST(Suspects, OneThatRanAloneIsRefusedFromThenOn) {
  const Cache cache;
  {
    Process p;
    p.suspects.watch(two, "two", works);
    EXPECT_THROW(p.suspects.watch(one, "one", breaks), DeviceBroken);
    EXPECT_THROW(p.suspects.watch(two, "two", works), DeviceBroken) << "the device is lost";
  }
  Process p;
  EXPECT_THROW(p.suspects.watch(one, "one", works), UserError);
  p.suspects.watch(two, "two", works);
}

TEST(Suspects, OfSeveralThatRanTheNextProcessFindsTheOne) {
  const Cache cache;
  {
    Process p;
    std::latch both(2);
    std::thread other([&] {
      p.suspects.watch(two, "two", [&] {
        both.arrive_and_wait();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      });
    });
    EXPECT_THROW(p.suspects.watch(one, "one",
                                  [&] {
                                    both.arrive_and_wait();
                                    breaks();
                                  }),
                 DeviceBroken);
    other.join();
  }
  {
    Process p;
    p.suspects.watch(two, "two", works);
    EXPECT_THROW(p.suspects.watch(one, "one", breaks), DeviceBroken);
  }
  Process p;
  EXPECT_THROW(p.suspects.watch(one, "one", works), UserError);
  p.suspects.watch(two, "two", works);
}

TEST(Suspects, WithoutACacheNothingIsRemembered) {
  CompileStore store(false);
  Suspects suspects(store.verdicts);
  try {
    suspects.watch(one, "one", breaks);
    FAIL();
  } catch (const DeviceBroken& e) {
    EXPECT_FALSE(e.is_remembered);
    EXPECT_EQ(std::string(e.what()), "candidate one: it broke");
  }
}

Function rows(const Op& op) {
  Function f;
  const Value x = f.add_param(f32({40, 300}), "x");
  f.add_result(&op == &ops::softmax ? op(x, {{"axis", 1}}) : reduce_axes(op, x, {1}), "y");
  return f;
}

Plan compiled(const Function& f, bool measures) {
  CompileOptions options{.backend = &far_backend()};
  options.measure = measures;
  return compile({"rows", {{{}, f}}, {}}, options);
}

// This device has one candidate for these rows, so the next compilation has none.
TEST(Suspects, ACompilationKnowsTheCandidateThatBrokeItsDevice) {
  for (const bool measures : {false, true}) {
    const Cache cache;
    set_far_pace(
        {.breaks = [](const Kernel& k) { return print(k).find("exp") != std::string::npos; }});
    EXPECT_THROW(compiled(rows(ops::softmax), measures), DeviceBroken);
    const std::string why = refusal([&] { compiled(rows(ops::softmax), measures); });
    EXPECT_NE(why.find("it made the device fail in an earlier run"), std::string::npos) << why;
    compiled(rows(ops::reduce_max), measures);
    set_far_pace({});
  }
}

}  // namespace
}  // namespace hone::test
