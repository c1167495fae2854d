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

struct Stored {
  std::map<std::string, Array> given, expected;
};

Stored read_stored(const fs::path& path) {
  constexpr std::string_view given = "given:", expected = "expected:";
  auto file = MappedFile::open(path);
  const onnx::Model model = onnx::parse_model(file->bytes(), file->path(), 10000);
  onnx::TensorFiles files(file);
  Stored out;
  for (const onnx::Tensor& t : model.graph->initializers) {
    if (t.name.starts_with(given)) out.given.emplace(t.name.substr(given.size()), files.array(t));
    if (t.name.starts_with(expected))
      out.expected.emplace(t.name.substr(expected.size()), files.array(t));
  }
  return out;
}

// Quantized numbers may differ by one step, others by rounding.
void expect_close(const Array& got, const Array& expected, const std::string& where) {
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
  const double limit = is_quantized ? 1 : is_float(got.dtype()) ? 2e-5 * (1 + largest) : 0;
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

// Sizes are 1 or more by default; those that are 0 in the stored inputs start there.
ImportOptions with_empty_sizes(const fs::path& path, const std::map<std::string, Array>& given) {
  ImportOptions out;
  const Imported imported = import_onnx(path);
  for (const Function::Param& p : imported.variants.at(0).function.params()) {
    if (!p.value.type().is_tensor()) continue;
    const std::vector<std::int64_t>& dims = given.at(p.name).dims();
    for (std::size_t axis = 0; axis < dims.size(); ++axis)
      if (const Dim& d = p.value.shape().dims[axis]; dims[axis] == 0 && d.is_symbol())
        out.dims[d.name()] = {0, d.high()};
  }
  return out;
}

class StoredModels : public testing::TestWithParam<fs::path> {};

TEST_P(StoredModels, AgreeWithOnnxRuntime) {
  const Stored stored = read_stored(GetParam());
  const test::EmptyCache cache;
  const Source source = test::source_of(GetParam(), with_empty_sizes(GetParam(), stored.given));
  const Function& f = source.variants.at(0).function;
  std::vector<Array> inputs;
  for (const Function::Param& p : f.params()) inputs.push_back(stored.given.at(p.name));
  const auto check = [&](const std::vector<Array>& results, const char* strategy) {
    std::size_t compared = 0;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const auto expected = stored.expected.find(f.results()[i].name);
      ASSERT_NE(expected, stored.expected.end()) << f.results()[i].name;
      expect_close(results[i], expected->second, f.results()[i].name + " under " + strategy);
      ++compared;
    }
    EXPECT_EQ(compared, stored.expected.size());
  };
  check(evaluate(f, inputs), "ref");
  for (const char* strategy : {"cpu", "auto"})
    check(test::session_of(std::make_shared<const Plan>(compile(source, {.strategy = strategy})))
              ->run(inputs),
          strategy);
}

INSTANTIATE_TEST_SUITE_P(All, StoredModels, testing::ValuesIn(stored_files()),
                         [](const auto& info) { return info.param.stem().string(); });

// Each size must be one number, which is found for the samples that candidates are tried on.
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
