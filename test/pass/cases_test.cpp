// Passes on graphs as text: test/pass/cases/*.txt hold the pass, the function before, and after.
// Both functions must compute the same results.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "evaluate.h"
#include "pass/expand.h"
#include "pass/fold.h"
#include "pass/join_products.h"
#include "pass/layout.h"
#include "pass/raise.h"
#include "pass/simplify.h"
#include "pass/sink.h"
#include "ref/compare.h"

namespace hone {
namespace {

struct Case {
  std::string name, pass, before, after;
};

// Cases begin with "== name: pass"; "--" stands between before and after.
std::vector<Case> read_cases(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::vector<Case> out;
  bool after = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("== ")) {
      std::size_t colon = line.find(": ");
      out.push_back({line.substr(3, colon - 3), line.substr(colon + 2), "", ""});
      after = false;
    } else if (line == "--") {
      after = true;
    } else if (!out.empty() && !line.empty()) {
      (after ? out.back().after : out.back().before) += line + "\n";
    }
  }
  return out;
}

Function run_pass(const std::string& name, const Function& f) {
  if (name == "simplify") return simplify(f);
  if (name == "fold") return fold(f);
  if (name == "expand") return expand(f);
  if (name == "raise") return raise(f);
  if (name == "join-products") return join_products(f);
  if (name == "layout") return layout(f);
  if (name == "sink") return sink(f);
  throw UserError("no pass '", name, "'");
}

void expect_same_meaning(const Function& f, const Function& g) {
  SymbolValues symbols;
  for (const Dim& s : f.symbols()) symbols[s.name()] = std::min<std::int64_t>(s.high(), 3);
  std::mt19937 rng(3);
  std::vector<Wide> inputs;
  for (const Type& t : f.param_types()) {
    inputs.push_back(random_wide(t, rng, symbols));
    for (double& x : inputs.back().reals)
      if (!std::isfinite(x) || std::abs(x) > 4 || std::abs(x) < 1e-3) x = 0.5;
    for (std::int64_t& n : inputs.back().integers) n = n & 1;
  }
  std::vector<Wide> a = evaluate_function(f, inputs), b = evaluate_function(g, inputs);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    Comparison c = within(narrow(b[i]), narrow(a[i]), 1e-5, 1e-5);
    EXPECT_TRUE(c) << c;
  }
}

TEST(Cases, PassesGiveTheTextTheyShould) {
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator(HONE_SOURCE_DIR "/test/pass/cases")) {
    for (const Case& c : read_cases(file.path())) {
      SCOPED_TRACE(c.name);
      Function before = parse(c.before, find_op);
      Function after = run_pass(c.pass, before);
      verify(after);
      EXPECT_EQ(print(after), print(parse(c.after, find_op))) << "case " << c.name;
      expect_same_meaning(before, after);
      Function again = run_pass(c.pass, after);
      EXPECT_EQ(&again.graph(), &after.graph()) << c.name << ": a second run changes it again";
      ++count;
    }
  }
  EXPECT_GT(count, 10);
}

}  // namespace
}  // namespace hone
