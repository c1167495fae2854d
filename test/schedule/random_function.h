// Random functions, with the kinds of operations that the scheduler distinguishes.
#pragma once

#include <random>

#include "ir/function.h"
#include "ops/common.h"

namespace hone {

class RandomFunction {
 public:
  RandomFunction(unsigned seed, const Dim& rows) : rng_(seed), rows_(rows) {}

  Function make(int nodes) {
    for (int i = 0; i < 3; ++i) pool_.push_back(f_.add_param(some_shape(), cat("x", i)));
    pool_.push_back(weight());
    for (int i = 0; i < nodes; ++i)
      if (Value v = next()) pool_.push_back(v);
    int results = 1 + pick(3);
    for (int i = 0; i < results; ++i) f_.add_result(i == 0 ? pool_.back() : any_value());
    return f_;
  }

 private:
  int pick(int n) { return static_cast<int>(rng_() % static_cast<unsigned>(n)); }
  Value any_value() {
    return pool_[static_cast<std::size_t>(pick(static_cast<int>(pool_.size())))];
  }
  // Prefers the newest values, so that chains grow.
  Value recent() {
    std::size_t n = pool_.size(), back = static_cast<std::size_t>(pick(3)) + 1;
    return pick(3) ? pool_[n - std::min(n, back)] : any_value();
  }
  Type some_shape() {
    switch (pick(4)) {
      case 0:
        return f32({rows_, 6});
      case 1:
        return f32({rows_, 2, 3});
      case 2:
        return f32({6});
      default:
        return f32({4, 6});
    }
  }
  Value weight() {
    Array a = Array::zeros(DType::f32, {4, 6});
    for (int i = 0; i < 24; ++i) a.set_real(i, i % 5 - 2);
    return constant(f_.graph(), a);
  }

  Value next() {
    Value x = recent();
    switch (pick(16)) {
      case 0:
      case 1:
      case 2:
        return unary(x);
      case 3:
      case 4:
      case 5:
        return binary(x);
      case 6:
        return x.rank() == 1 ? broadcast_to(x, Shape{4, x.shape()[0]}) : reduced(x);
      case 7:
        return x.rank() > 1 ? transpose_some(x) : x * 0.5;
      case 8:
        return slice_axis(x, x.rank() - 1, 0, halved(x.shape()[-1]));
      case 9:
        return x.rank() == 3 ? reshape_to(x, {x.shape()[0], x.shape()[1] * x.shape()[2]})
                             : flatten(x);
      case 10: {
        const Value both[] = {x, pick(2) ? x : unary(x)};
        return concat_values(both, pick(x.rank()));
      }
      case 11:
        return is_small(x) ? ops::softmax(x, {{"axis", x.rank() - 1}}) : Value();
      case 12:
        return x.rank() == 2 ? dot_general(x, x, {}, {{1, 1}}) : Value();
      case 13:
        return pad_with(x, scalar(f_.graph(), 0.5, DType::f32), zeros(x), some_pads(x));
      case 14:
        return x.rank() == 2 ? reduce_axes(ops::reduce_max, x, {1}) : Value();
      default:
        return branch(x);
    }
  }

  static bool is_small(Value v) { return v.shape().count().high() < 20000; }
  static Dim halved(const Dim& d) {
    return d.is_number() && d.number() > 1 ? Dim(d.number() / 2) : d;
  }
  static Dims zeros(Value v) { return Dims(static_cast<std::size_t>(v.rank()), 0); }
  static Dims some_pads(Value v) {
    Dims pads = zeros(v);
    pads.back() = 1;
    return pads;
  }

  Value unary(Value x) {
    switch (pick(4)) {
      case 0:
        return ops::tanh(x);
      case 1:
        return ops::relu(x);
      case 2:
        return x * 0.5;
      default:
        return ops::neg(x);
    }
  }

  // Combines it with a value of the same shape, or one that can be broadcast.
  Value binary(Value x) {
    for (int tries = 0; tries < 8; ++tries) {
      Value y = any_value();
      if (y.shape() == x.shape()) return pick(2) ? x + y : ops::maximum(x, y);
      if (y.rank() < x.rank() && y.rank() > 0 &&
          std::equal(y.shape().dims.rbegin(), y.shape().dims.rend(), x.shape().dims.rbegin()))
        return x - broadcast_to(y, x.shape());
    }
    return x + 1.0;
  }

  Value reduced(Value x) {
    Value r = reduce_axes(pick(2) ? ops::reduce_max : ops::reduce_min, x, {x.rank() - 1}, true);
    return pick(2) ? broadcast_to(r, x.shape()) : r;
  }

  Value transpose_some(Value x) {
    Axes perm = all_axes(x.rank());
    std::swap(perm.front(), perm.back());
    return transpose_by(x, perm);
  }

  Value branch(Value x) {
    auto body = [&](bool yes) {
      auto g = std::make_shared<Function>();
      Value p = g->add_param(x.type(), "p");
      g->add_result(yes ? ops::tanh(p) : p);
      g->add_result(yes ? p * 2.0 : p + p);
      return FunctionRef(g);
    };
    Value any = reduce_axes(ops::reduce_max, flatten(x), {0});
    Value yes = ops::lt(constant_like(any, 0.5), any);
    Value made = ops::if_else(Values{yes, x}, {{"then", body(true)}, {"else", body(false)}});
    return made.result(static_cast<std::size_t>(pick(2)));
  }

  Function f_;
  std::mt19937 rng_;
  Dim rows_;
  Values pool_;
};

}  // namespace hone
