// The time from starting `hone-run` on a plan of squeezenet to its end, compared with one steady
// run of the same plan in this process; the two alternate. Prints one JSON line; the exit status is
// 1 if a start takes longer than 1.3 steady runs and 20 ms in all three attempts.
// usage: bench_start HONE_RUN [MODELS]
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>

#include "api/compiler.h"
#include "base/json.h"
#include "compile/stats.h"

namespace {

using namespace hone;
namespace fs = std::filesystem;

constexpr int rounds = 25;
constexpr double steady_runs = 1.3, more_ms = 20;

double ms(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

void start(std::vector<std::string> command) {
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  int status = 0;
  if (::posix_spawn(&child, argv[0], nullptr, nullptr, argv.data(), environ) != 0 ||
      ::waitpid(child, &status, 0) != child || status != 0)
    throw UserError(command[0], ": did not start or failed; is it the program hone-run?");
}

struct Times {
  std::vector<double> start, steady, rest;  // rest: start - steady_runs * steady, for each pair
};

// Each round is one start and one run; an extra run before it warms what the start has cooled.
Times measure(const std::vector<std::string>& command, const std::function<void()>& run) {
  Times t;
  start(command);
  for (int i = 0; i < rounds; ++i) {
    t.start.push_back(ms([&] { start(command); }));
    run();
    t.steady.push_back(ms(run));
    t.rest.push_back(t.start.back() - steady_runs * t.steady.back());
  }
  return t;
}

Json json(const Interval& i) {
  return Json::Object{{"median", i.median}, {"low", i.low}, {"high", i.high}};
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) throw UserError("usage: bench_start HONE_RUN [MODELS]");
  const fs::path model = fs::path(argc > 2 ? argv[2] : "../shared/models") / "squeezenet_fp16";
  const fs::path input = model / "test_data_set_0/input_0.pb";
  const fs::path work = fs::temp_directory_path() / cat("hone_bench_start_", ::getpid());
  fs::create_directories(work);

  Source s = source(import_onnx(model / "model.onnx"));
  s.samples.push_back({read_tensor_pb(input)});
  CompileOptions options;
  options.measure = true;
  const Plan plan = compile(s, options);
  write_plan(work / "plan.hone", plan);
  const std::unique_ptr<Session> session = open_session(plan);
  const std::vector<std::string> command = {argv[1], work / "plan.hone", "-q", "-i", input, "-o",
                                            work};
  bool is_ok = false;
  Times t;
  int attempts = 0;
  while (!is_ok && attempts++ < 3) {
    t = measure(command, [&] { session->run(s.samples[0]); });
    is_ok = median_interval(t.rest).low <= more_ms;
  }
  fs::remove_all(work);
  std::printf("%s\n", Json(Json::Object{{"gate", "squeezenet: start of a plan file"},
                                        {"start_ms", json(median_interval(t.start))},
                                        {"steady_ms", json(median_interval(t.steady))},
                                        {"start_less_1.3_steady_ms", json(median_interval(t.rest))},
                                        {"limit_ms", more_ms},
                                        {"rounds", rounds},
                                        {"attempts", attempts},
                                        {"ok", is_ok}})
                          .text()
                          .c_str());
  return is_ok ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
