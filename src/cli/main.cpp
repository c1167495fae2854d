#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "cli/commands.h"

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
    {"selftest", "whether a plan computes here what it computed when it was verified", selftest},
    {"reduce", "make a case that shows a mistake of the compiler smaller", reduce},
    {"validate", "run the test sets that lie beside a model, and compare", validate},
    {"explain", "which kernel or library runs each part of a model, and why", explain},
    {"aot", "write a model as C that needs libc and libm only", aot},
    {"export", "write a model, or the graph that a plan keeps, as ONNX", export_model},
    {"inspect", "inputs, outputs, operators and weights of a file, without compiling it", inspect},
    {"check", "everything wrong or unsupported in a file, in one report", check},
    {"ops", "the operations, and the ONNX operators that become them", ops},
    {"devices", "what this machine computes with", devices},
    {"doctor", "what is missing or set up badly, and how to fix it", doctor},
    {"flags", "the environment variables that hone reads", flags},
};

std::string help() {
  std::string out =
      "Takes a model and gives one verified plan that runs it as fast as the best known way on "
      "this\n"
      "machine.\nusage: hone COMMAND [arguments]\n\n";
  for (const Command& c : commands) {
    std::string line = cat("  ", c.name);
    line.resize(13, ' ');
    out += cat(line, c.does, "\n");
  }
  return out +
         "\n  hone COMMAND --help tells what a command takes; --json makes any of them print JSON\n"
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
  std::vector<std::string_view> known;
  for (const Command& c : commands) {
    if (c.name == name) return c.run(words.subspan(1));
    known.push_back(c.name);
  }
  throw UsageError(
      cat("unknown command '", name, "'", did_you_mean(name, known), "\nSee hone --help."));
}

}  // namespace

}  // namespace hone::cli

int main(int argc, char** argv) {
  // libgomp's threads would otherwise spin after each library call and starve our pool.
  ::setenv("OMP_WAIT_POLICY", "passive", 0);
  const std::span<char* const> words(argv + 1, static_cast<std::size_t>(argc > 0 ? argc - 1 : 0));
  return hone::cli::guarded("hone", words, [&] { return hone::cli::dispatch(words); });
}
