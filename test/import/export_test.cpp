// Functions as ONNX files: reading a written file gives the same function.
#include "export/onnx/export.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <sstream>
#include <unordered_map>

#include "base/hash.h"
#include "import/tensor_file.h"
#include "ops/common.h"
#include "pass/fold.h"
#include "pass/simplify.h"
#include "test/import/support.h"
#include "test/ops/harness.h"

namespace hone {
namespace {

Function round_trip(const Function& f, const OnnxExportOptions& options = {}) {
  const TempDirectory directory;
  const auto path = directory.path() / "out.onnx";
  export_onnx(f, path, options);
  Imported back = import_onnx(path);
  EXPECT_EQ(back.variants.size(), 1U);
  return back.variants[0].function;
}

// `f` with its large constants replaced, in order, by those of `like` with the same bytes, because
// large constants are compared by address.
Function with_constants_of(const Function& like, const Function& f) {
  std::unordered_map<std::string, std::deque<Array>> known;
  const auto key = [](const Array& a) {
    const std::span<const std::byte> bytes = a.bytes();
    return cat(a.type(),
               std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  };
  const auto array_of = [](const Function& g, NodeId n) {
    return &g.graph().op(n) == &ops::constant ? &g.graph().attrs(n).get<Array>("value") : nullptr;
  };
  for (NodeId n : live_nodes(like))
    if (const Array* a = array_of(like, n)) known[key(*a)].push_back(*a);
  return transform(f, [&](NodeId n, Copier&, Function& to) -> Values {
    const Array* a = array_of(f, n);
    std::deque<Array>* equal = a ? &known[key(*a)] : nullptr;
    if (!equal || equal->empty()) return {};
    const Array first = equal->front();
    equal->pop_front();
    return {constant(to.graph(), first)};
  });
}

// Empty if both have the same text after simplification; otherwise the first lines that differ.
std::string difference(const Function& f, const Function& g) {
  const auto text = [](const Function& x) {
    std::vector<Array> large;
    std::string all = print(simplify(fold(x)), &large);
    for (const Array& a : large) all += cat(a.type(), " ", to_hex(hash128(a.bytes())), "\n");
    return all;
  };
  std::istringstream a(text(f)), b(text(g));
  for (std::string x, y; std::getline(a, x) || std::getline(b, y); x.clear(), y.clear()) {
    if (y.empty()) std::getline(b, y);
    if (x != y) return cat(x, "\n", y);
  }
  return "";
}

bool are_equal(std::span<const Array> a, std::span<const Array> b) {
  return std::ranges::equal(a, b, [](const Array& x, const Array& y) {
    return x.type() == y.type() && std::ranges::equal(x.bytes(), y.bytes());
  });
}

// Every op in every sample computes the same after a round trip, or is refused by name.
TEST(Export, EveryOperationComesBackOrIsRefusedByName) {
  // Operations that no ONNX operator represents, for some or all of their samples.
  const std::set<std::string_view> may_be_refused = {"bitcast",    "random_bits",   "measure",
                                                     "cumulative", "reduce_window", "require"};
  int samples = 0, alike = 0;
  std::map<std::string_view, int> refused, unlike;
  for (const harness::Case& c : harness::all_cases()) {
    if (c.op == &ops::refuse) continue;  // judged by its message
    SCOPED_TRACE(c.name);
    try {
      const Function back = round_trip(c.function);
      std::vector<Array> got;
      EXPECT_EQ(harness::judge(c,
                               [&](const Function&, std::span<const Array> inputs) {
                                 return got = evaluate(back, inputs);
                               }),
                "");
      ++samples;
      EXPECT_TRUE(are_equal(got, evaluate(c.function, c.inputs)));
      if (same_structure(c.function, back))
        ++alike;
      else
        ++unlike[c.op->name];
    } catch (const UserError& e) {
      const std::string message = e.what();
      EXPECT_NE(message.find("cannot be exported"), message.npos) << message;
      EXPECT_TRUE(may_be_refused.contains(c.op->name)) << message;
      ++refused[c.op->name];
    }
  }
  const auto list = [](const auto& counts) {
    std::string out;
    for (const auto& [name, n] : counts) out += cat(" ", name, ":", n);
    return out;
  };
  std::printf("%d samples came back, %d with equal structure\nrefused:%s\nother structure:%s\n",
              samples, alike, list(refused).c_str(), list(unlike).c_str());
  EXPECT_GE(samples, 1111);
  EXPECT_GE(alike, 842);
}

void expect_equal_names(const Function& f, const Function& back) {
  ASSERT_EQ(back.params().size(), f.params().size());
  for (std::size_t i = 0; i < f.params().size(); ++i)
    EXPECT_EQ(back.params()[i].name, f.params()[i].name);
  ASSERT_EQ(back.results().size(), f.results().size());
  for (std::size_t i = 0; i < f.results().size(); ++i)
    EXPECT_EQ(back.results()[i].name, f.results()[i].name);
}

std::vector<Array> inputs_of_set(const std::filesystem::path& set) {
  std::vector<Array> out;
  for (int i = 0; std::filesystem::exists(set / cat("input_", i, ".pb")); ++i)
    out.push_back(read_tensor_pb(set / cat("input_", i, ".pb")));
  return out;
}

TEST(Export, RealModelsComeBack) {
  int equal = 0;
  for (const auto& path : real_models()) {
    SCOPED_TRACE(path.string());
    const Imported model = import_onnx(path);
    // It slices at expressions of sizes, so its results are compared instead.
    if (path.parent_path().filename() == "silero_vad") {
      const std::vector<Array> inputs = inputs_of_set(path.parent_path() / "test_data_set_0");
      const ImportedVariant* v = variant_for(model, inputs);
      ASSERT_NE(v, nullptr);
      const Function back = round_trip(v->function);
      expect_equal_names(v->function, back);
      EXPECT_TRUE(are_equal(evaluate(back, inputs), evaluate(v->function, inputs)));
      for (const ImportedVariant& other : model.variants) round_trip(other.function);
      continue;
    }
    ASSERT_EQ(model.variants.size(), 1U);
    const Function& f = model.variants[0].function;
    const Function back = with_constants_of(f, round_trip(f));
    expect_equal_names(f, back);
    EXPECT_EQ(difference(f, back), "");
    equal += same_structure(f, back);
  }
  EXPECT_EQ(equal, 4);
}

TEST(Export, WeightsLieInsideOrBesideTheModel) {
  Function f;
  const Value x = f.add_param(f32({6}), "x");
  const Array w = reals({6}, {1, 2, 3, 4, 5, 6}),
              u = reals({2, 6}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const Value a = ops::add(x, constant(f.graph(), w));
  f.add_result(ops::mul(broadcast_to(a, Shape{2, 6}), constant(f.graph(), u)), "y");
  const TempDirectory d;
  const auto path = d.path() / "m.onnx", data = d.path() / "m.onnx.data";
  export_onnx(f, path);
  EXPECT_FALSE(std::filesystem::exists(data));
  EXPECT_TRUE(same_structure(f, import_onnx(path).variants[0].function));
  export_onnx(f, path, {.external_above = 16});
  EXPECT_EQ(std::filesystem::file_size(data), 64U + 24U);
  EXPECT_TRUE(same_structure(f, import_onnx(path).variants[0].function));
}

TEST(Export, NamesThatClashAreMadeUnique) {
  Function f;
  const Value x = f.add_param(f32({2}), ""), y = f.add_param(f32({2}), "v0");
  f.add_result(x + y, "v0");
  f.add_result(x, "");
  const Function back = round_trip(f);
  EXPECT_TRUE(same_structure(f, back));
  EXPECT_NE(back.params()[1].name, back.results()[0].name);
}

TEST(Export, AllThatIsRefusedStandsInOneMessage) {
  Function f;
  const Value x = f.add_param(f32({4}), "x");
  const Value key = constant(f.graph(), Array::scalar_int(1, DType::u64));
  f.add_result(ops::random_bits(Values{key, key}, {{"shape", Dims{4}}}), "bits");
  f.add_result(ops::cumulative(x, {{"axis", std::int64_t{0}},
                                   {"kind", std::string("max")},
                                   {"exclusive", std::int64_t{0}},
                                   {"reverse", std::int64_t{0}}}),
               "m");
  const TempDirectory d;
  try {
    export_onnx(f, d.path() / "m.onnx");
    FAIL() << "exported";
  } catch (const UserError& e) {
    const std::string message = e.what();
    for (const char* word :
         {"2 operations", "random_bits u32[4]", "cumulative f32[4]", "running sums"})
      EXPECT_NE(message.find(word), message.npos) << message;
  }
  EXPECT_TRUE(std::filesystem::is_empty(d.path()));
}

TEST(Export, SymbolicSizesStaySymbolic) {
  Function f;
  const Dim n = Dim::symbol("n", 1, 1 << 20);
  const Value x = f.add_param(f32({n, 6}), "x");
  f.add_result(reshape_to(x, {n * Dim(2), 3}), "y");
  const Function back = round_trip(f);
  EXPECT_TRUE(same_structure(f, back));
  EXPECT_EQ(cat(back.result(0).type()), cat(f.result(0).type()));
}

}  // namespace
}  // namespace hone
