// The conformance runner: every test of the ONNX backend suite under each strategy, in forked
// processes, compared with the list of tests that do not pass.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "base/file.h"
#include "test/onnx/expected.h"
#include "test/onnx/run_case.h"
#include "test/onnx/tier.h"
#include "test/onnx/workers.h"

namespace hone::conformance {

namespace {

namespace fs = std::filesystem;

constexpr int exit_ok = 0, exit_differs = 1, exit_usage = 2;
constexpr int exit_not_run = 77;  // CTest reports this exit code as skipped

constexpr const char* usage =
    "usage: test_onnx [--strategy ref,cpu,auto] [--filter TEXT] [--list FILE] [--update]\n"
    "                 [--json FILE] [--workers N] [--seconds N] [--show]\n"
    "Runs the tests of the ONNX backend suite whose names hold TEXT. --list FILE compares with\n"
    "the tests it names as not passed, --update rewrites it; --show prints each that fails.\n"
    "The suite is found by HONE_ONNX_TESTS, in ../shared/onnx or in Python's onnx package.\n";

struct Options {
  std::vector<std::string> strategies = {"ref", "cpu", "auto"};
  std::string filter, list, json;
  bool update = false, show = false;
  WorkerOptions workers;
};

std::vector<std::string> words(std::string_view list) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    out.emplace_back(list.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

Options read_options(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    auto value = [&]() -> std::string {
      if (++i >= argc) throw UserError(name, " needs a value\n", usage);
      return argv[i];
    };
    if (name == "--strategy")
      o.strategies = words(value());
    else if (name == "--filter")
      o.filter = value();
    else if (name == "--list")
      o.list = value();
    else if (name == "--json")
      o.json = value();
    else if (name == "--workers")
      o.workers.workers = std::max(1, std::atoi(value().c_str()));
    else if (name == "--seconds")
      o.workers.most_seconds = std::atof(value().c_str());
    else if (name == "--update")
      o.update = true;
    else if (name == "--show")
      o.show = true;
    else
      throw UserError("what is '", name, "'?\n", usage);
  }
  if (o.update && o.list.empty()) throw UserError("--update needs --list FILE\n", usage);
  return o;
}

struct Job {
  std::size_t test;
  std::string strategy;
};

std::string percent(std::size_t part, std::size_t of) {
  char text[16];
  std::snprintf(text, sizeof text, "%5.1f %%",
                of == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(of));
  return text;
}

// Prints passed and total counts for each tier and strategy.
void print_tiers(const Results& results, const std::map<std::string, std::string>& tier_of_test,
                 const std::vector<std::string>& strategies) {
  std::map<std::string, std::map<std::string, std::pair<std::size_t, std::size_t>>> counts;
  for (const auto& [key, o] : results)
    for (const std::string& tier : {tier_of_test.at(key.first), std::string("~ all")}) {
      auto& [passed, all] = counts[tier][key.second];
      passed += o.verdict == Verdict::passed;
      ++all;
    }
  std::printf("%-20s", "passed");
  for (const std::string& s : strategies) std::printf(" %22s", s.c_str());
  for (const auto& [tier, by_strategy] : counts) {
    std::printf("\n%-20s", tier.c_str());
    for (const std::string& s : strategies) {
      auto [passed, all] = by_strategy.at(s);
      std::printf(" %5zu of %4zu (%s)", passed, all, percent(passed, all).c_str());
    }
  }
  std::printf("\n");
}

// The number of tests that fail for each reason, the largest first.
void print_reasons(const Results& results, const std::vector<std::string>& strategies) {
  for (const std::string& s : strategies) {
    std::map<std::string, std::size_t> counts;
    for (const auto& [key, o] : results)
      if (key.second == s && o.verdict != Verdict::passed)
        ++counts[cat(name_of(o.verdict), ": ", kind_of_reason(o))];
    std::vector<std::pair<std::size_t, std::string>> order;
    for (const auto& [why, n] : counts) order.emplace_back(n, why);
    std::sort(order.begin(), order.end(), [](auto& a, auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    std::printf("\nnot passed by %s, by reason\n", s.c_str());
    for (const auto& [n, why] : order) std::printf("%5zu  %s\n", n, why.c_str());
  }
}

void write_json(const std::string& path, const Results& results) {
  Json all = Json::Array{};
  for (const auto& [key, o] : results) {
    Json one = to_json(o);
    one.add("test", key.first);
    one.add("strategy", key.second);
    all.push(std::move(one));
  }
  write_atomic(path, all.text(1) + "\n");
}

int compare_with_list(const Options& options, const Results& results,
                      const std::vector<Case>& cases) {
  const Expected expected = read_expected(options.list);
  std::vector<std::string> lines = surprises(results, expected);
  std::vector<std::string> known;
  for (const Case& c : cases) known.push_back(c.name);
  for (const std::string& test : unknown_tests(expected, known))
    lines.push_back(test + ": is listed and is no test of the suite");
  if (lines.empty()) return exit_ok;
  std::printf("\n%zu not as listed in %s:\n", lines.size(), options.list.c_str());
  for (const std::string& line : lines) std::printf("  %s\n", line.c_str());
  return exit_differs;
}

Results run_all(const Options& options, const std::vector<Case>& cases) {
  std::vector<Job> jobs;
  for (std::size_t i = 0; i < cases.size(); ++i)
    if (cases[i].name.find(options.filter) != std::string::npos)
      for (const std::string& s : options.strategies) jobs.push_back({i, s});
  // Whole networks run first: they take seconds, all others milliseconds.
  std::stable_partition(jobs.begin(), jobs.end(),
                        [&](const Job& j) { return cases[j.test].sets.empty(); });
  Results results;
  run_forked(
      jobs.size(), [&](std::size_t i) { return run_case(cases[jobs[i].test], jobs[i].strategy); },
      options.workers,
      [&](std::size_t i, const Outcome& o) {
        const std::string& name = cases[jobs[i].test].name;
        results[{name, jobs[i].strategy}] = o;
        if (options.show && o.verdict != Verdict::passed)
          std::printf("%s %s: %s: %s\n", name.c_str(), jobs[i].strategy.c_str(),
                      std::string(name_of(o.verdict)).c_str(), o.reason.c_str());
      });
  return results;
}

int run(int argc, char** argv) {
  const Options options = read_options(argc, argv);
  auto suite = find_suite(HONE_SOURCE_DIR, fs::path(HONE_BINARY_DIR) / "onnx_suite");
  if (!suite) {
    std::printf("NOTHING WAS TESTED: the ONNX backend suite was not found.\n%s", usage);
    return exit_not_run;
  }
  const std::vector<Case> cases = list_cases(*suite);
  const auto start = std::chrono::steady_clock::now();
  const Results results = run_all(options, cases);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (results.empty()) throw UserError("no test's name holds '", options.filter, "'");
  std::map<std::string, std::string> tiers;
  for (const Case& c : cases) tiers[c.name] = tier_of(c);
  print_tiers(results, tiers, options.strategies);
  print_reasons(results, options.strategies);
  double import = 0, compile = 0, runs = 0;
  for (const auto& [key, o] : results)
    import += o.import_ms, compile += o.compile_ms, runs += o.run_ms;
  std::printf("\n%.1f s by %d workers: import %.1f s, compile %.1f s, run %.1f s\n", took.count(),
              options.workers.workers, import / 1000, compile / 1000, runs / 1000);
  if (!options.json.empty()) write_json(options.json, results);
  if (options.update) write_expected(options.list, results, options.strategies);
  return options.list.empty() ? exit_ok : compare_with_list(options, results, cases);
}

}  // namespace

}  // namespace hone::conformance

int main(int argc, char** argv) {
  try {
    return hone::conformance::run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "test_onnx: %s\n", e.what());
    return hone::conformance::exit_usage;
  }
}
