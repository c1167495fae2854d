// Requirements on data in compiled plans, also loaded from files: a violation is refused with the
// node, the number and the range; a requirement that holds costs no allocation and changes nothing.
#include "ops/common.h"
#include "ops/require.h"
#include "plan/plan_file.h"
#include "test/compile/models.h"

namespace hone {
namespace {

using namespace test;

Value checked_gather(Value x, Value index) {
  const Dim n = x.shape()[0];
  require_within(index, Dim(0) - n, n - 1, "index");
  return ops::gather(Values{x, index}, {{"axis", 0}});
}

// x[n, 3] at index[k]: twice the rows found there.
Function lookup() {
  Function f;
  Value x = f.add_param(f32({Dim::symbol("n", 1, 1000), 3}), "x"),
        index = f.add_param(i64({Dim::symbol("k", 0, 100)}), "index");
  OriginScope scope(f.graph(), Origin{4, "pick", "Gather"});
  f.add_result(checked_gather(x, index) * 2.0, "y");
  return f;
}

// The same in the branch that `wanted` selects; the other branch gives zeros.
Function lookup_in_branch() {
  Function f;
  Value wanted = f.add_param(b1({}), "wanted"), x = f.add_param(f32({5, 3}), "x"),
        index = f.add_param(i64({4}), "index");
  auto yes = std::make_shared<Function>(), no = std::make_shared<Function>();
  for (Function* body : {yes.get(), no.get()})
    body->add_param(f32({5, 3}), "x"), body->add_param(i64({4}), "index");
  {
    OriginScope scope(yes->graph(), Origin{9, "inner", "Gather"});
    yes->add_result(checked_gather(yes->param(0), yes->param(1)), "y");
  }
  no->add_result(broadcast_to(scalar(no->graph(), 0, DType::f32), Shape{4, 3}), "y");
  f.add_result(ops::if_else(Values{wanted, x, index},
                            {{"then", FunctionRef(yes)}, {"else", FunctionRef(no)}}),
               "y");
  return f;
}

std::string said(const std::function<void()>& run) {
  try {
    run();
  } catch (const UserError& e) {
    return e.what();
  }
  return "fine";
}

std::shared_ptr<const Plan> through_a_file(const EmptyCache& cache, const Function& f,
                                           const CompileOptions& options = {.strategy = "cpu"}) {
  const fs::path file = cache.directory() / "indexing.hone";
  write_plan(file, compile({"indexing", {{{}, f}}, {}}, options));
  return std::make_shared<const Plan>(read_plan(file));
}

Array counting(std::vector<std::int64_t> dims) {
  Array a = Array::zeros(DType::f32, std::move(dims));
  for (std::int64_t i = 0; i < a.count(); ++i) a.set_real(i, static_cast<double>(i));
  return a;
}

TEST(Indices, OutOfRangeRefuseTheRun) {
  EmptyCache cache;
  const Function f = lookup();
  const std::unique_ptr<Session> session = session_of(through_a_file(cache, f), 2);
  const auto run = [&](std::vector<std::int64_t> index) {
    const std::vector<Array> inputs = {counting({7, 3}), Array::from_ints(index)};
    const std::string compiled =
        said([&] { EXPECT_EQ(session->run(inputs), evaluate(f, inputs)); });
    const std::string reference = said([&] { evaluate(f, inputs); });
    EXPECT_EQ(compiled, reference);
    return compiled;
  };
  EXPECT_EQ(run({0, 6, -7, 3}), "fine");
  EXPECT_EQ(run({}), "fine");
  for (std::int64_t bad : {7ll, -8ll, 1ll << 40, -(1ll << 40)})
    for (std::size_t at : {0, 5, 49}) {
      std::vector<std::int64_t> index(50, 1);
      index[at] = bad;
      EXPECT_EQ(run(index), cat("node 4 'pick' (Gather): index is ", bad,
                                ", expected -7 to 6; check the values of the "
                                "inputs"));
    }
  EXPECT_EQ(run({5}), "fine");  // a refused run leaves nothing behind
}

TEST(Indices, AreCheckedOnlyInTheBranchThatIsTaken) {
  EmptyCache cache;
  const std::unique_ptr<Session> session = session_of(through_a_file(cache, lookup_in_branch()));
  const auto run = [&](bool wanted, std::int64_t last) {
    const std::vector<std::int64_t> index = {0, 1, 2, last};
    return said([&] {
      session->run(std::vector<Array>{Array::scalar_int(wanted, DType::b1), counting({5, 3}),
                                      Array::from_ints(index)});
    });
  };
  EXPECT_EQ(run(true, 4), "fine");
  EXPECT_EQ(run(false, 5), "fine");
  EXPECT_TRUE(run(true, 5).starts_with("node 9 'inner' (Gather): index is 5")) << run(true, 5);
}

// No pass may lose an effect, whichever passes are left out.
TEST(Indices, AreCheckedWithEveryPassLeftOut) {
  EmptyCache cache;
  const std::vector<std::int64_t> index = {0, 7};
  const std::vector<Array> inputs = {counting({7, 3}), Array::from_ints(index)};
  for (const Pass& p : pipeline()) {
    if (p.is_needed) continue;
    CompileOptions options{.strategy = "cpu", .verification = Verification::none};
    options.passes.off = {std::string(p.name)};
    const std::unique_ptr<Session> session = session_of(through_a_file(cache, lookup(), options));
    EXPECT_NE(said([&] { session->run(inputs); }).find("index is 7"), std::string::npos) << p.name;
  }
}

TEST(Indices, ThatAreKnownAreCheckedWhenTheGraphIsBuilt) {
  Function f;
  Value x = f.add_param(f32({5, 3}), "x");
  const std::vector<std::int64_t> fine = {0, 4, -5}, bad = {0, 5};
  const std::size_t before = f.graph().node_count();
  require_within(constant(f.graph(), Array::from_ints(fine)), -5, 4, "index");
  EXPECT_LE(f.graph().node_count(), before + 1);  // only the constant
  EXPECT_EQ(
      said([&] { require_within(constant(f.graph(), Array::from_ints(bad)), -5, 4, "index"); }),
      "index is 5, expected -5 to 4");
  static_cast<void>(x);
}

}  // namespace
}  // namespace hone
