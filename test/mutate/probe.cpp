// Compiles and runs small models, each in its own process, and prints the outcomes. The campaign of
// tools/mutate runs it once for each change of the compiler (docs/testing.md).
//
// usage: mutation_probe MODE CORPUS SCRATCH SECONDS MOST NAME...
//
// MODE `plain` compiles with each strategy but auto without verification or timing; `optimize` does
// what `hone optimize` does, with little time for comparisons, and reads the plan that it wrote.
// Then the results are compared with CORPUS/NAME/sets (test/mutate/corpus.py). It stops after MOST
// models whose outcome is not `same`. Prints a line for each model: NAME, outcome, seconds,
// message, separated by tabs. The outcomes:
//   same      all results are as expected
//   differs   a result differs: a wrong plan
//   fails     a plan was made, and running it ends in an error
//   none      no plan: a compiler error, including every refusal by verification
//   dies      no plan: the process crashed or took too long
//   dies-run  a plan was made, and running it crashed or took too long
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "api/compiler.h"
#include "backend/devices/devices.h"
#include "cli/commands.h"
#include "import/tensor_file.h"
#include "plan/plan_file.h"
#include "runtime/session.h"

namespace fs = std::filesystem;
using namespace hone;

namespace {

enum Outcome : int { same, differs, fails, none, dies, dies_run };
constexpr const char* names[] = {"same", "differs", "fails", "none", "dies", "dies-run"};

struct Limit {
  double absolute = 0, relative = 0;
};

struct Set {
  std::vector<Array> inputs, outputs;
  std::vector<Limit> limits;
};

std::vector<Array> read_arrays(const fs::path& folder, const std::string& kind) {
  std::vector<Array> out;
  for (int i = 0;; ++i) {
    const fs::path file = folder / cat(kind, "_", i, ".npy");
    if (!fs::exists(file)) return out;
    out.push_back(read_npy(file));
  }
}

std::vector<Set> read_sets(const fs::path& model) {
  std::vector<Set> out;
  for (int k = 0; fs::exists(model / "sets" / std::to_string(k)); ++k) {
    const fs::path folder = model / "sets" / std::to_string(k);
    Set s{read_arrays(folder, "input"), read_arrays(folder, "output"), {}};
    std::ifstream limits(folder / "limits.txt");
    for (Limit l; limits >> l.absolute >> l.relative;) s.limits.push_back(l);
    out.push_back(std::move(s));
  }
  if (out.empty()) throw UserError(model.string(), ": holds no sets; run test/mutate/corpus.py");
  return out;
}

// An independent comparison, because the compiler's own is under test.
bool is_close(double got, double expected, const Limit& l) {
  if (std::isnan(expected)) return std::isnan(got);
  if (std::isinf(expected) || std::isinf(got)) return got == expected;
  return std::fabs(got - expected) <= l.absolute + l.relative * std::fabs(expected);
}

// What is wrong with a result, or empty.
std::string difference(const Array& got, const Array& expected, const Limit& limit) {
  if (got.dtype() != expected.dtype() || got.dims() != expected.dims())
    return cat("is ", got.type(), ", expected ", expected.type());
  if (limit.absolute == 0 && limit.relative == 0)
    return got == expected ? "" : "differs in an element that must be equal";
  for (std::int64_t i = 0; i < got.count(); ++i)
    if (!is_close(got.real(i), expected.real(i), limit))
      return cat("element ", i, " is ", got.real(i), ", expected ", expected.real(i));
  return "";
}

// Runs all sets in one session, then the first one again, after other sizes.
std::string judge(const std::shared_ptr<const Plan>& plan, const std::vector<Set>& sets) {
  Session session(Executable::load(plan, open_devices(*plan)));
  for (std::size_t k = 0; k <= sets.size(); ++k) {
    const Set& s = sets[k % sets.size()];
    const std::vector<Array> got = session.run(s.inputs);
    if (got.size() != s.outputs.size())
      return cat(got.size(), " results, expected ", s.outputs.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      if (const std::string d = difference(got[i], s.outputs[i], s.limits.at(i)); !d.empty())
        return cat("set ", k % sets.size(), ", result ", i, ": ", d);
  }
  return "";
}

struct Job {
  bool is_plain = false;
  fs::path model, scratch;
};

// An unverified plan of one strategy, or null if the strategy does not apply.
std::shared_ptr<const Plan> unchecked(const Source& s, std::string_view strategy) {
  // auto chooses among the other strategies' candidates for each group.
  if (strategy == "ref" || strategy == "auto" || !absence_of(strategy).empty()) return nullptr;
  CompileOptions options;
  options.strategy = strategy;
  options.verification = Verification::none;
  options.cache = false;
  CompileReport report;
  auto plan = std::make_shared<const Plan>(compile(s, options, &report));
  return names_library(strategy) && report.library_groups == 0 ? nullptr : plan;
}

Outcome plain(const Job& job, const std::vector<Set>& sets) {
  const Source s = source(import_onnx(job.model / "model.onnx"));
  for (const std::string_view strategy : strategies()) {
    const std::shared_ptr<const Plan> plan = unchecked(s, strategy);
    if (!plan) continue;
    std::ofstream(job.scratch / "plan.hone") << "made";
    if (const std::string wrong = judge(plan, sets); !wrong.empty()) {
      std::fprintf(stderr, "%s: %s\n", std::string(strategy).c_str(), wrong.c_str());
      return differs;
    }
    fs::remove(job.scratch / "plan.hone");
  }
  return same;
}

Outcome optimized(const Job& job, const std::vector<Set>& sets) {
  std::vector<std::string> words = {(job.model / "model.onnx").string(),
                                    "-o",
                                    (job.scratch / "plan.hone").string(),
                                    "--budget",
                                    "0.3",
                                    "--rounds",
                                    "2"};
  std::vector<char*> given;
  for (std::string& w : words) given.push_back(w.data());
  if (cli::guarded("hone", given, [&] { return cli::optimize(given); }) != cli::exit_ok)
    return none;
  const auto plan = std::make_shared<const Plan>(read_plan(job.scratch / "plan.hone"));
  const std::string wrong = judge(plan, sets);
  if (!wrong.empty()) std::fprintf(stderr, "the written plan: %s\n", wrong.c_str());
  return wrong.empty() ? same : differs;
}

[[noreturn]] void child(const Job& job, int seconds) {
  ::setpgid(0, 0);
  const rlimit processor{static_cast<rlim_t>(2 * seconds), static_cast<rlim_t>(2 * seconds + 1)};
  const rlimit memory{rlim_t{16} << 30, rlim_t{16} << 30}, cores{0, 0};
  ::setrlimit(RLIMIT_CPU, &processor);
  ::setrlimit(RLIMIT_AS, &memory);
  ::setrlimit(RLIMIT_CORE, &cores);
  const int log = ::open((job.scratch / "log").c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
  ::dup2(log, 1);
  ::dup2(log, 2);
  int outcome = none;
  try {
    const std::vector<Set> sets = read_sets(job.model);
    outcome = job.is_plain ? plain(job, sets) : optimized(job, sets);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    outcome = fs::exists(job.scratch / "plan.hone") ? fails : none;
  }
  std::fflush(nullptr);
  ::_exit(outcome);
}

// The end of what the process printed, on one line.
std::string message(const fs::path& log) {
  std::ifstream file(log);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (text.size() > 1500) text.erase(0, text.size() - 1500);
  std::ranges::replace_if(text, [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return text;
}

bool probe(const std::string& name, const Job& job, int seconds) {
  fs::remove(job.scratch / "plan.hone");
  std::fflush(nullptr);
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const pid_t pid = ::fork();
  if (pid == 0) child(job, seconds);
  int status = 0;
  bool is_late = false;
  while (::waitpid(pid, &status, WNOHANG) == 0) {
    if (Clock::now() - start > std::chrono::seconds(seconds) && !is_late) {
      is_late = true;
      ::kill(-pid, SIGKILL);
      ::kill(pid, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  ::kill(-pid, SIGKILL);  // a self-test that is still running
  const bool has_plan = fs::exists(job.scratch / "plan.hone");
  int outcome = WIFEXITED(status) ? WEXITSTATUS(status) : has_plan ? dies_run : dies;
  if (outcome > dies_run) outcome = has_plan ? dies_run : dies;
  std::string text = message(job.scratch / "log");
  if (is_late)
    text += " (took too long)";
  else if (WIFSIGNALED(status))
    text += cat(" (signal ", WTERMSIG(status), ")");
  const double took = std::chrono::duration<double>(Clock::now() - start).count();
  std::printf("%s\t%s\t%.3f\t%s\n", name.c_str(), names[outcome], took, text.c_str());
  std::fflush(stdout);
  return outcome == same;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 7 || (std::string(argv[1]) != "plain" && std::string(argv[1]) != "optimize")) {
    std::fprintf(stderr,
                 "usage: mutation_probe plain|optimize CORPUS SCRATCH SECONDS MOST NAME...\n");
    return 2;
  }
  ::setenv("OMP_WAIT_POLICY", "passive", 0);  // as main() of hone does
  const fs::path scratch = argv[3];
  ::setenv("HONE_CACHE_DIR", (scratch / "cache").c_str(), 1);
  int left = std::atoi(argv[5]);
  for (int i = 6; i < argc && left > 0; ++i)
    left -= !probe(argv[i], {std::string(argv[1]) == "plain", fs::path(argv[2]) / argv[i], scratch},
                   std::atoi(argv[4]));
  return 0;
}
