#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "base/flags.h"
#include "base/large_memory.h"
#include "base/start_again.h"
#include "cli/commands.h"
#include "compile/suspects.h"

namespace hone::cli {
namespace {

struct Command {
  std::string_view name, does;
  int (*run)(Words);
};

constexpr Command commands[] = {
    {"optimize", "compile with every strategy, verify, time side by side, write the plan",
     optimize},
    {"tune", "time the ways to compute each part of a model, and keep the winners", tune},
    {"run", "run a model or plan once on given inputs", run},
    {"bench", "time a model or plan", bench},
    {"selftest", "check that a plan computes here what it computed when it was verified", selftest},
    {"reduce", "shrink a case that shows a bug of the compiler", reduce},
    {"validate", "run the test sets beside a model, and compare the outputs", validate},
    {"explain", "show which kernel or library runs each part of a model, and why", explain},
    {"aot", "write a model as C that needs only libc and libm", aot},
    {"export", "write a model, or the graph that a plan keeps, as ONNX", export_model},
    {"inspect", "show inputs, outputs, operators and weights of a file, without compiling it",
     inspect},
    {"check", "report everything wrong or unsupported in a file", check},
    {"ops", "list the operations, and the ONNX operators that become them", ops},
    {"devices", "list what this machine computes with", devices},
    {"doctor", "find what is missing or set up badly, and how to fix it", doctor},
    {"flags", "list the environment variables that hone reads", flags},
};

std::string help() {
  std::string out =
      "Compiles a model into one verified plan that runs as fast as the best known way on this\n"
      "machine.\nusage: hone COMMAND [arguments]\n\n";
  for (const Command& c : commands) {
    std::string line = cat("  ", c.name);
    line.resize(13, ' ');
    out += cat(line, c.does, "\n");
  }
  return out +
         "\n  hone COMMAND --help lists the options of a command; every command takes --json\n"
         "\nexample:\n"
         "  hone optimize model.onnx -o model.hone && hone run model.hone --input x.npy\n" +
         std::string(exit_codes);
}

int dispatch(Words words) {
  const std::string_view name = words.empty() ? "--help" : words[0];
  if (name == "-h" || name == "--help" || name == "help") {
    std::fputs(help().c_str(), words.empty() ? stderr : stdout);
    return words.empty() ? exit_usage : exit_ok;
  }
  if (name == "--version") return std::puts("hone " HONE_VERSION), exit_ok;
  std::vector<std::string_view> known = {"--help", "--version"};
  for (const Command& c : commands) {
    if (c.name == name) {
      if (c.run != doctor) warn_of_misspelt_flags("hone", words);  // doctor reports them itself
      return c.run(words.subspan(1));
    }
    known.push_back(c.name);
  }
  throw UsageError(cat(name.starts_with("-") ? "unknown option '" : "unknown command '", name, "'",
                       did_you_mean(name, known), "\nSee hone --help."));
}

// Starts this program again after a candidate broke the device, which ends all use of the device in
// a process. The new one knows the candidate.
int started_again(char** argv, const DeviceBroken& e) {
  constexpr long most = 16;
  if (!e.is_remembered)
    throw UserError(e.what(),
                    "; with the cache on, hone starts again and avoids that candidate: leave out "
                    "--no-cache");
  const long before = flag_number("HONE_RESTARTS");
  if (before >= most)
    throw UserError(e.what(), "; started again ", most,
                    " times for such errors, which is the most");
  std::fprintf(stderr, "hone: warning: %s\nhone: starting again without what broke the device\n",
               e.what());
  start_again(argv, "HONE_RESTARTS", std::to_string(before + 1));
  throw UserError(e.what(), "; run the command again: it will avoid that candidate");
}

}  // namespace

}  // namespace hone::cli

int main(int argc, char** argv) {
  // libgomp's threads would otherwise spin after each library call and starve our pool.
  ::setenv("OMP_WAIT_POLICY", "passive", 0);
  hone::keep_freed_memory();
  const std::span<char* const> words(argv + 1, static_cast<std::size_t>(argc > 0 ? argc - 1 : 0));
  return hone::cli::guarded("hone", words, [&] {
    try {
      return hone::cli::dispatch(words);
    } catch (const hone::DeviceBroken& e) {
      return hone::cli::started_again(argv, e);
    }
  });
}
