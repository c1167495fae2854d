// Plans that choose different candidates for different ranges of their sizes.
#include "compile/size_ranges.h"

#include "backend/backend.h"
#include "ops/common.h"
#include "test/compile/models.h"
#include "verify/sample.h"
#include "verify/sizes.h"

namespace hone {
namespace {

using namespace test;

Function product(std::int64_t most, std::int64_t least = 1) {
  Function f;
  const Dim n = Dim::symbol("n", least, most);
  Value x = f.add_param(f32({n, 96}), "x"), w = f.add_param(f32({96, 96}), "w");
  f.add_result(ops::matmul(x, w), "y");
  return f;
}

TEST(SizesBeside, AreLargerAndSmallerWithinTheRange) {
  const Function f = product(4096);
  const auto n_of = [](const std::vector<Sizing>& all) {
    std::vector<std::int64_t> out;
    for (const Sizing& s : all) out.push_back(s.at("n"));
    return out;
  };
  using Sizes = std::vector<std::int64_t>;
  EXPECT_EQ(n_of(sizes_beside(f, {}, {{"n", 64}})), (Sizes{512, 8}));
  EXPECT_EQ(n_of(sizes_beside(f, {}, {{"n", 1}})), (Sizes{8, 64}));
  EXPECT_EQ(n_of(sizes_beside(f, {}, {{"n", 4096}})), (Sizes{512, 64}));
  EXPECT_EQ(n_of(sizes_beside(product(2), {}, {{"n", 1}})), Sizes{});
  const Dim n = f.param(0).shape()[0];
  EXPECT_EQ(n_of(sizes_beside(f, {{Guard::Kind::less_equal, n, 100}}, {{"n", 64}})), (Sizes{8, 1}));
}

Choice choice(std::string base, double a_ms, double b_ms) {
  Choice c{.candidate = {}, .base = base, .reason = "measured"};
  c.candidate.name = base;
  for (auto [name, ms] : {std::pair("a", a_ms), std::pair("b", b_ms)}) {
    CandidateRecord& r = c.records.emplace_back();
    r.name = name;
    r.ms = ms;
  }
  return c;
}

TEST(SizeRanges, GiveAVariantToWhatIsWorthOne) {
  const Function f = product(4096);
  const std::vector<std::uint32_t> specs = {0, 1, 1};
  const SizedChoices usual = {{{"n", 64}}, {choice("a", 1, 2), choice("a", 1, 2)}};
  const SizedChoices slow = {{{"n", 1024}}, {choice("b", 10, 5), choice("a", 1, 2)}};
  const std::vector<SizeRange> ranges = size_ranges(f, specs, usual, std::span(&slow, 1));
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[0].choices[0].base, "a");
  EXPECT_EQ(ranges[1].choices[0].base, "b");
  EXPECT_EQ(ranges[1].choices[1].base, "a");
  const Guard::Kind kinds[] = {Guard::Kind::less_equal, Guard::Kind::greater};
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    ASSERT_EQ(ranges[i].guards.size(), 1u);
    const Guard& g = ranges[i].guards[0];
    EXPECT_EQ(g.kind, kinds[i]);
    EXPECT_EQ(g.a, f.param(0).shape()[0]);
    EXPECT_EQ(g.b, Dim(256));
    EXPECT_TRUE(guards_hold(ranges[i].guards, ranges[i].sizes)) << i;
  }
}

// The plan's sizes are found by a search that may fail; a range knows sizes for which it was made.
TEST(SizeRanges, KnowTheSizesAtWhichTheyWereTimed) {
  Function f;
  const Dim n = Dim::symbol("n", 1, 64), m = Dim::symbol("m", 1, 64);
  f.add_result(ops::neg(f.add_param(f32({n, m}), "x")), "y");
  // No n and m: the product is odd, and its remainder by 2 is 0.
  const std::vector<Guard> never = {{Guard::Kind::equal, mod(n * m, 2), 1},
                                    {Guard::Kind::equal, mod(n, 2), 0}};
  const Source source = {"built", {{never, f}}, {}};
  EXPECT_THROW(sizes_to_time(source, source.variants[0]), UserError);
  const Sizing known = {{"n", 2}, {"m", 3}};
  EXPECT_EQ(sizes_to_time(source, {never, f, known}), known);
}

TEST(SizeRanges, AreOneWhereLittleIsLostOrNothingIsKnown) {
  const Function f = product(4096);
  const std::vector<std::uint32_t> specs = {0};
  const SizedChoices usual = {{{"n", 64}}, {choice("a", 1, 2)}};
  for (const Choice& here : {choice("b", 10, 9.8), choice("b", -1, 5), choice("a", 3, 4)}) {
    const SizedChoices other = {{{"n", 1024}}, {here}};
    const std::vector<SizeRange> ranges = size_ranges(f, specs, usual, std::span(&other, 1));
    ASSERT_EQ(ranges.size(), 1u);
    EXPECT_TRUE(ranges[0].guards.empty());
    EXPECT_EQ(ranges[0].choices[0].base, "a");
  }
}

// The fast kernel packs its right operand many times, so it loses if there are few rows.
class PackingTarget final : public Target {
 public:
  explicit PackingTarget(std::unique_ptr<Target> good) : good_(std::move(good)) {}
  const TargetInfo& info() const override { return good_->info(); }
  std::string_view version() const override { return "packs often"; }
  Listing list(const CompileJob& job) const override { return good_->list(job); }
  std::vector<Proposal> candidates(const GroupSpec& spec) const override {
    std::vector<Proposal> out;
    for (Proposal& p : Target::candidates(spec)) {
      if (p.candidate.name == "generated") {
        const Candidate packed = *tuned(spec, "generated", {{"pack_b", 1}});
        p.candidate = packed;
        for (int i = 0; i < 100; ++i)
          p.candidate.steps.insert(p.candidate.steps.begin(), packed.steps[0]);
      }
      out.push_back(std::move(p));
    }
    return out;
  }
  std::vector<Binary> compile(std::span<const CompileJob> jobs, ThreadPool& pool) const override {
    return good_->compile(jobs, pool);
  }

 private:
  std::unique_ptr<Target> good_;
};

// The choice depends on timing, which a busy machine may disturb, so it is tried again if
// necessary.
TEST(SizeRanges, ServeSmallAndLargeSizesByOtherCandidates) {
  Backend b = default_backend();
  b.target = [](std::string_view name) -> std::unique_ptr<Target> {
    return std::make_unique<PackingTarget>(default_backend().target(name));
  };
  const Function f = product(4096, 16);
  const Source source = {"built", {{{}, f}}, {}};
  Plan plan;
  for (int attempt = 0; attempt < 5 && plan.main().variants.size() != 2; ++attempt)
    plan = compile(source, {.backend = &b,
                            .verification = Verification::model,
                            .measure = true,
                            .budget = 10,
                            .threads = 1,
                            .cache = false});
  ASSERT_EQ(plan.main().variants.size(), 2u);
  EXPECT_EQ(plan.main().variants[0].groups[0].chosen, "nest");
  EXPECT_EQ(plan.main().variants[1].groups[0].chosen, "generated");
  const auto session = session_of(std::make_shared<const Plan>(plan));
  const Guard& last = plan.main().variants[0].guards.back();
  const std::int64_t limit = last.b.number();
  for (std::int64_t n : {std::int64_t{16}, limit, limit + 1, std::int64_t{300}}) {
    const std::vector<Array> inputs = {sample_array(f32({n, 96}), {}, Fill::random, 1),
                                       sample_array(f32({96, 96}), {}, Fill::random, 2)};
    expect_close(session->run(inputs), evaluate(f, inputs), cat(n, " rows"));
  }
}

}  // namespace
}  // namespace hone
