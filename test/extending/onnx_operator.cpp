#include "test/extending/extending.h"

namespace hone::extending {

namespace {

Values shrink(onnx::NodeContext& c) {
  const Value x = c.in(0), zero = constant_like(x, 0);
  const double lambd = c.real("lambd", 0.5), bias = c.real("bias", 0);
  const Value is_low = ops::lt(x, constant_like(x, -lambd)),
              is_high = ops::lt(constant_like(x, lambd), x);
  return {ops::select(is_low, x + bias, ops::select(is_high, x - bias, zero))};
}

}  // namespace

constinit const onnx::ImportEntry shrink_import = {"Shrink", shrink, 9};

}  // namespace hone::extending
