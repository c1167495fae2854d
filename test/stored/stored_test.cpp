// Models of one operator, or of scikit-learn, and exported architectures (models/), with what ONNX
// Runtime computed: under the reference and compiled. Made by tools/stored.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/file.h"
#include "import/onnx/model.h"
#include "import/onnx/tensor.h"
#include "ops/common.h"
#include "ref/evaluate.h"
#include "test/compile/models.h"
#include "type/text.h"
#include "verify/sample.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

struct Set {
  std::map<std::string, Array> given, expected;
};

// Reads the sets: first "given:x" and "expected:y", then "given.1:x" and so on.
std::vector<Set> read_sets(const fs::path& path) {
  auto file = MappedFile::open(path);
  const onnx::Model model = onnx::parse_model(file->bytes(), file->path(), 10000);
  onnx::TensorFiles files(file);
  std::vector<Set> out;
  for (const onnx::Tensor& t : model.graph->initializers) {
    const std::size_t colon = t.name.find(':');
    const std::string_view word = t.name.substr(0, colon);
    const bool is_given = word == "given" || word.starts_with("given.");
    if (colon == t.name.npos || (!is_given && !word.starts_with("expected"))) continue;
    const std::size_t dot = word.find('.');
    const std::size_t number = dot == word.npos ? 0 : std::stoul(std::string(word.substr(dot + 1)));
    if (out.size() <= number) out.resize(number + 1);
    (is_given ? out[number].given : out[number].expected)
        .emplace(t.name.substr(colon + 1), files.array(t));
  }
  return out;
}

// The allowed difference, relative to the largest result: a model in f16 rounds in each step.
double rounding_of(const Function& f) {
  constexpr double halves = 2e-3, others = 2e-5;
  const Graph& graph = f.graph();
  return std::ranges::any_of(live_nodes(f),
                             [&](NodeId n) {
                               return graph.result_count(n) > 0 && graph.type(n, 0).is_tensor() &&
                                      graph.type(n, 0).dtype == DType::f16;
                             })
             ? halves
             : others;
}

// Quantized numbers may differ by one step, others by `rounding`.
void expect_close(const Array& got, const Array& expected, double rounding,
                  const std::string& where) {
  ASSERT_EQ(got.type(), expected.type()) << where;
  if (got.dtype() == DType::text) {
    for (std::int64_t i = 0; i < got.count(); ++i)
      ASSERT_EQ(text_at(got, i), text_at(expected, i)) << where << " element " << i;
    return;
  }
  double largest = 0;
  for (std::int64_t i = 0; i < got.count(); ++i)
    largest = std::max(largest, std::fabs(expected.real(i)));
  const bool is_quantized = got.dtype() == DType::u8 || got.dtype() == DType::i8;
  const double limit = is_quantized ? 1 : is_float(got.dtype()) ? rounding * (1 + largest) : 0;
  for (std::int64_t i = 0; i < got.count(); ++i)
    ASSERT_LE(std::fabs(got.real(i) - expected.real(i)), limit) << where << " element " << i;
}

std::vector<fs::path> stored_files() {
  std::vector<fs::path> out;
  for (const auto& entry : fs::recursive_directory_iterator(HONE_SOURCE_DIR "/test/stored"))
    if (entry.path().extension() == ".onnx") out.push_back(entry.path());
  std::ranges::sort(out);
  return out;
}

// Sizes are 1 or more by default; those that are 0 in a stored input may be 0.
ImportOptions with_empty_sizes(const fs::path& path, const std::vector<Set>& sets) {
  ImportOptions out;
  const Imported imported = import_onnx(path);
  for (const Function::Param& p : imported.variants.at(0).function.params()) {
    if (!p.value.type().is_tensor()) continue;
    for (const Set& set : sets) {
      const std::vector<std::int64_t>& dims = set.given.at(p.name).dims();
      for (std::size_t axis = 0; axis < dims.size(); ++axis)
        if (const Dim& d = p.value.shape().dims[axis]; dims[axis] == 0 && d.is_symbol())
          out.dims[d.name()] = {0, d.high()};
    }
  }
  return out;
}

std::vector<Array> inputs_of(const Function& f, const Set& set) {
  std::vector<Array> out;
  for (const Function::Param& p : f.params()) out.push_back(set.given.at(p.name));
  return out;
}

const Function& serving(const Source& source, const Set& set) {
  for (const SourceVariant& v : source.variants)
    if (guards_hold(v.guards, sizes_of(v, inputs_of(v.function, set)))) return v.function;
  return source.variants.at(0).function;
}

void expect_outputs(const Function& f, const std::vector<Array>& results, const Set& set,
                    const std::string& where) {
  ASSERT_EQ(results.size(), set.expected.size()) << where;
  const double rounding = rounding_of(f);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto expected = set.expected.find(f.results()[i].name);
    ASSERT_NE(expected, set.expected.end()) << f.results()[i].name;
    expect_close(results[i], expected->second, rounding, cat(f.results()[i].name, where));
  }
}

class StoredModels : public testing::TestWithParam<fs::path> {};

TEST_P(StoredModels, AgreeWithOnnxRuntime) {
  const std::vector<Set> sets = read_sets(GetParam());
  ASSERT_FALSE(sets.empty());
  const test::EmptyCache cache;
  const Source source = test::source_of(GetParam(), with_empty_sizes(GetParam(), sets));
  for (std::size_t k = 0; k < sets.size(); ++k) {
    const Function& f = serving(source, sets[k]);
    expect_outputs(f, evaluate(f, inputs_of(f, sets[k])), sets[k], cat(" of set ", k, " by ref"));
  }
  const Function& f = source.variants.at(0).function;
  for (const char* strategy : {"cpu", "auto"}) {
    const auto session =
        test::session_of(std::make_shared<const Plan>(compile(source, {.strategy = strategy})));
    for (std::size_t k = 0; k < sets.size(); ++k)
      expect_outputs(f, session->run(inputs_of(f, sets[k])), sets[k],
                     cat(" of set ", k, " by ", strategy));
  }
}

INSTANTIATE_TEST_SUITE_P(All, StoredModels, testing::ValuesIn(stored_files()),
                         [](const auto& info) { return info.param.stem().string(); });

// Only one value of each size is valid; it must be found for the sample inputs of candidates.
TEST(SpecificSizes, AreFoundTogether) {
  const test::EmptyCache cache;
  Function f;
  Value x = f.add_param(
      Type(DType::f32, {2, Dim::symbol("h", 1, 1 << 20), Dim::symbol("w", 1, 1 << 20)}), "x");
  Value k = constant(f.graph(), sample_array(Type(DType::f32, {3, 5000}), {}, Fill::random, 1));
  f.add_result(reshape_to(x, {2, 3, 5000}) * broadcast_to(k, {2, 3, 5000}), "y");
  f.graph().require_equal(x.shape()[1], 3, "heights differ");
  f.graph().require_equal(x.shape()[2], 5000, "widths differ");
  const Array data = sample_array(Type(DType::f32, {2, 3, 5000}), {}, Fill::random, 2);
  const std::vector<Array> expected = evaluate(f, std::vector{data});
  const auto plan =
      std::make_shared<const Plan>(compile({"two", {{{}, f}}, {}}, {.strategy = "auto"}));
  test::expect_close(test::session_of(plan)->run(std::vector{data}), expected, "two sizes");
}

}  // namespace
}  // namespace hone
