// One plan file serves all sizes of a model in a process without a compiler: the same bits as in
// the process that compiled it, and results that match the model's test sets.
#include "plan/plan_file.h"
#include "test/cli/process.h"
#include "test/compile/models.h"

namespace hone::test {
namespace {

// Repeats the rows of `a` until there are `count` rows.
Array rows(const Array& a, std::int64_t count) {
  std::vector<std::int64_t> dims = a.dims();
  const std::size_t row = a.bytes().size() / static_cast<std::size_t>(dims[0]);
  const std::int64_t given = std::exchange(dims[0], count);
  Array out = Array::zeros(a.dtype(), dims);
  for (std::int64_t i = 0; i < count; ++i)
    std::copy_n(a.bytes().begin() + static_cast<std::ptrdiff_t>(row) * (i % given), row,
                out.writable_bytes().begin() + static_cast<std::ptrdiff_t>(row) * i);
  return out;
}

TestSet with_batch(const TestSet& set, std::int64_t batch) {
  TestSet out;
  for (const Array& a : set.inputs) out.inputs.push_back(rows(a, batch));
  for (const Array& a : set.outputs) out.outputs.push_back(rows(a, batch));
  return out;
}

class Served : public ::testing::Test {
 protected:
  // Compiles into a plan file, once for all sets; runs each set in both processes.
  void serve(const std::string& model, const std::vector<TestSet>& sets) {
    Source source = model_source(model);
    if (HasFailure()) return;
    const fs::path file = cache_.directory() / (model + ".hone");
    write_plan(file, compile(source));
    const auto plan = std::make_shared<const Plan>(read_plan(file));
    const std::unique_ptr<Session> session = session_of(plan);
    fs::remove_all(cache_.directory() / "kernels");
    for (std::size_t i = 0; i < sets.size(); ++i) {
      const std::string what = cat(model, " set ", i);
      const std::vector<Array> here = session->run(sets[i].inputs);
      expect_close(here, sets[i].outputs, what);
      expect_equal(run_there(file, *plan, sets[i].inputs), here, what);
    }
    EXPECT_FALSE(fs::exists(cache_.directory() / "kernels")) << "something was compiled";
  }

  std::vector<Array> run_there(const fs::path& file, const Plan& plan,
                               const std::vector<Array>& inputs) {
    const fs::path out = cache_.directory() / "out";
    fs::remove_all(out);
    std::vector<std::string> command = {HONE_RUN, file, "-o", out, "--threads", "1", "-q"};
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const fs::path in = cache_.directory() / cat("input_", i, ".npy");
      write_npy(in, inputs[i]);
      command.insert(command.end(), {"-i", cat(plan.main().params[i].name, "=", in.string())});
    }
    const Finished f = finish(command);
    EXPECT_EQ(f.code, 0) << f.text;
    std::vector<Array> results;
    for (const PlanParam& r : plan.main().results)
      results.push_back(read_npy(out / (r.name + ".npy")));
    return results;
  }

  static void expect_equal(const std::vector<Array>& a, const std::vector<Array>& b,
                           const std::string& what) {
    ASSERT_EQ(a.size(), b.size()) << what;
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i] == b[i]) << what << " output " << i;
  }

  EmptyCache cache_;
};

TEST_F(Served, MagikaAtFourBatches) {
  const std::vector<TestSet> given = test_sets("magika_v3_3");
  ASSERT_FALSE(given.empty());
  std::vector<TestSet> sets;
  for (std::int64_t batch : {1, 3, 8, 17}) sets.push_back(with_batch(given.back(), batch));
  serve("magika_v3_3", sets);
}

TEST_F(Served, SileroOnAllSets) {
  const std::vector<TestSet> sets = test_sets("silero_vad");
  ASSERT_EQ(sets.size(), 5u);
  serve("silero_vad", sets);
}

// The libraries that the loader maps during a run, including those opened later.
TEST_F(Served, WithoutACompiler) {
  const fs::path file = cache_.directory() / "digits.hone", log = cache_.directory() / "log";
  write_plan(file, compile(source_of(fs::path(HONE_SOURCE_DIR) / "examples/digits/digits.onnx")));
  const fs::path input = cache_.directory() / "x.npy";
  write_npy(input, Array::zeros(DType::f32, {1, 1, 8, 8}));
  const Finished f = finish({"env", "LD_DEBUG=files", "LD_DEBUG_OUTPUT=" + log.string(), HONE_RUN,
                             file, "-i", input, "-o", cache_.directory() / "out"});
  ASSERT_EQ(f.code, 0) << f.text;
  std::ostringstream loaded;
  for (const fs::directory_entry& e : fs::directory_iterator(cache_.directory()))
    if (e.path().filename().string().starts_with("log")) loaded << std::ifstream(e.path()).rdbuf();
  EXPECT_NE(loaded.str().find("libc.so"), std::string::npos);
  EXPECT_EQ(loaded.str().find("LLVM"), std::string::npos);
  for (const char* library : {HONE_RUN, HONE_RUNTIME_LIBRARY}) {
    const Finished needed = finish({"ldd", library});
    EXPECT_EQ(needed.code, 0);
    EXPECT_NE(needed.text.find("libc.so"), std::string::npos) << library;
    EXPECT_EQ(needed.text.find("LLVM"), std::string::npos) << library;
  }
}

}  // namespace
}  // namespace hone::test
