// A program gets from a model file to a proved plan file as `hone optimize` does.
#include "optimize/model.h"

#include <gtest/gtest.h>

#include "plan/plan_file.h"
#include "test/compile/models.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

const fs::path digits = fs::path(HONE_SOURCE_DIR) / "examples/digits/digits.onnx";

class OptimizedModels : public ::testing::Test {
 protected:
  OptimizedModels() {
    request_.optimize.strategies = {"ref", "cpu"};
    request_.optimize.rounds = 2;
    request_.optimize.budget = 0.2;
    Array image = Array::zeros(DType::f32, {3, 1, 8, 8});
    for (std::int64_t i = 0; i < image.count(); ++i)
      image.set_real(i, static_cast<double>(i * 37 % 101) / 100);
    const Source model = test::source_of(digits);
    set_ = {"set", {image}, evaluate(model.variants[0].function, std::vector<Array>{image})};
  }
  fs::path file() const { return cache_.directory() / "plan.hone"; }

  test::EmptyCache cache_;
  ModelRequest request_;
  StoredSet set_;
};

TEST_F(OptimizedModels, AreReadAgainComparedAndProved) {
  request_.sets = {set_};
  const OptimizedModel made = optimize_model(digits, file(), request_);
  EXPECT_GT(made.reading.judged, 0);
  EXPECT_EQ(made.reading.judged, made.reading.nodes);
  EXPECT_EQ(made.bytes, static_cast<std::int64_t>(fs::file_size(file())));
  EXPECT_EQ(read_plan(file()).content, made.optimized.plan.content);
  EXPECT_EQ(made.optimized.plan.main().strategies.size(), 2u);
}

TEST_F(OptimizedModels, AreNotWrittenIfAStoredOutputDiffers) {
  set_.outputs[0].set_real(4, set_.outputs[0].real(4) + 1);
  request_.sets = {set_};
  try {
    optimize_model(digits, file(), request_);
    ADD_FAILURE() << "was accepted";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("set: result 0 '"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("nothing was written"), std::string::npos) << e.what();
  }
  EXPECT_FALSE(fs::exists(file()));
}

}  // namespace
}  // namespace hone
