// Functions that are recorded inside another, for branches and loops, and what their derivatives
// share. Not for users.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "tensor/grad.h"
#include "tensor/trace.h"

namespace hone::bodies {

using Lambda = std::function<Tensors(const Tensors&)>;

// A function that was recorded inside another, whose tensors it may use.
struct Body {
  Body(Trace& outer, const std::string& what, const std::vector<Type>& params);
  Body(const Body&) = delete;
  ~Body() { trace->own_gradients().clear(); }  // which may hold tensors of the trace

  void add(const Type&);  // a parameter
  Tensors call(const Lambda&) const;
  void finish(const Tensors& results) const;

  std::shared_ptr<Trace> trace;
  Tensors in;
};

// Tensors around the bodies that they use, each once, as values where the operation is.
Values captured_by(Trace& outer, std::initializer_list<const Body*>);
// The body as a function of its parameters and of all that is captured.
FunctionRef closed(Trace& outer, const Body&, const Values& captured);

// The results of the function on these tensors, and then their derivatives.
struct Pulled {
  Tensors given;       // the arguments, marked
  Tensors results, d;  // d is empty where an argument is no float
};
Pulled pulled_back(const Function&, const Tensors& arguments,
                   const std::function<Tensors(const Tensors& results)>& weights,
                   Where = Where::current());

// Marks the results, and gives them a derivative.
Tensors with_rule(Trace&, const Tensors& inputs, const Tensors& results, const Backward& rule);

Tensors results_of_node(Trace&, const Value& first);
std::vector<Type> types_of(const Tensors&);
Tensors without_empty(const Tensors&);
// One tensor for each of `like`: the next of `some` where it is a float, else an empty one.
Tensors at_floats(const Tensors& like, const Tensors& some);
Tensors part_of(const Tensors& all, std::size_t first, std::size_t count);
template <class T>
std::vector<T> joined(std::vector<T> a, const std::vector<T>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace hone::bodies
