// linear_cross_entropy() against cross_entropy(linear()).
#include <gtest/gtest.h>

#include "interpreted.h"
#include "tensor/network.h"

namespace hone {
namespace {

using namespace test;

struct Setting {
  Dims rows;
  Dim classes;
  LinearCrossEntropy by = {};
  bool has_bias = false;
  DType dtype = DType::f32;
};

Array counted(DType dtype, const std::vector<std::int64_t>& dims, double by) {
  Array a = Array::zeros(dtype, dims);
  for (std::int64_t i = 0; i < a.count(); ++i)
    a.set_real(i, std::sin(static_cast<double>(i + 1) * by));
  return a;
}

// The loss and its derivatives by x, weight and bias.
List results(const Setting& s, bool is_fused, std::int64_t rows, std::int64_t classes) {
  Program p("p");
  Dims x = s.rows;
  x.push_back(3);
  std::vector<Arg> arguments = {{"x", Type(s.dtype, Shape(x))},
                                {"w", Type(s.dtype, {s.classes, 3})},
                                {"b", Type(s.dtype, {s.classes})},
                                {"target", i64(Shape(s.rows))}};
  p.entry("f", arguments, [&](Tensor x, Tensor w, Tensor b, Tensor target) {
    LinearCrossEntropy by = s.by;
    Tensors of = {x, w};
    if (s.has_bias) by.bias = b, of.push_back(b);
    const CrossEntropy plain{.ignore_index = by.ignore_index,
                             .label_smoothing = by.label_smoothing,
                             .reduction = by.reduction};
    const Tensor each = is_fused ? linear_cross_entropy(x, w, target, by)
                                 : cross_entropy(reshape(linear(x, w, by.bias), {-1, s.classes}),
                                                 reshape(target, {-1}), plain);
    const Tensor loss = each.rank() == 0 ? each * 1.5 : weighed(each);
    Results out{{"0", loss}};
    const Tensors d = grad(loss, of);
    for (std::size_t i = 0; i < d.size(); ++i) out.add(std::to_string(i + 1), d[i]);
    return out;
  });
  std::vector<std::int64_t> sizes;
  std::int64_t count = 1;
  for (const Dim& d : s.rows)
    sizes.push_back(d.is_number() ? d.number() : rows), count *= sizes.back();
  Array target = Array::zeros(DType::i64, sizes);
  for (std::int64_t i = 0; i < count; ++i) target.set_real(i, static_cast<double>(i * 7 % classes));
  sizes.push_back(3);
  const auto got =
      Interpreted(p).run("f", {counted(s.dtype, sizes, 0.7), counted(s.dtype, {classes, 3}, 1.3),
                               counted(s.dtype, {classes}, 0.3), target});
  List out;
  for (const auto& [name, a] : got)
    for (const double x : numbers(a)) out.push_back(x);
  return out;
}

void expect_equal(const Setting& s, std::int64_t rows, std::int64_t classes,
                  double tolerance = 1e-5) {
  const List got = results(s, true, rows, classes), want = results(s, false, rows, classes);
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(want[i])) continue;  // no target counts
    ASSERT_NEAR(got[i], want[i], tolerance * std::max(1.0, std::fabs(want[i]))) << i;
  }
}

TEST(LinearCrossEntropy, IsThatOfTheLogits) {
  const Dim n = dim("n", 1, 100), classes = dim("classes", 1, 1000);
  // Of an open number of rows, 256 classes at a time.
  for (const std::int64_t count : {1, 5, 255, 256, 257, 512, 600}) {
    SCOPED_TRACE(count);
    expect_equal({{n}, classes, {}, true}, 7, count);
    expect_equal({{n}, count, {}, true}, 7, count);
    expect_equal({{n}, classes, {.ignore_index = 0, .label_smoothing = 0.1}, true}, 7, count);
    expect_equal({{n}, classes, {.label_smoothing = 0.3, .reduction = Reduction::sum}}, 6, count);
    expect_equal({{n}, count, {.ignore_index = -100, .reduction = Reduction::none}}, 6, count);
  }
  expect_equal({{3, 11}, 300, {.ignore_index = 0}, true}, 1, 300);
  expect_equal({{}, 5, {}}, 1, 5);
  expect_equal({{4096}, 300, {.label_smoothing = 0.1}}, 4096, 300);
}

TEST(LinearCrossEntropy, OfOtherFloats) {
  const Dim n = dim("n", 1, 100), classes = dim("classes", 1, 1000);
  expect_equal({{n}, classes, {}, true, DType::f64}, 40, 300, 1e-12);
  expect_equal({{n}, classes, {}, true, DType::f16}, 40, 300, 4e-3);
  expect_equal({{n}, classes, {}, true, DType::bf16}, 40, 300, 3e-2);
}

std::string error_of(const std::function<Tensor(Tensor x, Tensor w, Tensor target)>& f) {
  Program p("p");
  try {
    p.entry("f", {{"x", f32({4, 3})}, {"w", f32({5, 3})}, {"target", i64({4})}},
            [&](Tensor x, Tensor w, Tensor target) { return Results{{"y", f(x, w, target)}}; });
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

TEST(LinearCrossEntropy, RefusesWhatItCannotDo) {
  const auto says = [](const std::string& error, const std::string& what) {
    EXPECT_NE(error.find(what), std::string::npos) << error;
  };
  says(error_of([](Tensor x, Tensor w, Tensor t) {
         const Tensor d = grad(linear_cross_entropy(x, w, t), {x})[0];
         return sum(grad(sum(d * d), {w})[0]);
       }),
       "linear_cross_entropy: its derivative has no derivative; use cross_entropy(linear())");
  says(error_of([](Tensor x, Tensor w, Tensor t) { return linear_cross_entropy(w, x, t); }),
       "x is f32[5,3], the weight f32[4,3] and the target i64[4], expected floats [..., width]");
  says(error_of([](Tensor x, Tensor w, Tensor t) {
         return linear_cross_entropy(x, w, t, {.label_smoothing = 2});
       }),
       "label_smoothing is 2, expected from 0 to 1");
}

}  // namespace
}  // namespace hone
