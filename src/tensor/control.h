// Branches and loops whose course depends on data. Their bodies are functions that are recorded
// once; they may use any tensor of the entry, but set no state. while_loop() has no derivative, and
// neither have if_else() and scan() whose bodies call one of the three or with_gradient(), except
// for scan() with .unroll.
#pragma once

#include <functional>
#include <vector>

#include "tensor/tensor.h"

namespace hone {

// The results of one of the two functions, which give tensors of equal types. The condition is a
// bool scalar.
Tensors if_else(const Tensor& condition, const std::function<Tensors()>& yes,
                const std::function<Tensors()>& no, Where = Where::current());

// While condition(x) (a bool scalar) holds, x becomes body(x), of the same types. Returns x.
Tensors while_loop(const Tensors& x, const std::function<Tensor(const Tensors&)>& condition,
                   const std::function<Tensors(const Tensors&)>& body, Where = Where::current());

// What a step of a scan gives: what it carries on, and what is kept of each step.
struct Stepped {
  Tensors carried, kept;
};
struct Scanned {
  Tensors carried;  // after the last step
  Tensors kept;     // of all steps, along a new first axis
};
struct ScanOptions {
  // The steps are written out one after the other: for few steps, of a fixed number. Has a
  // derivative.
  bool unroll = false;
  bool reverse = false;  // from the last index to the first; what is kept lies at its index
};
// Steps over the first axis of `over`: step(carried, slices) for each index in turn.
Scanned scan(const Tensors& carried, const Tensors& over,
             const std::function<Stepped(const Tensors& carried, const Tensors& slices)>& step,
             ScanOptions = {}, Where = Where::current());

}  // namespace hone
