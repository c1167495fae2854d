// A part of a model with states of its own. Names are PyTorch's: a parameter `weight` of a module
// `conv` in a module `net` is the state "net.conv.weight".
//
//   struct Net : nn::Module {
//     using Module::Module;
//     nn::Linear hidden{*this, "hidden", {.in = 64, .out = 32}}, head{*this, "head", {.in = 32,
//     .out = 10}}; Tensor operator()(const Tensor& x) const { return head(relu(hidden(x))); }
//   };
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensor/program.h"

namespace hone::nn {

// A handle: copies are the same module, and stay valid after the original is gone. Members must not
// be moved to another parent.
class Module {
 public:
  Module(Program&, std::string name, Where = Where::current());
  Module(Module& parent, std::string name, Where = Where::current());

  const std::string& name() const;  // with those of its parents: "net.conv"
  // What is trained, its own and that of the modules inside, each once, in the order of
  // declaration.
  Variables parameters() const;
  std::vector<std::pair<std::string, Variable>> named_parameters() const;
  // All its states: parameters, and others such as running statistics.
  Variables states() const;

 protected:
  // Make a state of this module. A buffer is not trained. `group` is as for Program::variable().
  Variable parameter(const std::string& name, const Type&, const Start&, Where = Where::current());
  Variable buffer(const std::string& name, const Type&, const Start&, Where = Where::current(),
                  std::string group = "model");
  // Another module's parameter as one of this: both are trained together ("tied").
  void tie(const Variable&);

 private:
  struct Data;
  std::shared_ptr<Data> data_;
};

}  // namespace hone::nn
