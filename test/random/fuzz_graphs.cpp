// fuzz-graphs: compares thousands of random functions with the reference, or repeats one from its
// seed or from a file.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <random>

#include "base/file.h"
#include "test/random/campaign.h"
#include "test/random/coverage.h"
#include "verify/reduce/case.h"

namespace hone::fuzz {
namespace {

constexpr char usage[] =
    "usage: fuzz-graphs [option...]\n"
    "Makes functions at random and compares the compiler, and some of its variations, with the\n"
    "reference.\n"
    "\n"
    "  --seed S          the functions of the seeds S, S + 1, ... (fresh, and printed, without)\n"
    "  --count N         so many functions (1000)\n"
    "  --seconds T       as many functions as begin within T seconds\n"
    "  --jobs J          in so many processes (one for each processor)\n"
    "  --nodes K         of K nodes each (2 to 60)\n"
    "  --derivatives     with the derivatives of their results as further results\n"
    "  --all             on all variations\n"
    "  --only VARIATION  on the compiler as people use it and this variation\n"
    "  --case FILE       the function of a file, on all variations\n"
    "  --minimise DIR    write a reduced case of each finding to DIR\n"
    "  --print           print the functions, try none\n"
    "  --coverage        print how often each operation stands in them, by dtype, try none\n"
    "  --help            print this\n"
    "\n"
    "Variations: ";
constexpr char exit_codes[] =
    "\nExit code 0: all agree; 1: some do not; 2: the arguments are wrong, or there was an "
    "error.\n";

std::string help() {
  std::string out = usage;
  std::size_t width = out.size() - std::string_view(usage).rfind('\n');
  for (const Executor& e : executors()) {
    if (width + e.name.size() > 90) out += "\n ", width = 1;
    out += cat(" ", e.name);
    width += e.name.size() + 1;
  }
  return out + exit_codes;
}

struct Arguments {
  CampaignOptions campaign;
  bool help = false, print = false, coverage = false;
  std::string minimise, file;
};

std::uint64_t fresh_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 16 ^ device()) % 1000000000000;
}

void check_only(const std::string& name) {
  const bool is_known = name.empty() || std::ranges::any_of(executors(), [&](const Executor& e) {
                          return e.name == name;
                        });
  if (!is_known) throw UserError("fuzz-graphs: --only ", name, ": is no variation\n\n", help());
}

// Parses a whole word as a nonnegative number.
template <class T>
T number(std::string_view option, const std::string& word) {
  T out{};
  const char* end = word.data() + word.size();
  const auto [at, error] = std::from_chars(word.data(), end, out);
  if (error != std::errc() || at != end || out < 0)
    throw UserError("fuzz-graphs: ", option, " ", word, ": is no such number\n\n", help());
  return out;
}

Arguments parse_arguments(int argc, char** argv) {
  Arguments a;
  a.campaign.seed = fresh_seed();
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    auto value = [&] {
      if (i + 1 >= argc) throw UserError("fuzz-graphs: ", name, " needs a value\n\n", help());
      return std::string(argv[++i]);
    };
    if (name == "--count")
      a.campaign.count = number<std::int64_t>(name, value());
    else if (name == "--seconds")
      a.campaign.seconds = number<double>(name, value()), a.campaign.count = std::int64_t{1} << 40;
    else if (name == "--seed")
      a.campaign.seed = number<std::uint64_t>(name, value());
    else if (name == "--jobs")
      a.campaign.jobs = number<int>(name, value());
    else if (name == "--nodes")
      a.campaign.nodes = number<int>(name, value());
    else if (name == "--derivatives")
      a.campaign.derivatives = true;
    else if (name == "--all")
      a.campaign.all = true;
    else if (name == "--only")
      a.campaign.only = value();
    else if (name == "--minimise")
      a.minimise = value();
    else if (name == "--print")
      a.print = true;
    else if (name == "--coverage")
      a.coverage = true;
    else if (name == "--case")
      a.file = value();
    else if (name == "--help" || name == "-h")
      a.help = true;
    else
      throw UserError("fuzz-graphs: '", name, "' is not an option\n\n", help());
  }
  check_only(a.campaign.only);
  return a;
}

void write_reduced(const Case& c, const Finding& finding, const Arguments& a,
                   const std::string& name) {
  const Case small = minimised(c, finding, a.campaign);
  std::filesystem::create_directories(a.minimise);
  const std::string text = case_text(small, text_of(finding));
  write_atomic(std::filesystem::path(a.minimise) / (name + ".hone-ir"), text);
  std::printf("reduced to:\n%s", text.c_str());
}

int try_file(const Arguments& a) {
  auto file = MappedFile::open(a.file);
  const auto bytes = file->bytes();
  const Case c = parse_case({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const Choice choice =
      a.campaign.only.empty() ? [](const Executor&) { return true; } : choice_for(0, a.campaign);
  Finding f = try_apart(c, choice, a.campaign.most_seconds);
  std::printf("%s", text_of(f).c_str());
  if (f.failures.empty() && f.death.empty()) return 0;
  if (!a.minimise.empty())
    write_reduced(c, f, a, std::filesystem::path(a.file).stem().string() + "-reduced");
  return 1;
}

void show(const Arguments& a) {
  for (std::int64_t i = 0; i < a.campaign.count; ++i) {
    const std::uint64_t seed = a.campaign.seed + static_cast<std::uint64_t>(i);
    std::printf("%s\n", case_text(generate(seed, a.campaign.nodes, a.campaign.derivatives),
                                  cat("seed ", seed))
                            .c_str());
  }
}

void show_coverage(const Arguments& a) {
  Coverage coverage;
  for (std::int64_t i = 0; i < a.campaign.count; ++i)
    coverage.add(generate(a.campaign.seed + static_cast<std::uint64_t>(i), a.campaign.nodes,
                          a.campaign.derivatives));
  std::printf("%s", coverage.table().c_str());
}

int campaign(const Arguments& a) {
  std::printf("fuzz-graphs: seed %llu\n", static_cast<unsigned long long>(a.campaign.seed));
  std::fflush(stdout);
  const CampaignResult r = run_campaign(a.campaign);
  for (const Finding& f : r.findings) {
    std::printf(
        "\nfuzz-graphs --seed %llu --count 1%s\n%s", static_cast<unsigned long long>(f.seed),
        a.campaign.nodes ? cat(" --nodes ", a.campaign.nodes).c_str() : "", text_of(f).c_str());
    std::fflush(stdout);
    if (!a.minimise.empty())
      write_reduced(generate(f.seed, a.campaign.nodes, a.campaign.derivatives), f, a,
                    cat("seed-", f.seed));
  }
  if (r.left_out > 0)
    std::printf("%lld functions were none for a variation: it had nothing to do\n",
                static_cast<long long>(r.left_out));
  std::printf(
      "%lld functions, %.1f nodes each, %lld comparisons in %.1f s; %lld results within rounding "
      "that the rule refuses; %zu functions disagree\n",
      static_cast<long long>(r.functions),
      static_cast<double>(r.nodes) / static_cast<double>(std::max<std::int64_t>(1, r.functions)),
      static_cast<long long>(r.comparisons), r.seconds, static_cast<long long>(r.explained),
      r.findings.size());
  return r.findings.empty() ? 0 : 1;
}

int run(int argc, char** argv) {
  const Arguments a = parse_arguments(argc, argv);
  if (a.help) return std::printf("%s", help().c_str()), 0;
  if (a.print) return show(a), 0;
  if (a.coverage) return show_coverage(a), 0;
  return a.file.empty() ? campaign(a) : try_file(a);
}

}  // namespace
}  // namespace hone::fuzz

int main(int argc, char** argv) {
  try {
    return hone::fuzz::run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
}
