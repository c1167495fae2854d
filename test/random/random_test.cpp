// The corpus of reduced cases, and tests of the tools: what they generate, and that a planted fault
// is found and reduced. fuzz-graphs runs the large campaigns.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/file.h"
#include "ir/measured.h"
#include "ops/common.h"
#include "test/random/campaign.h"
#include "test/random/coverage.h"
#include "test/random/makers.h"
#include "test/random/onnx_makers.h"
#include "verify/reduce/case.h"
#include "verify/reduce/judge.h"
#include "verify/reduce/reduce.h"

namespace hone::fuzz {
namespace {

namespace fs = std::filesystem;

std::string text_of_file(const fs::path& path) {
  auto file = MappedFile::open(path);
  return {reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()};
}

bool every_executor(const Executor&) { return true; }

TEST(Random, EveryReducedCaseAgrees) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(HONE_SOURCE_DIR "/test/random/cases")) {
    const Finding f = try_apart(parse_case(text_of_file(entry.path())), every_executor, 100);
    EXPECT_EQ(text_of(f), "") << entry.path();
    ++count;
  }
  EXPECT_GT(count, 0);
}

// `require` would refuse random numbers, and the result of `measure` is a size of one run.
bool is_made(const Op* op) { return op != &ops::require && op != &ops::measure; }

TEST(Random, EveryOperationHasAMaker) {
  std::set<const Op*> made;
  for (const Maker& m : all_makers()) made.insert(m.op);
  for (const Op* op : all_ops()) EXPECT_EQ(made.contains(op), is_made(op)) << op->name;
}

TEST(Random, OneSeedIsOneFunction) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Case a = generate(seed), b = generate(seed);
    EXPECT_EQ(case_text(a, ""), case_text(b, ""));
    EXPECT_NE(case_text(a, ""), case_text(generate(seed + 1), ""));
  }
}

TEST(Random, ACaseIsItsText) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::string text = case_text(generate(seed), "of a seed\nand another line");
    EXPECT_EQ(case_text(parse_case(text), "of a seed\nand another line"), text);
  }
  EXPECT_THROW(parse_case("%0: f32[] = param index=0 \"x\"\nreturn %0 \"y\"\n"), UserError);
}

// Random functions cover all operations, operators and dtypes, and various sizes, ranks and numbers
// of results.
TEST(Random, TheGeneratorReachesEverything) {
  Coverage coverage;
  std::set<DType> dtypes;
  std::set<int> ranks;
  int symbolic = 0, empty = 0, several = 0, donated = 0, extreme = 0, largest = 0;
  for (std::uint64_t seed = 1; seed <= 800; ++seed) {
    const Generated c = generate(seed);
    coverage.add(c);
    const Graph& g = c.function.graph();
    const std::vector<NodeId> nodes = live_nodes(c.function);
    for (NodeId n : nodes) {
      for (const Type& t : g.result_types(n)) {
        dtypes.insert(t.dtype);
        ranks.insert(t.rank());
        empty += t.shape.is_static() && t.shape.count() == Dim(0);
      }
    }
    largest = std::max(largest, static_cast<int>(nodes.size()));
    symbolic += !c.function.symbols().empty();
    several += c.function.results().size() > 1;
    for (const Function::Param& p : c.function.params()) donated += p.donated;
    for (const CaseRun& r : c.runs) extreme += r.numbers == CaseNumbers::extreme;
  }
  for (const Op* op : all_ops()) EXPECT_EQ(coverage.uses(*op) > 0, is_made(op)) << op->name;
  for (const char* op : {"scatter", "scatter_nd", "scatter_elements"})
    for (const char* kind : {"set", "add", "mul", "max", "min"})
      EXPECT_TRUE(coverage.counts().contains(cat(op, " ", kind))) << op << " " << kind;
  for (const OnnxMaker& m : onnx_makers()) EXPECT_TRUE(coverage.operators().contains(m.op)) << m.op;
  // Samples add coded dtypes too.
  for (int t = 0; t < computed_dtype_count; ++t)
    EXPECT_TRUE(dtypes.contains(static_cast<DType>(t))) << info(static_cast<DType>(t)).name;
  EXPECT_TRUE(std::ranges::includes(ranks, std::set{0, 1, 2, 3, 4, 5}));
  EXPECT_GT(largest, 60);
  for (int count : {symbolic, empty, several, donated, extreme}) EXPECT_GT(count, 20);
}

TEST(Random, EveryRecipeIsMade) {
  for (const Motif& m : motifs()) {
    const Case c = generate_motif(m.name, 7);
    EXPECT_FALSE(c.function.results().empty()) << m.name;
    const Finding f =
        try_apart(c, [](const Executor& e) { return e.name == "cpu" || e.name == "guarded"; }, 100);
    EXPECT_EQ(text_of(f), "") << m.name;
  }
}

// 0.3f * 10 is 3 after rounding and above 3 before: a kernel may return 2 or 3, but nothing else.
TEST(Random, TheJudgeTellsRoundingFromFaults) {
  Function f;
  f.add_result(ops::floor(scalar(f.graph(), 0.3, DType::f32) * 10.0));
  Judge judge(f, CaseRun{{}, 3});
  EXPECT_EQ(judge({Array::scalar(3, DType::f32)}), "");
  EXPECT_EQ(judge.explained(), 0);
  EXPECT_EQ(judge({Array::scalar(2, DType::f32)}), "");
  EXPECT_EQ(judge.explained(), 1);
  EXPECT_NE(judge({Array::scalar(1, DType::f32)}), "");
}

// Simulates a compiler that confuses erf and tanh: the case is reduced to that one node.
TEST(Random, APlantedFaultIsMadeSmall) {
  const Shows shows = [](const Case& c) {
    for (NodeId n : live_nodes(c.function))
      if (&c.function.graph().op(n) == &ops::erf) return true;
    return false;
  };
  for (std::uint64_t seed = 1, found = 0; found < 3; ++seed) {
    const Case c = generate(seed, 40);
    if (!shows(c)) continue;
    ++found;
    const Case small = reduced(c, shows);
    EXPECT_TRUE(shows(small));
    EXPECT_LE(live_nodes(small.function).size(), 2u) << case_text(small, "");
    EXPECT_EQ(small.runs.size(), 1u);
    EXPECT_EQ(small.function.result(0).shape().count(), Dim(1)) << case_text(small, "");
  }
}

TEST(Random, ACrashIsAFindingWithItsSeed) {
  const Case c = generate(5, 3);
  const Finding died = try_apart(c, [](const Executor&) -> bool { ::abort(); }, 100);
  EXPECT_EQ(died.death, "signal 6");
  const Finding slept = try_apart(
      c,
      [](const Executor&) -> bool {
        for (;;) ::pause();
      },
      1);
  EXPECT_EQ(slept.death, "took too long");
}

TEST(Random, ACampaignCountsWhatItDid) {
  CampaignOptions options{.seed = 1000, .count = 12, .jobs = 2, .nodes = 6};
  const CampaignResult r = run_campaign(options);
  EXPECT_EQ(r.functions, 12);
  EXPECT_GE(r.comparisons, 12);
  for (const Finding& f : r.findings) ADD_FAILURE() << f.seed << ": " << text_of(f);
}

}  // namespace
}  // namespace hone::fuzz
