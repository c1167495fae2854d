// Derivatives of what an entry has computed so far, by reverse accumulation. They are tensors like
// others, so they can be differentiated again. Not available through a while_loop(), or what
// tensor/control.h excepts, whose operands depend on what is asked for: that is an error that names
// the operation.
#pragma once

#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "tensor/program.h"
#include "tensor/tensor.h"

namespace hone {

struct GradOptions {
  bool unused = false;  // what the value does not depend on has derivative 0; else it is an error
};

// d loss / d x for each x, in its type. The loss is a scalar; all are floats. What x itself depends
// on counts as constant. For a variable, x is what its last read before the loss gave.
Tensors grad(const Tensor& loss, const Variables& x, GradOptions = {}, Where = Where::current());
Tensors grad(const Tensor& loss, const Tensors& x, GradOptions = {}, Where = Where::current());

// The sum over i of dys[i] d ys[i] / d x, for each x.
Tensors vjp(const Tensors& ys, const Tensors& dys, const Tensors& xs, GradOptions = {},
            Where = Where::current());

struct ValueAndGrad {
  Tensor value;
  Tensors grads;  // one for each x
};
// f(x...) is the scalar.
ValueAndGrad value_and_grad(const std::function<Tensor(const Tensors&)>& f, const Tensors& x,
                            GradOptions = {}, Where = Where::current());

// x, but constant to derivatives.
Tensor stop_gradient(const Tensor& x, Where = Where::current());

// f(inputs), with a derivative of one's own: `backward(inputs, results, d)` gives the derivative of
// each input from those of the results; an empty tensor means that there is none. What f computes
// inside is not differentiated, and only what f is given has a derivative.
using Backward =
    std::function<Tensors(const Tensors& inputs, const Tensors& results, const Tensors& d)>;
Tensors with_gradient(const std::function<Tensors(const Tensors&)>& f, const Backward& backward,
                      const Tensors& inputs, Where = Where::current());

// f(inputs), whose inner values derivatives compute again instead of keeping them: only what f is
// given, what it uses from around and its results are kept. The same numbers: dropout inside drops
// the same elements, a derivative that with_gradient() gives inside counts, states are set once.
Tensors checkpoint(const std::function<Tensors(const Tensors&)>& f, const Tensors& inputs,
                   Where = Where::current());

}  // namespace hone
