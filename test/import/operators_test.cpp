// The semantics of the operators, compared with plain loops.
#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <numbers>
#include <numeric>
#include <random>

#include "support.h"

namespace hone {
namespace {

using Numbers = std::vector<double>;
using Sizes = std::vector<std::int64_t>;

void expect_numbers(const Array& got, const Numbers& expected, double tolerance = 1e-5) {
  ASSERT_EQ(got.count(), static_cast<std::int64_t>(expected.size())) << got.type();
  for (std::int64_t i = 0; i < got.count(); ++i) {
    double e = expected[static_cast<std::size_t>(i)], g = got.real(i);
    bool good = std::isnan(e)   ? std::isnan(g)
                : std::isinf(e) ? g == e
                                : std::fabs(g - e) <= tolerance * (1 + std::fabs(e));
    EXPECT_TRUE(good) << "element " << i << ": " << g << ", expected " << e;
  }
}

Array real_array(Sizes dims, const Numbers& values) {
  Array a = Array::zeros(DType::f32, std::move(dims));
  for (std::int64_t i = 0; i < a.count(); ++i)
    a.set_real(i, values[static_cast<std::size_t>(i) % values.size()]);
  return a;
}

Array random_array(Sizes dims, std::mt19937& rng) {
  Array a = Array::zeros(DType::f32, std::move(dims));
  std::uniform_real_distribution<double> number(-2, 2);
  for (std::int64_t i = 0; i < a.count(); ++i) a.set_real(i, number(rng));
  return a;
}

// One node whose inputs have the given sizes; integer operands are constants.
class OneNode {
 public:
  explicit OneNode(const std::string& op, std::int64_t opset = 21) : builder_(opset), op_(op) {}

  OneNode& in(const Array& a) {
    std::vector<std::string> sizes;
    for (std::int64_t d : a.dims()) sizes.push_back(cat(d));
    builder_.input(name(), a.dtype(), sizes);
    arrays_.push_back(a);
    return *this;
  }
  OneNode& ints(const Sizes& values) { return fixed(Array::from_ints(values)); }
  OneNode& fixed(const Array& a) {
    builder_.constant(name(), a);
    return *this;
  }
  OneNode& none() {
    names_.emplace_back("");
    return *this;
  }
  OneNode& set(std::function<void(onnx_pb::Node&)> f) {
    sets_.push_back(std::move(f));
    return *this;
  }
  OneNode& outputs(int n) {
    outputs_ = n;
    return *this;
  }
  std::vector<Array> run() {
    std::vector<std::string> out;
    for (int i = 0; i < outputs_; ++i) out.push_back(cat("y", i));
    onnx_pb::Node& n = builder_.node(op_, names_, out);
    for (auto& f : sets_) f(n);
    for (const std::string& o : out) builder_.output(o);
    return builder_.run(arrays_);
  }
  Array one() { return run().at(0); }

 private:
  std::string name() { return names_.emplace_back(cat("x", names_.size())); }

  ModelBuilder builder_;
  std::string op_;
  std::vector<std::string> names_;
  std::vector<Array> arrays_;
  std::vector<std::function<void(onnx_pb::Node&)>> sets_;
  int outputs_ = 1;
};

auto integer(const std::string& name, std::int64_t v) {
  return [=](onnx_pb::Node& n) { set_int(n, name, v); };
}
auto real(const std::string& name, float v) {
  return [=](onnx_pb::Node& n) { set_real(n, name, v); };
}
auto text(const std::string& name, const std::string& v) {
  return [=](onnx_pb::Node& n) { set_text(n, name, v); };
}

Array whole_array(DType dtype, const Sizes& values) {
  Array a = Array::zeros(dtype, {static_cast<std::int64_t>(values.size())});
  for (std::int64_t i = 0; i < a.count(); ++i)
    a.set_integer(i, values[static_cast<std::size_t>(i)]);
  return a;
}

// ==== elementwise

struct Unary {
  const char* op;
  double (*meaning)(double);
};

TEST(Operators, OfOneValue) {
  const Unary all[] = {
      {"Abs", [](double x) { return std::fabs(x); }},
      {"Neg", [](double x) { return -x; }},
      {"Sign", [](double x) { return double((x > 0) - (x < 0)); }},
      {"Exp", [](double x) { return std::exp(x); }},
      {"Log", [](double x) { return std::log(x); }},
      {"Sqrt", [](double x) { return std::sqrt(x); }},
      {"Reciprocal", [](double x) { return 1 / x; }},
      {"Tanh", [](double x) { return std::tanh(x); }},
      {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"Erf", [](double x) { return std::erf(x); }},
      {"Sin", [](double x) { return std::sin(x); }},
      {"Cos", [](double x) { return std::cos(x); }},
      {"Floor", [](double x) { return std::floor(x); }},
      {"Ceil", [](double x) { return std::ceil(x); }},
      {"Round", [](double x) { return std::nearbyint(x); }},
      {"Relu", [](double x) { return std::max(x, 0.0); }},
      {"LeakyRelu", [](double x) { return x < 0 ? 0.01 * x : x; }},
      {"Elu", [](double x) { return x < 0 ? std::expm1(x) : x; }},
      {"Celu", [](double x) { return x < 0 ? std::expm1(x) : x; }},
      {"Selu",
       [](double x) {
         return 1.0507009873554805 * (x < 0 ? 1.6732632423543772 * std::expm1(x) : x);
       }},
      {"Softplus", [](double x) { return std::log1p(std::exp(x)); }},
      {"Softsign", [](double x) { return x / (1 + std::fabs(x)); }},
      {"Mish", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }},
      {"HardSigmoid", [](double x) { return std::clamp(0.2 * x + 0.5, 0.0, 1.0); }},
      {"HardSwish", [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }},
      {"ThresholdedRelu", [](double x) { return x > 1 ? x : 0; }},
      {"Gelu", [](double x) { return x * (1 + std::erf(x / std::sqrt(2.0))) / 2; }},
      {"Identity", [](double x) { return x; }},
      {"Dropout", [](double x) { return x; }},
      {"IsNaN", [](double x) { return double(std::isnan(x)); }},
      {"IsInf", [](double x) { return double(std::isinf(x)); }},
  };
  const Numbers points = {-7, -2.5, -1, -0.5, 0, 0.25, 0.5, 1, 1.5, 3, 8};
  for (const Unary& u : all) {
    SCOPED_TRACE(u.op);
    Numbers expected;
    for (double x : points) expected.push_back(u.meaning(x));
    Sizes dims = {static_cast<std::int64_t>(points.size())};
    expect_numbers(OneNode(u.op).in(real_array(dims, points)).one(), expected, 1e-6);
  }
}

struct Binary {
  const char* op;
  double (*meaning)(double, double);
};

TEST(Operators, OfTwoValuesThatBroadcast) {
  const Binary all[] = {
      {"Add", [](double x, double y) { return x + y; }},
      {"Sub", [](double x, double y) { return x - y; }},
      {"Mul", [](double x, double y) { return x * y; }},
      {"Div", [](double x, double y) { return x / y; }},
      {"Pow", [](double x, double y) { return std::pow(x, y); }},
      {"Max", [](double x, double y) { return std::max(x, y); }},
      {"Min", [](double x, double y) { return std::min(x, y); }},
      {"Sum", [](double x, double y) { return x + y; }},
      {"Mean", [](double x, double y) { return (x + y) / 2; }},
      {"Equal", [](double x, double y) { return double(x == y); }},
      {"Less", [](double x, double y) { return double(x < y); }},
      {"LessOrEqual", [](double x, double y) { return double(x <= y); }},
      {"Greater", [](double x, double y) { return double(x > y); }},
      {"GreaterOrEqual", [](double x, double y) { return double(x >= y); }},
      {"PRelu", [](double x, double y) { return x < 0 ? x * y : x; }},
  };
  const Numbers x = {-2, -1, 0, 1, 2, 3}, y = {-1, 0.5, 2};
  for (const Binary& b : all) {
    SCOPED_TRACE(b.op);
    Numbers expected;
    for (int i = 0; i < 6; ++i)
      expected.push_back(
          b.meaning(x[static_cast<std::size_t>(i)], y[static_cast<std::size_t>(i % 3)]));
    Array got = OneNode(b.op).in(real_array({2, 3}, x)).in(real_array({3}, y)).one();
    EXPECT_EQ(got.dims(), (Sizes{2, 3}));
    expect_numbers(got, expected);
  }
}

// Operators whose specification allows dtypes that the underlying operations do not support.
TEST(Operators, OfDtypesThatAreConverted) {
  Array x = whole_array(DType::i32, {3, 4, 12});
  expect_numbers(OneNode("ReduceMean").in(x).one(), {6});
  expect_numbers(OneNode("ReduceL2").in(x).one(), {13});
  expect_numbers(OneNode("ReduceLogSum").in(x).one(), {2});
  expect_numbers(OneNode("ReduceLogSumExp").in(x).one(), {12});
  EXPECT_EQ(OneNode("ReduceL2").in(x).one().dtype(), DType::i32);
  expect_numbers(OneNode("QuantizeLinear")
                     .in(whole_array(DType::i32, {5, -6, 7}))
                     .fixed(Array::scalar_int(2, DType::i32))
                     .fixed(Array::scalar_int(0, DType::i8))
                     .one(),
                 {2, -3, 4});
  Array small = Array::zeros(DType::f8e5m2, {3});
  small.set_real(0, std::nan(""));
  small.set_real(1, -std::numeric_limits<double>::infinity());
  expect_numbers(OneNode("IsNaN").in(small).one(), {1, 0, 0});
  expect_numbers(OneNode("IsInf").in(small).one(), {0, 1, 0});
  small.set_real(2, 1.75);
  expect_numbers(OneNode("Cast").in(small).set(integer("to", 19)).one(),
                 {std::nan(""), -std::numeric_limits<double>::infinity(), 1.75});
  Array scale = Array::zeros(DType::f16, {1}), mean = Array::zeros(DType::f64, {1});
  scale.set_real(0, 2);
  mean.set_real(0, 1);
  Array y = OneNode("BatchNormalization")
                .in(real_array({1, 1, 2}, {3, 5}))
                .in(scale)
                .in(scale)
                .in(mean)
                .in(mean)
                .set(real("epsilon", 0))
                .one();
  expect_numbers(y, {6, 10});
  EXPECT_EQ(y.dtype(), DType::f32);
}

TEST(Operators, OfIntegersAndBools) {
  auto i64 = [](const Sizes& v) { return Array::from_ints(v); };
  auto bools = [](const Sizes& v) {
    Array a = Array::zeros(DType::b1, {static_cast<std::int64_t>(v.size())});
    for (std::size_t i = 0; i < v.size(); ++i) a.set_integer(static_cast<std::int64_t>(i), v[i]);
    return a;
  };
  Array x = i64({7, -7, 7, -7}), y = i64({2, 2, -2, -2});
  expect_numbers(OneNode("Div").in(x).in(y).one(), {3, -3, -3, 3});
  expect_numbers(OneNode("Mod").in(x).in(y).one(), {1, 1, -1, -1});
  expect_numbers(OneNode("Mod").in(x).in(y).set(integer("fmod", 1)).one(), {1, -1, 1, -1});
  Array base = i64({2, 3, -2, 9}), half = real_array({4}, {3, 0.5, 2, 0.5});
  expect_numbers(OneNode("Pow").in(base).in(half).one(), {8, 1, 4, 3});
  // In f16 the exponent would be 0.
  Array zero = Array::zeros(DType::f16, {1}), tiny = real_array({1}, {1e-9});
  expect_numbers(OneNode("Pow").in(zero).in(tiny).one(), {0});
  Array a = bools({0, 0, 1, 1}), b = bools({0, 1, 0, 1});
  expect_numbers(OneNode("And").in(a).in(b).one(), {0, 0, 0, 1});
  expect_numbers(OneNode("Or").in(a).in(b).one(), {0, 1, 1, 1});
  expect_numbers(OneNode("Xor").in(a).in(b).one(), {0, 1, 1, 0});
  expect_numbers(OneNode("Not").in(a).one(), {1, 1, 0, 0});
  expect_numbers(OneNode("Where").in(a).in(x).in(y).one(), {2, 2, 7, -7});
  expect_numbers(OneNode("Cast").in(x).set(integer("to", 1)).one(), {7, -7, 7, -7});
  expect_numbers(OneNode("Clip")
                     .in(real_array({3}, {-9, 1, 9}))
                     .none()
                     .fixed(Array::scalar(2, DType::f32))
                     .one(),
                 {-9, 1, 2});
  expect_numbers(OneNode("ReduceMax").in(a).set(integer("keepdims", 0)).one(), {1});
  expect_numbers(OneNode("ReduceMin").in(a).set(integer("keepdims", 0)).one(), {0});
}

// ==== reductions

struct Reduction {
  const char* op;
  double (*meaning)(const Numbers&);
};

double sum_of(const Numbers& v) { return std::accumulate(v.begin(), v.end(), 0.0); }
double sum_by(const Numbers& v, double (*f)(double)) {
  double s = 0;
  for (double x : v) s += f(x);
  return s;
}

TEST(Operators, ReductionsOverAnyAxes) {
  const Reduction all[] = {
      {"ReduceSum", sum_of},
      {"ReduceMean", [](const Numbers& v) { return sum_of(v) / static_cast<double>(v.size()); }},
      {"ReduceMax", [](const Numbers& v) { return *std::max_element(v.begin(), v.end()); }},
      {"ReduceMin", [](const Numbers& v) { return *std::min_element(v.begin(), v.end()); }},
      {"ReduceProd",
       [](const Numbers& v) {
         return std::accumulate(v.begin(), v.end(), 1.0, std::multiplies<>());
       }},
      {"ReduceL1",
       [](const Numbers& v) { return sum_by(v, [](double x) { return std::fabs(x); }); }},
      {"ReduceL2",
       [](const Numbers& v) { return std::sqrt(sum_by(v, [](double x) { return x * x; })); }},
      {"ReduceSumSquare",
       [](const Numbers& v) { return sum_by(v, [](double x) { return x * x; }); }},
      {"ReduceLogSum", [](const Numbers& v) { return std::log(sum_of(v)); }},
      {"ReduceLogSumExp",
       [](const Numbers& v) { return std::log(sum_by(v, [](double x) { return std::exp(x); })); }},
  };
  std::mt19937 rng(3);
  const Sizes dims = {2, 3, 4};
  Array x = random_array(dims, rng);
  for (const Reduction& r : all)
    for (unsigned mask = 0; mask < 8; ++mask)
      for (bool keep : {false, true}) {
        SCOPED_TRACE(cat(r.op, " of axes ", mask, " keep ", keep));
        Sizes axes, kept;
        for (int k = 0; k < 3; ++k) {
          bool reduced = mask == 0 || (mask >> k & 1);
          if (mask >> k & 1) axes.push_back(k - (rng() % 2 ? 3 : 0));
          if (!reduced || keep) kept.push_back(reduced ? 1 : dims[static_cast<std::size_t>(k)]);
        }
        std::map<Sizes, Numbers> parts;  // by the index along the remaining axes
        for (std::int64_t i = 0; i < 24; ++i) {
          Sizes at = {i / 12, i / 4 % 3, i % 4};
          for (int k = 0; k < 3; ++k)
            if (mask == 0 || (mask >> k & 1)) at[static_cast<std::size_t>(k)] = 0;
          parts[at].push_back(x.real(i));
        }
        Numbers expected;
        for (auto& [at, part] : parts) expected.push_back(r.meaning(part));
        OneNode node(r.op);
        node.in(x);
        if (mask != 0) node.ints(axes);
        Array got = node.set(integer("keepdims", keep)).one();
        EXPECT_EQ(got.dims(), kept);
        expect_numbers(got, expected, 1e-4);
      }
}

TEST(Operators, ReductionsWithoutAxesMayDoNothing) {
  Array x = real_array({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(OneNode("ReduceSum").in(x).set(integer("noop_with_empty_axes", 1)).one(), x);
  expect_numbers(OneNode("ReduceLogSumExp")
                     .in(real_array({2}, {-std::numeric_limits<double>::infinity(),
                                          -std::numeric_limits<double>::infinity()}))
                     .one(),
                 {-std::numeric_limits<double>::infinity()});
}

TEST(Operators, PositionsOfExtremes) {
  Array x = real_array({2, 3}, {1, 5, 5, 4, 0, 0});
  expect_numbers(OneNode("ArgMax").in(x).set(integer("axis", 1)).one(), {1, 0});
  expect_numbers(
      OneNode("ArgMax").in(x).set(integer("axis", -1)).set(integer("select_last_index", 1)).one(),
      {2, 0});
  expect_numbers(OneNode("ArgMin").in(x).set(integer("axis", 1)).set(integer("keepdims", 0)).one(),
                 {0, 1});
}

// ==== windows

struct WindowCase {
  std::int64_t size, window, stride, dilation, low, high;
  std::string auto_pad;
  bool ceil = false, include = false;
};

WindowCase any_window(std::mt19937& rng) {
  auto upto = [&](unsigned n) { return static_cast<std::int64_t>(1 + rng() % n); };
  WindowCase w{upto(9) + 4,  // the longest reach is 5
               upto(3),     upto(3), upto(2), 0, 0, "NOTSET"};
  static const char* pads[] = {"NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
  w.auto_pad = pads[rng() % 5];
  if (w.auto_pad == "NOTSET") {
    w.low = upto(static_cast<unsigned>(w.window)) - 1;
    w.high = upto(static_cast<unsigned>(w.window)) - 1;
  }
  w.ceil = rng() % 2 && w.auto_pad == "NOTSET";
  w.include = rng() % 2;
  return w;
}

std::int64_t reach(const WindowCase& w) { return (w.window - 1) * w.dilation + 1; }

// Sets the pads that auto_pad implies and returns the number of windows.
std::int64_t place(WindowCase& w) {
  if (w.auto_pad.starts_with("SAME")) {
    std::int64_t out = (w.size + w.stride - 1) / w.stride;
    std::int64_t total = std::max<std::int64_t>(0, (out - 1) * w.stride + reach(w) - w.size);
    w.low = w.auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    w.high = total - w.low;
    return out;
  }
  std::int64_t room = w.size + w.low + w.high - reach(w);
  std::int64_t out = room / w.stride + 1;
  // ceil_mode adds one window if it starts inside the input or the low pad.
  if (w.ceil && room % w.stride != 0 && out * w.stride < w.size + w.low) ++out;
  return out;
}

void set_window(onnx_pb::Node& n, const WindowCase& w) {
  set_ints(n, "strides", {w.stride});
  set_ints(n, "dilations", {w.dilation});
  set_text(n, "auto_pad", w.auto_pad);
  if (w.auto_pad == "NOTSET") set_ints(n, "pads", {w.low, w.high});
}

TEST(Operators, PoolsOverAnyWindow) {
  std::mt19937 rng(11);
  for (int trial = 0; trial < 200; ++trial) {
    WindowCase given = any_window(rng), w = given;
    std::int64_t outputs = place(w);
    Array x = random_array({1, 1, w.size}, rng);
    Numbers largest, mean;
    for (std::int64_t o = 0; o < outputs; ++o) {
      double most = -std::numeric_limits<double>::infinity(), sum = 0, count = 0;
      for (std::int64_t k = 0; k < w.window; ++k) {
        std::int64_t at = o * w.stride + k * w.dilation - w.low;
        bool inside = at >= 0 && at < w.size;
        if (inside) most = std::max(most, x.real(at)), sum += x.real(at);
        count += inside || (w.include && at < w.size + w.high);
      }
      largest.push_back(most);
      mean.push_back(sum / count);
    }
    SCOPED_TRACE(cat("trial ", trial, ": size ", w.size, " window ", w.window, " stride ", w.stride,
                     " dilation ", w.dilation, " pads ", w.low, ",", w.high, " ", w.auto_pad,
                     " ceil ", w.ceil, " include ", w.include));
    auto set = [&](onnx_pb::Node& n) {
      set_window(n, given);
      set_ints(n, "kernel_shape", {w.window});
      set_int(n, "ceil_mode", w.ceil);
    };
    expect_numbers(OneNode("MaxPool").in(x).set(set).one(), largest);
    expect_numbers(
        OneNode("AveragePool").in(x).set(set).set(integer("count_include_pad", w.include)).one(),
        mean);
  }
}

TEST(Operators, ConvolutionsOverAnyWindow) {
  std::mt19937 rng(12);
  for (int trial = 0; trial < 100; ++trial) {
    WindowCase given = any_window(rng);
    given.ceil = false;
    WindowCase w = given;
    const std::int64_t outputs = place(w), groups = 1 + trial % 2, in = 2 * groups, out = 4;
    Array x = random_array({2, in, w.size}, rng), weights = random_array({out, 2, w.window}, rng),
          bias = random_array({out}, rng);
    Numbers expected;
    for (std::int64_t n = 0; n < 2; ++n)
      for (std::int64_t c = 0; c < out; ++c)
        for (std::int64_t o = 0; o < outputs; ++o) {
          double sum = bias.real(c);
          for (std::int64_t i = 0; i < 2; ++i)
            for (std::int64_t k = 0; k < w.window; ++k) {
              std::int64_t at = o * w.stride + k * w.dilation - w.low;
              std::int64_t channel = c / (out / groups) * 2 + i;
              if (at < 0 || at >= w.size) continue;
              sum += x.real((n * in + channel) * w.size + at) *
                     weights.real((c * 2 + i) * w.window + k);
            }
          expected.push_back(sum);
        }
    SCOPED_TRACE(cat("trial ", trial));
    auto set = [&](onnx_pb::Node& n) {
      set_window(n, given);
      set_int(n, "group", groups);
    };
    expect_numbers(OneNode("Conv").in(x).in(weights).in(bias).set(set).one(), expected, 1e-4);
  }
}

TEST(Operators, GlobalPools) {
  Array x = real_array({1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 9});
  expect_numbers(OneNode("GlobalAveragePool").in(x).one(), {2.5, 6.75});
  Array largest = OneNode("GlobalMaxPool").in(x).one();
  expect_numbers(largest, {4, 9});
  EXPECT_EQ(largest.dims(), (Sizes{1, 2, 1, 1}));
}

// The index is that of an element in the window, even if all elements equal the padding value.
TEST(Operators, IndicesOfTheLowestNumbers) {
  Array x = real_array({1, 1, 3}, {-std::numeric_limits<double>::infinity()});
  auto set = [](onnx_pb::Node& n) {
    set_ints(n, "kernel_shape", {2});
    set_ints(n, "pads", {1, 1});
  };
  expect_numbers(OneNode("MaxPool").in(x).set(set).outputs(2).run().at(1), {0, 0, 1, 2});
}

TEST(Operators, ResizeTakesARegionThatDoesNotCount) {
  Array x = real_array({1, 1, 1, 2}, {1, 2}), scales = real_array({4}, {1, 1, 1, 2});
  Array region = real_array({8}, {0, 0, 0, 0, 1, 1, 1, 1});
  expect_numbers(OneNode("Resize").in(x).fixed(region).fixed(scales).one(), {1, 1, 2, 2});
}

// ==== contractions and recurrence

TEST(Operators, GemmWithEveryOption) {
  std::mt19937 rng(4);
  for (unsigned option = 0; option < 8; ++option) {
    bool ta = option & 1, tb = option & 2, has_c = option & 4;
    Array a = random_array(ta ? Sizes{3, 2} : Sizes{2, 3}, rng),
          b = random_array(tb ? Sizes{4, 3} : Sizes{3, 4}, rng), c = random_array({4}, rng);
    Numbers expected;
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 4; ++j) {
        double sum = 0;
        for (int k = 0; k < 3; ++k)
          sum += a.real(ta ? k * 2 + i : i * 3 + k) * b.real(tb ? j * 3 + k : k * 4 + j);
        expected.push_back(0.5 * sum + (has_c ? 2 * c.real(j) : 0));
      }
    OneNode node("Gemm");
    node.in(a).in(b);
    if (has_c) node.in(c);
    node.set(integer("transA", ta)).set(integer("transB", tb));
    expect_numbers(node.set(real("alpha", 0.5f)).set(real("beta", 2)).one(), expected, 1e-4);
  }
}

// Without "->" the result has the axes that occur once; an axis that occurs twice in one operand is
// summed too.
TEST(Operators, EinsumSumsAnAxisThatStandsTwice) {
  const Array x = real_array({2, 2}, {1, 2, 3, 4}), v = real_array({3}, {1, 10, 100});
  EXPECT_EQ(OneNode("Einsum").in(x).set(text("equation", "ii")).one().dims(), Sizes{});
  expect_numbers(OneNode("Einsum").in(x).set(text("equation", "ii")).one(), {5});
  expect_numbers(OneNode("Einsum").in(x).in(v).set(text("equation", "ii,j")).one(), {5, 50, 500});
  expect_numbers(OneNode("Einsum").in(x).set(text("equation", "ii->i")).one(), {1, 4});
}

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

// One direction of an LSTM of batch 1, with the gates in the order input, output, forget, cell.
Numbers plain_lstm(const Array& x, const Array& w, const Array& r, const Array& bias, int direction,
                   Numbers h, Numbers c) {
  const std::int64_t steps = x.dims()[0], in = x.dims()[2],
                     hidden = static_cast<std::int64_t>(h.size());
  Numbers all(static_cast<std::size_t>(steps * hidden));
  for (std::int64_t s = 0; s < steps; ++s) {
    const std::int64_t t = direction ? steps - 1 - s : s;
    Numbers gates(static_cast<std::size_t>(4 * hidden));
    for (std::int64_t g = 0; g < 4 * hidden; ++g) {
      std::int64_t row = direction * 4 * hidden + g;
      double sum = bias.real(direction * 8 * hidden + g) +
                   bias.real(direction * 8 * hidden + 4 * hidden + g);
      for (std::int64_t i = 0; i < in; ++i) sum += w.real(row * in + i) * x.real(t * in + i);
      for (std::int64_t i = 0; i < hidden; ++i)
        sum += r.real(row * hidden + i) * h[static_cast<std::size_t>(i)];
      gates[static_cast<std::size_t>(g)] = sum;
    }
    for (std::int64_t i = 0; i < hidden; ++i) {
      auto gate = [&](std::int64_t k) { return gates[static_cast<std::size_t>(k * hidden + i)]; };
      auto at = static_cast<std::size_t>(i);
      c[at] = sigmoid_of(gate(2)) * c[at] + sigmoid_of(gate(0)) * std::tanh(gate(3));
      h[at] = sigmoid_of(gate(1)) * std::tanh(c[at]);
      all[static_cast<std::size_t>(t * hidden + i)] = h[at];
    }
  }
  return all;
}

TEST(Operators, LstmInBothDirectionsWithStates) {
  std::mt19937 rng(5);
  const std::int64_t steps = 3, in = 2, hidden = 2;
  Array x = random_array({steps, 1, in}, rng), w = random_array({2, 4 * hidden, in}, rng),
        r = random_array({2, 4 * hidden, hidden}, rng), bias = random_array({2, 8 * hidden}, rng),
        h = random_array({2, 1, hidden}, rng), c = random_array({2, 1, hidden}, rng);
  auto state = [&](const Array& a, int d) { return Numbers{a.real(d * 2), a.real(d * 2 + 1)}; };
  Numbers expected(static_cast<std::size_t>(steps * 2 * hidden));
  for (int d : {0, 1}) {
    Numbers one = plain_lstm(x, w, r, bias, d, state(h, d), state(c, d));
    for (std::int64_t t = 0; t < steps; ++t)
      for (std::int64_t i = 0; i < hidden; ++i)
        expected[static_cast<std::size_t>((t * 2 + d) * hidden + i)] =
            one[static_cast<std::size_t>(t * hidden + i)];
  }
  OneNode node("LSTM");
  node.in(x).in(w).in(r).in(bias).none().in(h).in(c).outputs(3);
  node.set(integer("hidden_size", hidden)).set(text("direction", "bidirectional"));
  std::vector<Array> got = node.run();
  EXPECT_EQ(got[0].dims(), (Sizes{steps, 2, 1, hidden}));
  EXPECT_EQ(got[1].dims(), (Sizes{2, 1, hidden}));
  expect_numbers(got[0], expected);
  expect_numbers(got[1], {expected[8], expected[9], expected[2], expected[3]});
}

// ==== norms

TEST(Operators, NormsHaveMeanZeroAndVarianceOne) {
  std::mt19937 rng(6);
  Array x = random_array({2, 4, 3}, rng);
  auto expected = [&](std::int64_t row) {
    Numbers out;
    for (std::int64_t from = 0; from < 24; from += row) {
      double mean = 0, variance = 0;
      for (std::int64_t i = 0; i < row; ++i) mean += x.real(from + i) / static_cast<double>(row);
      for (std::int64_t i = 0; i < row; ++i)
        variance += std::pow(x.real(from + i) - mean, 2) / static_cast<double>(row);
      for (std::int64_t i = 0; i < row; ++i)
        out.push_back((x.real(from + i) - mean) / std::sqrt(variance + 1e-5));
    }
    return out;
  };
  Array ones4 = real_array({4}, {1}), zeros4 = real_array({4}, {0});
  Array ones3 = real_array({3}, {1});
  expect_numbers(OneNode("LayerNormalization").in(x).in(ones3).one(), expected(3), 1e-4);
  expect_numbers(OneNode("InstanceNormalization").in(x).in(ones4).in(zeros4).one(), expected(3),
                 1e-4);
  expect_numbers(
      OneNode("GroupNormalization").in(x).in(ones4).in(zeros4).set(integer("num_groups", 2)).one(),
      expected(6), 1e-4);
  Array mean = real_array({4}, {0.5}), variance = real_array({4}, {4});
  Numbers batch;
  for (std::int64_t i = 0; i < 24; ++i)
    batch.push_back((x.real(i) - 0.5) / std::sqrt(4 + 1e-5) * 1 + 0);
  expect_numbers(
      OneNode("BatchNormalization").in(x).in(ones4).in(zeros4).in(mean).in(variance).one(), batch);
  auto statistics = OneNode("LayerNormalization").in(x).in(ones3).outputs(3).run();
  EXPECT_EQ(statistics[1].dims(), (Sizes{2, 4, 1}));
  expect_numbers(statistics[1], numbers_of(OneNode("ReduceMean").in(x).ints({-1}).one()));
}

// ==== movement

TEST(Operators, Movement) {
  Array x = real_array({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_numbers(OneNode("Transpose").in(x).one(), {1, 4, 2, 5, 3, 6});
  expect_numbers(OneNode("Tile").in(x).ints({1, 2}).one(), {1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6});
  expect_numbers(OneNode("Expand").in(real_array({2, 1}, {1, 2})).ints({1, 3}).one(),
                 {1, 1, 1, 2, 2, 2});
  expect_numbers(OneNode("Trilu").in(x).one(), {1, 2, 3, 0, 5, 6});
  expect_numbers(OneNode("Trilu").in(x).ints({1}).set(integer("upper", 0)).one(),
                 {1, 2, 0, 4, 5, 6});
  expect_numbers(OneNode("CumSum").in(x).ints({1}).set(integer("exclusive", 1)).one(),
                 {0, 1, 3, 0, 4, 9});
  expect_numbers(OneNode("Gather").in(x).ints({2, -3}).set(integer("axis", 1)).one(), {3, 1, 6, 4});
  EXPECT_EQ(OneNode("Flatten").in(x).set(integer("axis", 0)).one().dims(), (Sizes{1, 6}));
  EXPECT_EQ(OneNode("Reshape").in(x).ints({0, -1, 1}).one().dims(), (Sizes{2, 3, 1}));
  EXPECT_EQ(OneNode("Unsqueeze").in(x).ints({-1, 0}).one().dims(), (Sizes{1, 2, 3, 1}));
  EXPECT_EQ(OneNode("Squeeze").in(real_array({1, 2, 1}, {1})).one().dims(), (Sizes{2}));
  expect_numbers(OneNode("Shape").in(x).set(integer("start", -1)).one(), {3});
  expect_numbers(OneNode("Size").in(x).one(), {6});
  expect_numbers(OneNode("Range").ints({5}).ints({0}).ints({-2}).one(), {5, 3, 1});
  auto halves = OneNode("Split").in(x).set(integer("axis", 1)).outputs(2).run();
  expect_numbers(halves[0], {1, 2, 4, 5});
  expect_numbers(halves[1], {3, 6});
  Array sorted = real_array({1, 4, 1, 1}, {1, 2, 3, 4});
  expect_numbers(OneNode("DepthToSpace").in(sorted).set(integer("blocksize", 2)).one(),
                 {1, 2, 3, 4});
  EXPECT_EQ(OneNode("SpaceToDepth")
                .in(real_array({1, 1, 2, 2}, {1}))
                .set(integer("blocksize", 2))
                .one()
                .dims(),
            (Sizes{1, 4, 1, 1}));
  Array values = real_array({2}, {7, 9});
  expect_numbers(OneNode("OneHot").ints({1, -1}).ints({3}).in(values).one(), {7, 9, 7, 7, 7, 9});
}

TEST(Operators, PadsOfEveryKind) {
  Array x = real_array({3}, {1, 2, 3});
  auto pad = [&](const std::string& mode, Sizes pads) {
    return OneNode("Pad").in(x).ints(pads).set(text("mode", mode)).one();
  };
  expect_numbers(pad("constant", {1, 2}), {0, 1, 2, 3, 0, 0});
  expect_numbers(pad("edge", {2, 1}), {1, 1, 1, 2, 3, 3});
  expect_numbers(pad("reflect", {2, 2}), {3, 2, 1, 2, 3, 2, 1});
  expect_numbers(pad("constant", {-1, 1}), {2, 3, 0});
  expect_numbers(pad("reflect", {-1, 1}), {2, 3, 2});
  expect_numbers(OneNode("Pad").in(x).ints({1, 0}).fixed(Array::scalar(9, DType::f32)).one(),
                 {9, 1, 2, 3});
}

double sample_at(std::int64_t i) { return static_cast<double>((i * 37 + 11) % 101) / 101 - 0.5; }

// The transform of n elements, each of `parts` numbers, computed by its definition.
std::vector<std::complex<double>> defined(std::int64_t n, int parts, bool inverse) {
  std::vector<std::complex<double>> out;
  for (std::int64_t k = 0; k < n; ++k) {
    std::complex<double> sum = 0;
    for (std::int64_t t = 0; t < n; ++t)
      sum += std::complex<double>(sample_at(parts * t), parts == 2 ? sample_at(2 * t + 1) : 0) *
             std::polar(1.0, (inverse ? 2 : -2) * std::numbers::pi *
                                 (static_cast<double>(k * t % n) / static_cast<double>(n)));
    out.push_back(inverse ? sum / static_cast<double>(n) : sum);
  }
  return out;
}

Array transform(const Array& x, bool inverse, bool onesided) {
  return OneNode("DFT", 17)
      .in(x)
      .set([&](onnx_pb::Node& node) {
        set_int(node, "inverse", inverse);
        set_int(node, "onesided", onesided);
      })
      .one();
}

// Prime lengths, products of small and of large numbers, and squares, below and above the lengths
// at which factoring starts.
TEST(Operators, FourierTransformsOfAnyLengthAreTheirDefinition) {
  for (std::int64_t n :
       {1, 2, 3, 4, 6, 9, 10, 49, 60, 64, 97, 190, 191, 192, 202, 211, 318, 322, 400, 513, 1024})
    for (int parts : {1, 2})
      for (bool inverse : {false, true})
        for (bool onesided : {false, true}) {
          if (onesided && (inverse || parts == 2)) continue;
          SCOPED_TRACE(cat("length ", n, ", parts ", parts, inverse ? " inverse" : "",
                           onesided ? " onesided" : ""));
          std::vector<float> x;
          for (std::int64_t i = 0; i < parts * n; ++i)
            x.push_back(static_cast<float>(sample_at(i)));
          const Array y = transform(reals({1, n, parts}, x), inverse, onesided);
          const std::int64_t count = onesided ? n / 2 + 1 : n;
          ASSERT_EQ(y.dims(), (std::vector<std::int64_t>{1, count, 2}));
          const std::vector<std::complex<double>> expected = defined(n, parts, inverse);
          const double most = std::max(2e-5, 2e-7 * static_cast<double>(n));
          for (std::int64_t k = 0; k < count; ++k) {
            EXPECT_NEAR(y.real(2 * k), expected[static_cast<std::size_t>(k)].real(), most);
            EXPECT_NEAR(y.real(2 * k + 1), expected[static_cast<std::size_t>(k)].imag(), most);
          }
        }
}

TEST(Operators, FrequenciesOfARealSignalGiveItBack) {
  for (std::int64_t n : {2, 10, 64, 318, 320, 400, 1024}) {
    SCOPED_TRACE(n);
    std::vector<float> x;
    for (std::int64_t i = 0; i < n; ++i) x.push_back(static_cast<float>(sample_at(i)));
    const Array back = transform(transform(reals({1, n, 1}, x), false, true), true, true);
    ASSERT_EQ(back.dims(), (std::vector<std::int64_t>{1, n, 1}));
    for (std::int64_t i = 0; i < n; ++i) EXPECT_NEAR(back.real(i), sample_at(i), 2e-5);
  }
}

}  // namespace
}  // namespace hone
