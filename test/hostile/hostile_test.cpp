// Runs every case in a separate process, on a thread with 256 KiB of stack, with two seconds of
// processor time and 256 MiB more memory than an idle process.
#include "test/hostile/hostile.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <optional>

#include "base/sanitizer.h"
#include "runtime/execute.h"

namespace hone::hostile {
namespace {

constexpr bool is_instrumented = with_address_sanitizer || with_thread_sanitizer;
// Instrumented, unoptimized code needs about four times the stack and ten times the time.
constexpr std::size_t stack_bytes = (is_instrumented ? 1024 : 256) << 10;
constexpr double most_seconds = is_instrumented ? 30 : 2;
constexpr long most_kib = 256 << 10;  // not checked if instrumented: shadow memory adds to it
constexpr rlim_t most_address_space = rlim_t{4} << 30;  // stops a leak from using all memory
constexpr unsigned most_wall_seconds = 100;  // a process that waits forever uses no CPU time

struct Outcome {
  std::string said;
  double seconds = 0;
  long kib = 0;
};

double seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
}

// What the function returned, or how it failed.
std::string said_by(const std::function<std::string()>& f) {
  try {
    return f();
  } catch (const Cancelled& e) {
    return cat("cancelled: ", e.what());
  } catch (const UserError& e) {
    return cat("refused: ", e.what());
  } catch (const std::exception& e) {
    return cat("another exception: ", e.what());
  }
}

std::string on_small_stack(const std::function<std::string()>& f) {
  struct Call {
    const std::function<std::string()>& f;
    std::string said;
  } call{f, {}};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  pthread_t thread;
  auto go = [](void* p) -> void* {
    Call& c = *static_cast<Call*>(p);
    c.said = said_by(c.f);
    return nullptr;
  };
  if (pthread_create(&thread, &attributes, go, &call) != 0) return "no thread";
  pthread_join(thread, nullptr);
  return call.said;
}

void limit(int resource, rlim_t most) {
  const rlimit both{most, most};
  setrlimit(resource, &both);
}

// Runs f in a forked process and reads its result through a pipe.
Outcome in_process(const std::function<std::string()>& f) {
  int ends[2];
  if (::pipe(ends) != 0) return {"no pipe"};
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    ::alarm(most_wall_seconds);
    limit(RLIMIT_CORE, 0);
    const std::string said = f();
    const bool all = ::write(ends[1], said.data(), std::min<std::size_t>(said.size(), 4000)) >= 0;
    ::_exit(all ? 0 : 1);
  }
  ::close(ends[1]);
  Outcome out;
  char part[4096];
  for (ssize_t n; (n = ::read(ends[0], part, sizeof part)) > 0;)
    out.said.append(part, static_cast<std::size_t>(n));
  ::close(ends[0]);
  int status = 0;
  rusage used = {};
  ::wait4(child, &status, 0, &used);
  if (WIFSIGNALED(status)) out.said = cat("signal ", WTERMSIG(status), " ", out.said);
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
    out.said = cat("exit ", WEXITSTATUS(status), " ", out.said);
  out.seconds = seconds(used.ru_utime) + seconds(used.ru_stime);
  out.kib = used.ru_maxrss;
  return out;
}

Cases all_cases() {
  Cases out;
  for (Cases (*table)() :
       {byte_cases, file_cases, graph_cases, operator_cases, size_cases, tensor_cases,
        safetensors_cases, gguf_cases, plan_cases, text_cases, string_cases})
    for (Case& c : table()) out.push_back(std::move(c));
  return out;
}

const Cases& cases() {
  static const Cases all = all_cases();
  return all;
}

class Hostile : public testing::TestWithParam<std::size_t> {
 protected:
  static void SetUpTestSuite() {
    least_kib_ =
        in_process([] { return on_small_stack([] { return std::string("nothing"); }); }).kib;
  }
  static void TearDownTestSuite() {
    std::printf("most seconds: %.2f in %s; most memory: %.1f MiB in %s\n", slowest_.seconds,
                slowest_.said.c_str(), static_cast<double>(largest_.kib) / 1024,
                largest_.said.c_str());
  }

  inline static long least_kib_ = 0;
  inline static Outcome slowest_, largest_;
};

TEST_P(Hostile, IsRefusedOrRead) {
  const Case& c = cases()[GetParam()];
  const TempDirectory directory;
  const fs::path file = directory.path() / c.file;
  const Outcome made = in_process([&] { return said_by([&] { return c.make(file), "made"; }); });
  ASSERT_EQ(made.said, "made");
  Outcome got = in_process([&] {
    limit(RLIMIT_CPU, static_cast<rlim_t>(most_seconds));
    if (!is_instrumented) limit(RLIMIT_AS, most_address_space);
    return on_small_stack([&] { return c.open(file); });
  });
  got.kib -= least_kib_;
  EXPECT_NE(got.said.find(c.expected), std::string::npos)
      << "expected: " << c.expected << "\nsaid:     " << got.said;
  EXPECT_LT(got.seconds, most_seconds);
  if (!is_instrumented) {
    EXPECT_LT(got.kib, most_kib);
  }
  if (got.seconds > slowest_.seconds) slowest_ = {c.name, got.seconds, got.kib};
  if (got.kib > largest_.kib) largest_ = {c.name, got.seconds, got.kib};
}

std::vector<std::size_t> numbers() {
  std::vector<std::size_t> out(cases().size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = i;
  return out;
}

INSTANTIATE_TEST_SUITE_P(Files, Hostile, testing::ValuesIn(numbers()),
                         [](const auto& i) { return cases()[i.param].name; });

TEST(HostileSet, HasAtLeast120Files) { EXPECT_GE(cases().size(), 120u); }

}  // namespace
}  // namespace hone::hostile
