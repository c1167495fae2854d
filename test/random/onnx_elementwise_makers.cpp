#include "test/random/makers.h"
#include "test/random/onnx_makers.h"

namespace hone::fuzz {

namespace {

Value real(Builder& b, std::string_view op) { return import_one(b, op, {b.real()}); }

template <int low, int high>
Value real_in(Builder& b, std::string_view op) {
  return import_one(b, op, {tame(b, b.real(), low, high)});
}

Value with_alpha(Builder& b, std::string_view op) {
  return import_one(b, op, {b.real()}, {{"alpha", b.random.of({1.0, 0.5, 0.1, 2.0})}});
}

Value hard_sigmoid(Builder& b, std::string_view op) {
  return import_one(
      b, op, {b.real()},
      {{"alpha", b.random.of({0.2, 0.5, 1.0 / 6})}, {"beta", b.random.of({0.5, 0.25, 0.0})}});
}

Value shrunk(Builder& b, std::string_view op) {
  return import_one(
      b, op, {b.numeric()},
      {{"lambd", b.random.of({0.5, 1.0, 2.0})}, {"bias", b.random.of({0.0, 0.5, 1.0})}});
}

Value infinite(Builder& b, std::string_view op) {
  return import_one(b, op, {b.real()},
                    {{"detect_positive", std::int64_t{b.random.below(2)}},
                     {"detect_negative", std::int64_t{b.random.below(2)}}});
}

// An operand that broadcasts to the shape of x.
Value repeated(Builder& b, Value x) {
  Shape s = x.shape();
  while (s.rank() > 0 && b.random.chance(30)) s.dims.erase(s.dims.begin());
  for (Dim& d : s.dims)
    if (b.random.chance(30)) d = 1;
  return b.operand({x.dtype(), s});
}

Value with_slope(Builder& b, std::string_view op) {
  Value x = b.real();
  return import_one(b, op, {x, repeated(b, x)});
}

Value of_several(Builder& b, std::string_view op) {
  Value x = b.real();
  Values all = {x};
  for (int i = b.random.between(0, 3); i > 0; --i) all.push_back(repeated(b, x));
  return import_one(b, op, all);
}

Value of_two(Builder& b, std::string_view op) {
  Value x = b.numeric();
  Values all = {x, repeated(b, x)};
  if (b.random.chance(50)) std::swap(all[0], all[1]);
  return import_one(b, op, all);
}

Value chosen(Builder& b, std::string_view op) {
  Value x = b.recent();
  Value c = b.boolean();
  if (!(c.shape() == x.shape())) c = b.operand({DType::b1, x.shape()});
  return import_one(b, op, {c, x, repeated(b, x)});
}

constexpr OnnxMaker onnx_elementwise_table[] = {
    {"Elu", with_alpha},      {"Selu", real},
    {"Celu", with_alpha},     {"HardSigmoid", hard_sigmoid},
    {"HardSwish", real},      {"Softsign", real},
    {"Mish", real},           {"ThresholdedRelu", with_alpha},
    {"Swish", with_alpha},    {"Shrink", shrunk},
    {"PRelu", with_slope},    {"Tan", real_in<-1, 1>},
    {"Asin", real_in<-1, 1>}, {"Acos", real_in<-1, 1>},
    {"Atan", real},           {"Sinh", real_in<-4, 4>},
    {"Cosh", real_in<-4, 4>}, {"Asinh", real},
    {"Acosh", real_in<1, 9>}, {"Atanh", real_in<-1, 1>},
    {"IsNaN", real},          {"IsInf", infinite},
    {"Mean", of_several},     {"Sum", of_several},
    {"Max", of_several},      {"GreaterOrEqual", of_two},
    {"Where", chosen},
};

}  // namespace

std::span<const OnnxMaker> onnx_elementwise_makers() { return onnx_elementwise_table; }

}  // namespace hone::fuzz
