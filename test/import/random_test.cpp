// The results of random operators, compared with known properties of their distributions.
#include <cmath>

#include "one_node.h"

namespace hone {
namespace {

using OneModel = hone::OneNode;

constexpr std::int64_t many = 40'000;

struct Moments {
  double mean = 0, deviation = 0, least = HUGE_VAL, most = -HUGE_VAL;
};

Moments moments_of(const Array& a) {
  Moments m;
  double squares = 0;
  for (std::int64_t i = 0; i < a.count(); ++i) {
    m.mean += a.real(i) / static_cast<double>(a.count());
    squares += a.real(i) * a.real(i) / static_cast<double>(a.count());
    m.least = std::min(m.least, a.real(i));
    m.most = std::max(m.most, a.real(i));
  }
  m.deviation = std::sqrt(squares - m.mean * m.mean);
  return m;
}

Array drawn(const std::string& op, const std::map<std::string, float>& reals) {
  const bool is_like = op.ends_with("Like");
  OneModel m(op, is_like ? std::vector<Given>{{"x", counting({many})}} : std::vector<Given>());
  for (const auto& [name, value] : reals) set_real(*m.node, name, value);
  if (!is_like) set_ints(*m.node, "shape", {many});
  return m.run().at(0);
}

TEST(Random, NormalNumbersHaveTheMeanAndScaleThatAreAskedFor) {
  for (const char* op : {"RandomNormal", "RandomNormalLike"}) {
    const Moments usual = moments_of(drawn(op, {})),
                  asked = moments_of(drawn(op, {{"mean", 5}, {"scale", 0.5}}));
    EXPECT_NEAR(usual.mean, 0, 0.03) << op;
    EXPECT_NEAR(usual.deviation, 1, 0.03) << op;
    EXPECT_NEAR(asked.mean, 5, 0.02) << op;
    EXPECT_NEAR(asked.deviation, 0.5, 0.02) << op;
  }
}

TEST(Random, UniformNumbersLieInTheRangeThatIsAskedFor) {
  for (const char* op : {"RandomUniform", "RandomUniformLike"}) {
    const Moments usual = moments_of(drawn(op, {})),
                  asked = moments_of(drawn(op, {{"low", -3}, {"high", 7}}));
    EXPECT_TRUE(usual.least >= 0 && usual.least < 0.01) << op;
    EXPECT_TRUE(usual.most < 1 && usual.most > 0.99) << op;
    EXPECT_TRUE(asked.least >= -3 && asked.least < -2.9) << op;
    EXPECT_TRUE(asked.most < 7 && asked.most > 6.9) << op;
    EXPECT_NEAR(asked.mean, 2, 0.1) << op;
  }
}

// The operand holds the logarithms of the class probabilities.
TEST(Random, ClassesAreDrawnAsOftenAsTheirLogarithmsSay) {
  const std::vector<float> chances = {0.5f, 0.2f, 0.3f};
  Array x = Array::zeros(DType::f32, {2, 3});
  for (std::int64_t i = 0; i < 6; ++i)
    x.set_real(i, std::log(chances[static_cast<std::size_t>(i < 3 ? i : 5 - i)]));
  OneModel m("Multinomial", {{"x", x}});
  set_int(*m.node, "sample_size", many);
  const Array y = m.run().at(0);
  ASSERT_EQ(y.dims(), (std::vector<std::int64_t>{2, many}));
  for (std::int64_t row = 0; row < 2; ++row) {
    std::vector<double> share(3, 0);
    for (std::int64_t i = 0; i < many; ++i)
      share.at(static_cast<std::size_t>(y.integer(row * many + i))) += 1.0 / many;
    for (std::size_t k = 0; k < 3; ++k)
      EXPECT_NEAR(share[k], double{chances[row == 0 ? k : 2 - k]}, 0.01) << row << " " << k;
  }
}

TEST(Random, ACoinShowsOneAsOftenAsItsChance) {
  Array x = Array::zeros(DType::f32, {many});
  for (std::int64_t i = 0; i < many; ++i) x.set_real(i, i % 2 == 0 ? 0.25 : 1);
  OneModel m("Bernoulli", {{"x", x}});
  const Array y = m.run().at(0);
  double of_chance = 0, of_sure = 0;
  for (std::int64_t i = 0; i < many; ++i)
    (i % 2 == 0 ? of_chance : of_sure) += y.real(i) * 2 / static_cast<double>(many);
  EXPECT_NEAR(of_chance, 0.25, 0.02);
  EXPECT_NEAR(of_sure, 1, 1e-9);
}

}  // namespace
}  // namespace hone
