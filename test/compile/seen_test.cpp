// What a user can see of a compilation: HONE_DEBUG, HONE_DUMP, what a report keeps, the profile.
#include <fstream>
#include <sstream>

#include "compile/optimize.h"
#include "ops/common.h"
#include "test/compile/models.h"

namespace hone {
namespace {

using namespace test;

class SetFlag {
 public:
  SetFlag(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  ~SetFlag() { ::unsetenv(name_); }

 private:
  const char* name_;
};

// Softmax written out, so that a rule fires, and a loop that runs three times.
Function softmax_and_loop() {
  Function f;
  Value x = f.add_param(f32({4, 40}), "x");
  Value e = ops::exp(x - broadcast_to(ops::reshape(ops::reduce_max(x, {{"axes", Dims{1}}}),
                                                   {{"shape", Dims{4, 1}}}),
                                      x.shape()));
  Value y = e / broadcast_to(
                    ops::reshape(ops::reduce_sum(e, {{"axes", Dims{1}}}), {{"shape", Dims{4, 1}}}),
                    x.shape());
  auto go = std::make_shared<Function>(), next = std::make_shared<Function>();
  for (Function* g : {go.get(), next.get()}) {
    g->add_param(f32({}), "i");
    g->add_param(y.type(), "y");
  }
  go->add_result(ops::lt(go->param(0), scalar(go->graph(), 3, DType::f32)));
  next->add_result(next->param(0) + 1.0);
  next->add_result(next->param(1) * next->param(1));
  Value loop = ops::while_loop(Values{scalar(f.graph(), 0, DType::f32), y},
                               {{"condition", FunctionRef(go)}, {"body", FunctionRef(next)}});
  f.add_result(loop.result(1), "y");
  return f;
}

Source seen_source(const std::string& name = "seen") {
  return {name, {{{}, softmax_and_loop()}}, {}};
}

std::string debug_output(int level) {
  SetFlag debug("HONE_DEBUG", cat(level));
  testing::internal::CaptureStderr();
  compile(seen_source(), {.strategy = "cpu"});
  return testing::internal::GetCapturedStderr();
}

TEST(Debug, EachLevelShowsMore) {
  EmptyCache cache;
  const std::pair<int, std::string> first_seen[] = {
      {1, "compile seen (cpu) on cpu "},
      {2, "pass raise "},
      {3, "\nrun\n  launch "},
      {4, "\nkernel "},
      {5, "= softmax %"},
      {6, "rule raise-softmax in raise at div f32[4,40]"},
  };
  EXPECT_EQ(debug_output(0), "");
  for (int level = 1; level <= 6; ++level) {
    std::string text = cat("\n", debug_output(level));
    for (const auto& [at, wanted] : first_seen)
      EXPECT_EQ(text.find(wanted) != std::string::npos, level >= at) << level << " " << wanted;
  }
}

std::vector<fs::path> files_below(const fs::path& root) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::recursive_directory_iterator(root))
    if (entry.is_regular_file()) out.push_back(fs::relative(entry.path(), root));
  std::ranges::sort(out);
  return out;
}

std::string content(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

int count_with(const std::vector<fs::path>& files, const std::string& part) {
  return static_cast<int>(std::ranges::count_if(
      files, [&](const fs::path& p) { return p.string().find(part) != std::string::npos; }));
}

TEST(Debug, DumpsTheSameFilesEachTime) {
  EmptyCache cache;
  fs::path root = cache.directory() / "dump";
  SetFlag dump("HONE_DUMP", root);
  testing::internal::CaptureStderr();
  Plan plan = compile(seen_source(), {.strategy = "cpu", .targets = {"x86-64-v3"}});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "files are not printed";
  std::vector<fs::path> files = files_below(root);
  std::map<fs::path, std::string> before;
  for (const fs::path& f : files) {
    before[f] = content(root / f);
    EXPECT_FALSE(before[f].empty()) << f;
  }
  for (const char* suffix : {".txt", ".ll", ".s"}) {
    const auto is_kernel = [&](const fs::path& f) {
      return f.parent_path() == "seen-cpu/kernels" && f.extension() == suffix;
    };
    EXPECT_EQ(std::ranges::count_if(files, is_kernel), std::ssize(plan.kernels)) << suffix;
  }
  for (const char* file :
       {"graph-0-imported.txt", "graph-5-raise.txt", "plan.txt", "rules.txt", "passes.txt"})
    EXPECT_EQ(count_with(files, cat("seen-cpu/x86-64-v3-variant-0/", file)), 1) << file;
  EXPECT_EQ(count_with(files, "seen-cpu/times.txt"), 1);

  compile(seen_source(), {.strategy = "cpu", .targets = {"x86-64-v3"}});
  EXPECT_EQ(files_below(root), files);
  for (const fs::path& f : files) {
    const bool holds_times = f.filename() == "times.txt" || f.filename() == "passes.txt";
    EXPECT_TRUE(holds_times || content(root / f) == before[f]) << f;
  }
}

TEST(Debug, DumpsStayInTheirDirectory) {
  EmptyCache cache;
  fs::path root = cache.directory() / "a" / "dump";
  SetFlag dump("HONE_DUMP", root);
  compile(seen_source("../../x/y"), {.strategy = "cpu"});
  EXPECT_TRUE(fs::is_directory(root / "_.._.._x_y-cpu"));
  EXPECT_EQ(std::distance(fs::directory_iterator(root), {}), 1);
  EXPECT_EQ(std::distance(fs::directory_iterator(cache.directory() / "a"), {}), 1);
}

TEST(Debug, ADumpThatCannotBeWrittenIsRefused) {
  EmptyCache cache;
  SetFlag dump("HONE_DUMP", "/proc/nothing/here");
  try {
    compile(seen_source(), {.strategy = "cpu"});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("HONE_DUMP"), std::string::npos) << e.what();
  }
}

TEST(Keep, FunctionsRulesGroupsAndKernelsOnRequest) {
  EmptyCache cache;
  CompileReport without, with;
  compile(seen_source(), {.strategy = "cpu"}, &without);
  EXPECT_TRUE(without.variants.empty());
  EXPECT_TRUE(without.kernels_made.empty());
  for (const PassRecord& r : without.passes) {
    EXPECT_FALSE(r.after) << r.name;
    EXPECT_TRUE(r.rules.functions.empty()) << r.name;
  }
  Plan plan = compile(seen_source(), {.strategy = "cpu", .keep = true}, &with);
  ASSERT_EQ(with.variants.size(), 1u);
  EXPECT_EQ(with.kernels_made.size(), plan.kernels.size());
  const VariantReport& v = with.variants[0];
  ASSERT_EQ(v.passes.size(), pipeline().size());
  std::set<std::string_view> fired;
  for (const PassRecord& r : v.passes)
    for (const RuleLog::Firing& f : r.rules.firings) fired.insert(f.rule);
  EXPECT_TRUE(fired.contains("raise-softmax"));
  ASSERT_EQ(v.groups.size(), plan.main().variants[0].groups.size());
  std::set<NodeId> grouped;
  for (const auto& nodes : v.groups)
    for (NodeId n : nodes) EXPECT_TRUE(grouped.insert(n).second) << "in two groups: " << n;
  EXPECT_FALSE(grouped.empty());
}

TEST(Profile, CountsAndTimesEveryStep) {
  EmptyCache cache;
  auto plan = std::make_shared<const Plan>(compile(seen_source(), {.strategy = "cpu"}));
  Array x = Array::zeros(DType::f32, {4, 40});
  Profile p = profile(Executable::load(plan, open_device("cpu")), {x}, {.runs = 7, .threads = 1});
  std::vector<const Step*> steps;
  for_each_step(plan->main().variants[0].steps, [&](const Step& s) { steps.push_back(&s); });
  ASSERT_EQ(p.steps.size(), steps.size());
  EXPECT_EQ(p.runs, 7);
  EXPECT_EQ(p.threads, 1);
  double sum = 0;
  int most_calls = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Profile::Step& s = p.steps[i];
    EXPECT_LE(s.ms.low, s.ms.median);
    EXPECT_LE(s.ms.median, s.ms.high);
    EXPECT_TRUE(s.ms.median > 0 || steps[i]->kind != Step::Kind::launch) << i;
    sum += s.ms.low;
    if (steps[i]->kind == Step::Kind::launch) most_calls = std::max(most_calls, s.calls);
  }
  EXPECT_EQ(most_calls, 4) << "the condition of a loop that runs three times";
  EXPECT_LT(sum, p.run_ms);
  double end = 0;
  for (const Profile::Event& e : p.timeline) {
    EXPECT_GE(e.start_us, end - 1e-6) << "steps run one after the other";
    end = e.start_us + e.us;
  }
  EXPECT_LE(end, p.run_ms * 1000 + 1e-6);
  EXPECT_GT(p.memory.arena, 0u);
  EXPECT_GT(p.rates.fma_gflops, 1);
  ASSERT_EQ(p.rates.copies.size(), 4u);
  for (const MachineRates::Copy& c : p.rates.copies) EXPECT_GT(c.gbytes, 0.1) << c.bytes;
}

TEST(Profile, NamesTheVariantThatServed) {
  EmptyCache cache;
  Dim n = Dim::symbol("n", 1, 64);
  auto doubled = [&](double factor) {
    Function f;
    f.add_result(f.add_param(f32({n, 8}), "x") * factor, "y");
    return f;
  };
  Source source{
      "two",
      {{{{Guard::Kind::equal, n, 1}}, doubled(2)}, {{{Guard::Kind::greater, n, 1}}, doubled(3)}},
      {}};
  auto plan = std::make_shared<const Plan>(compile(source, {.strategy = "cpu"}));
  auto executable = Executable::load(plan, open_device("cpu"));
  EXPECT_EQ(profile(executable, {Array::zeros(DType::f32, {1, 8})}, {.runs = 1}).variant, 0u);
  Profile p = profile(executable, {Array::zeros(DType::f32, {5, 8})}, {.runs = 1});
  EXPECT_EQ(p.variant, 1u);
  EXPECT_EQ(p.sizes.at("n"), 5);
}

}  // namespace
}  // namespace hone
