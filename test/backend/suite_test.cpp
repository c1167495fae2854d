// Whole functions on every backend of the conformance tests, as `auto` compiles them: the core tier
// of the ONNX suite, the four models, random functions. By default a part of each, in seconds; all
// with HONE_CONFORMANCE=full.
#include <cstdlib>
#include <thread>

#include "ops/common.h"
#include "ops/ops.h"
#include "ref/evaluate.h"
#include "test/backend/conformance.h"
#include "test/compile/models.h"
#include "test/onnx/expected.h"
#include "test/onnx/run_case.h"
#include "test/onnx/tier.h"
#include "test/ops/harness.h"
#include "test/random/generate.h"
#include "verify/reduce/judge.h"

namespace hone::test {
namespace {

bool is_full() {
  const char* set = std::getenv("HONE_CONFORMANCE");
  return set && std::string_view(set) == "full";
}

// HONE_CONFORMANCE_PART=1/4 takes the second quarter of the cases, for several processes.
bool is_in_part(std::uint64_t number) {
  const char* set = std::getenv("HONE_CONFORMANCE_PART");
  unsigned part = 0, parts = 1;
  if (set && std::sscanf(set, "%u/%u", &part, &parts) != 2)
    throw UserError("HONE_CONFORMANCE_PART=", set, " is not of the form 1/4");
  return number % std::max(parts, 1u) == part;
}

CompileOptions unverified(const Backend* backend, std::string strategy = "auto") {
  CompileOptions o{.strategy = std::move(strategy), .backend = backend};
  o.verification = Verification::none;  // the test itself compares
  o.threads = 2;
  o.cache = false;
  return o;
}

std::unique_ptr<Session> compiled_session(const Source& source, const CompileOptions& options) {
  const auto plan = std::make_shared<const Plan>(compile(source, options));
  return std::make_unique<Session>(Executable::load(plan, open_devices(*plan)),
                                   SessionOptions{.threads = 2});
}

// The error of a random function; empty if it passes.
std::string wrong_in(const Case& c, const CompileOptions& options) try {
  const auto session = compiled_session({"random", {{{}, c.function}}, {}}, options);
  const bool keeps_denormals =
      !options.backend || open_device(options.backend->name)->limits().keeps_denormals;
  for (const CaseRun& run : c.runs) {
    Judge judge(c.function, run, keeps_denormals);
    if (std::string why = judge(session->run(judge.inputs())); !why.empty()) return why;
  }
  return "";
} catch (const std::exception& e) {
  return e.what();
}

// Every operation on its samples, a tenth of them without HONE_CONFORMANCE=full.
TEST_P(BackendConformance, EveryOperationIsAsTheReferenceSays) {
  std::uint64_t number = 0;
  for (const harness::Case& c : harness::all_cases()) {
    if (++number % (is_full() ? 1 : 10) != 0 || !is_in_part(number)) continue;
    try {
      EXPECT_EQ(harness::judge(c,
                               [](const Function& f, std::span<const Array> inputs) {
                                 return compiled_session({"case", {{{}, f}}, {}},
                                                         unverified(GetParam().backend))
                                     ->run(inputs);
                               }),
                "")
          << c.name;
    } catch (const std::exception& e) {
      ADD_FAILURE() << c.name << ": " << e.what();
    }
  }
}

// A function with inputs, and what the reference says.
struct Network {
  Function function;
  std::vector<Array> inputs;
  std::vector<Wide> strict, wide;

  explicit Network(Function f) : function(std::move(f)) {
    for (std::size_t i = 0; i < function.params().size(); ++i)
      inputs.push_back(harness::filled(function.param(i).type(), [n = 0](DType) mutable {
        return 0.02 * ((n += 37) % 101) - 1;
      }));
    strict = evaluate_wide(function, inputs, Mode::strict);
    wide = evaluate_wide(function, inputs, Mode::wide);
  }
};

// Convolutions, products, attention and rows: what libraries compute, too.
std::vector<Network> small_networks() {
  std::vector<Network> out;
  for (const std::int64_t window : {1, 3}) {
    Function f;
    const Value x = f.add_param(Type(DType::f16, {1, 16, 8, 8}), "x"),
                w = f.add_param(Type(DType::f16, {32, 16, window, window}), "w");
    const Dims pads = {window / 2, window / 2}, ones = {1, 1};
    f.add_result(ops::relu(ops::conv(Values{x, w}, {{"strides", ones},
                                                    {"dilations", ones},
                                                    {"pads_low", pads},
                                                    {"pads_high", pads},
                                                    {"groups", std::int64_t{1}},
                                                    {"channels_last", std::int64_t{0}}})),
                 "y");
    out.emplace_back(std::move(f));
  }
  for (const std::int64_t rows : {16, 40}) {
    Function f;
    const Value x = f.add_param(Type(DType::f16, {rows, 64}), "x"),
                w = f.add_param(Type(DType::f16, {64, 32}), "w");
    f.add_result(ops::gelu(ops::matmul(x, w)), "y");
    out.emplace_back(std::move(f));
  }
  for (const std::int64_t length : {32, 50}) {
    Function f;
    const Type t(DType::f16, {2, length, 64});
    const Value q = f.add_param(t, "q"), k = f.add_param(t, "k"), v = f.add_param(t, "v");
    f.add_result(
        ops::matmul(ops::softmax(ops::matmul(q, transpose_matrix(k)) * 0.125, {{"axis", 2}}), v),
        "y");
    out.emplace_back(std::move(f));
  }
  for (const Op* op : {&ops::softmax, &ops::log_softmax}) {
    Function f;
    f.add_result((*op)(f.add_param(f32({8, 300}), "x"), {{"axis", 1}}), "y");
    out.emplace_back(std::move(f));
  }
  return out;
}

// What differs from the reference when the network is compiled, timed and run.
std::string wrong_in(const Network& n, const Backend* backend) try {
  CompileOptions options = unverified(backend);
  options.verification = Verification::kernels;
  options.measure = true;
  options.budget = is_full() ? 1 : 0.05;
  const auto session = compiled_session({"network", {{{}, n.function}}, {}}, options);
  for (int run = 0; run < 4; ++run) {  // the later ones are replayed
    const std::vector<Array> got = session->run(n.inputs);
    if (const Comparison c = accept(got[0], n.strict[0], n.wide[0]); !c.ok) return cat(c);
  }
  return "";
} catch (const std::exception& e) {
  return e.what();
}

// Compilations, and the runs of what they time, share the device, its memory and its libraries.
TEST_P(BackendConformance, ManyThreadsCompileTimeAndRun) {
  const std::vector<Network> networks = small_networks();
  const std::size_t count = is_full() ? 16 : 3;
  std::vector<std::string> wrong(count);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < count; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < networks.size(); ++i) {
        const std::size_t which = (i + t) % networks.size();
        if (const std::string w = wrong_in(networks[which], GetParam().backend); !w.empty())
          wrong[t] += cat("network ", which, ": ", w, "\n");
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& w : wrong) EXPECT_EQ(w, "");
}

TEST_P(BackendConformance, RandomFunctionsAreAsTheReferenceSays) {
  const char* set = std::getenv("HONE_RANDOM_FUNCTIONS");
  const std::uint64_t first = 7'000'000, count = set         ? std::strtoull(set, nullptr, 10)
                                                 : is_full() ? 2000
                                                             : 60;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    if (!is_in_part(seed)) continue;
    EXPECT_EQ(wrong_in(fuzz::generate(seed), unverified(GetParam().backend)), "") << seed;
  }
}

// Functions that consist of views and control flow only cannot be spread and do not count.
TEST(Multi, RandomFunctionsAreAsTheReferenceSays) {
  const int count = is_full() ? 1000 : 40;
  int spread = 0;
  for (std::uint64_t seed = 7'500'000; spread < count; ++seed) {
    const std::string why = wrong_in(fuzz::generate(seed), unverified(nullptr, "multi"));
    if (why.find("no part of it can be computed on another device") != why.npos) continue;
    EXPECT_EQ(why, "") << seed;
    ++spread;
  }
}

// Only the host computes strings and image files. Sequences and optionals are views.
bool may_be_on_host(const std::string& function) {
  return function == "decode_image" || function.find("text") != function.npos;
}

TEST_P(BackendConformance, TheCoreTierOfTheOnnxSuitePasses) {
  const auto suite = conformance::find_suite(HONE_SOURCE_DIR,
                                             std::filesystem::path(HONE_BINARY_DIR) / "onnx_suite");
  if (!suite) GTEST_SKIP() << "NOTHING WAS TESTED: the suite was not found; set HONE_ONNX_TESTS";
  const conformance::Expected expected =
      conformance::read_expected(HONE_SOURCE_DIR "/test/onnx/not_passed.txt");
  const std::size_t step = is_full() ? 1 : 16;
  std::size_t number = 0;
  int passed = 0, tried = 0, on_host = 0;
  for (const conformance::Case& c : conformance::list_cases(*suite)) {
    if (!c.name.starts_with("node/") || number++ % step != 0) continue;
    if (conformance::tier_of(c) != "node: core" || !is_in_part(number / step)) continue;
    const conformance::Outcome o = conformance::run_case(c, "auto", GetParam().backend);
    const auto listed = expected.find({c.name, "auto"});
    EXPECT_EQ(name_of(o.verdict),
              name_of(listed == expected.end() ? conformance::Verdict::passed : listed->second))
        << c.name << ": " << o.reason;
    for (const std::string& function : o.on_host) {
      EXPECT_TRUE(may_be_on_host(function)) << c.name << ": the host computes " << function;
      ++on_host;
    }
    ++tried;
    passed += o.verdict == conformance::Verdict::passed;
  }
  std::printf("%d of %d pass; the host computes %d functions of texts and images\n", passed, tried,
              on_host);
  EXPECT_GT(passed, 0);
}

TEST_P(BackendConformance, TheModelsPassTheirSets) {
  for (const std::string& model : model_names()) {
    if (!is_full() && model != "silero_vad") continue;
    const auto session = compiled_session(model_source(model), unverified(GetParam().backend));
    const std::vector<TestSet> sets = test_sets(model);
    for (std::size_t i = 0; i < (is_full() ? sets.size() : 1); ++i) {
      const auto start = std::chrono::steady_clock::now();
      const std::vector<Array> got = session->run(sets[i].inputs);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      std::printf("%s, set %zu: %.1f s\n", model.c_str(), i, took.count());
      expect_close(got, sets[i].outputs, cat(model, " set ", i));
    }
  }
}

}  // namespace
}  // namespace hone::test
