// The real models, imported and evaluated by the reference, compared with their test sets.
#include <algorithm>
#include <cmath>

#include "import/tensor_file.h"
#include "ref/compare.h"
#include "support.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

std::vector<Array> tensors(const fs::path& set, const std::string& kind) {
  std::vector<Array> out;
  for (int i = 0; fs::exists(set / cat(kind, "_", i, ".pb")); ++i)
    out.push_back(read_tensor_pb(set / cat(kind, "_", i, ".pb")));
  return out;
}

double largest(const Array& a) {
  double most = 0;
  for (std::int64_t i = 0; i < a.count(); ++i)
    if (std::isfinite(a.real(i))) most = std::max(most, std::fabs(a.real(i)));
  return most;
}

void expect_set_passes(const Imported& model, const fs::path& set) {
  SCOPED_TRACE(set);
  std::vector<Array> inputs = tensors(set, "input"), expected = tensors(set, "output");
  const ImportedVariant* variant = variant_for(model, inputs);
  ASSERT_TRUE(variant);
  std::vector<Array> got = evaluate(variant->function, inputs);
  ASSERT_EQ(got.size(), expected.size());
  ASSERT_FALSE(got.empty());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const bool half = expected[i].dtype() == DType::f16;
    Comparison c = within(got[i], expected[i], (half ? 2e-3 : 1e-4) * largest(expected[i]),
                          half ? 1e-2 : 1e-3);
    EXPECT_TRUE(c) << c;
  }
}

Imported real_model(const std::string& name, const ImportOptions& options = {}) {
  return import_onnx(models_directory() / name / "model.onnx", options);
}

TEST(Models, SqueezenetInHalfPrecision) {
  Imported m = real_model("squeezenet_fp16");
  EXPECT_EQ(m.name, "squeezenet_fp16");
  ASSERT_EQ(m.variants.size(), 1u);
  const Function& f = m.variants[0].function;
  ASSERT_EQ(f.params().size(), 1u);  // IR version 3 lists its 52 weights among the inputs
  EXPECT_EQ(f.param(0).type(), f16({1, 3, 224, 224}));
  expect_set_passes(m, models_directory() / "squeezenet_fp16/test_data_set_0");
}

TEST(Models, UltrafaceDetector) {
  Imported m = real_model("ultraface_rfb_320");
  ASSERT_EQ(m.variants.size(), 1u);
  EXPECT_EQ(m.variants[0].function.result(0).type(), f32({1, 4420, 2}));
  for (int i = 0; i < 2; ++i)
    expect_set_passes(m, models_directory() / cat("ultraface_rfb_320/test_data_set_", i));
}

TEST(Models, SileroAtBothRatesAndBatches) {
  Imported m = real_model("silero_vad");
  EXPECT_EQ(m.variants.size(), 3u);  // a size of 1 decides a rank at each of the two rates
  EXPECT_FALSE(m.warnings.empty());
  for (int i = 0; i < 5; ++i)
    expect_set_passes(m, models_directory() / cat("silero_vad/test_data_set_", i));
}

// A given window length decides all assumptions about sizes. One rate does not accept this length.
TEST(Models, SileroAtAGivenLengthIsOneVariant) {
  ImportOptions options;
  options.dims["input_d1"] = {576, 576};
  Imported m = real_model("silero_vad", options);
  ASSERT_EQ(m.variants.size(), 1u);
  EXPECT_TRUE(m.variants[0].assumptions.empty());
  EXPECT_EQ(m.warnings.size(), 1u);  // for the branch of the other rate
  for (int i = 0; i < 2; ++i)
    expect_set_passes(m, models_directory() / cat("silero_vad/test_data_set_", i));
}

TEST(Models, MagikaWithAnyBatch) {
  Imported m = real_model("magika_v3_3");
  ASSERT_EQ(m.variants.size(), 1u);
  EXPECT_EQ(cat(m.variants[0].function.param(0).type()), "i32[unk__214,2048]");
  EXPECT_EQ(cat(m.variants[0].function.result(0).type()), "f32[unk__214,214]");
  EXPECT_TRUE(m.variants[0].function.graph().checks().empty());              // all sizes are proved
  expect_set_passes(m, models_directory() / "magika_v3_3/test_data_set_1");  // batch 1 of 8
}

TEST(Models, DigitsGivesTheLogitsOfItsTraining) {
  const fs::path dir = HONE_SOURCE_DIR "/examples/digits";
  Imported m = import_onnx(dir / "digits.onnx");
  EXPECT_EQ(m.name, "digits");
  Array images = read_npy(dir / "images.npy"), expected = read_npy(dir / "logits.npy");
  std::vector<Array> got = evaluate(m.variants.at(0).function, {{images}});
  Comparison c = within(got.at(0), expected, 1e-4 * largest(expected), 1e-3);
  EXPECT_TRUE(c) << c;
}

// ==== weights

// The path of the file mapped at an address; empty for other memory.
std::string mapped_at(const void* address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long from = 0, to = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &from, &to) != 2) continue;
    auto at = reinterpret_cast<unsigned long>(address);
    std::size_t slash = line.find('/');
    if (from <= at && at < to) return slash == line.npos ? "" : line.substr(slash);
  }
  return "";
}

struct WeightBytes {
  std::size_t mapped = 0, copied = 0;
};

void add_weights(const Function& f, const fs::path& path, WeightBytes& to) {
  for (NodeId n : live_nodes(f)) {
    for (const Attrs::Entry& e : f.graph().attrs(n).entries())
      if (auto* body = std::get_if<FunctionRef>(&e.second)) add_weights(**body, path, to);
    if (&f.graph().op(n) != &ops::constant) continue;
    const Array& a = f.graph().attrs(n).get<Array>("value");
    if (a.bytes().size() <= 4096) continue;
    bool is_mapped = mapped_at(a.bytes().data()) == fs::canonical(path).string();
    (is_mapped ? to.mapped : to.copied) += a.bytes().size();
  }
}

TEST(Models, WeightsAreViewsOfTheFile) {
  for (const fs::path& path : real_models()) {
    Imported m = import_onnx(path);
    WeightBytes weights;
    for (const ImportedVariant& v : m.variants) add_weights(v.function, path, weights);
    EXPECT_GT(weights.mapped, 0u) << path;
    EXPECT_EQ(weights.copied, 0u) << path;
  }
}

TEST(Models, InnerValuesHaveNamesAndOrigins) {
  ImportOptions options;
  options.dump = {"fire2/squeeze1x1_2"};
  Imported m = real_model("squeezenet_fp16", options);
  const Function& f = m.variants[0].function;
  ASSERT_EQ(f.results().size(), 2u);
  EXPECT_EQ(f.results()[1].name, "fire2/squeeze1x1_2");
  EXPECT_EQ(f.result(1).type(), f16({1, 16, 55, 55}));
  EXPECT_EQ(origins_text(f.result(1)), "node 4 'fire2/squeeze1x1_2' (Relu)");
}

}  // namespace
}  // namespace hone
