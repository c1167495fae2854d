// Branches of a data-dependent If: closed Functions whose results get a common type. The walk
// (walk.h) reads them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/function.h"

namespace hone::onnx {

// A requested value, and a bool[] that says whether this run computed it (invalid: always).
struct Dumped {
  Value value, computed;
};

// One branch of a data-dependent If as a closed Function over its captures.
struct Branch {
  Function function;
  std::vector<Function::Result> outputs = {};  // tensors, sequences and optionals
  Values captures = {};
  std::string refused = {};  // why it cannot be typed; then the other fields are empty
  bool failed = false;       // something in it is not supported
  std::map<std::string, Dumped> dumped = {};
};

// How the tensor results of an If represent one of its outputs.
struct OutputForm {
  enum class Kind : std::uint8_t { tensor, sequence, optional, maybe, stack };
  Kind kind = Kind::tensor;
  std::size_t count = 1;  // number of results: elements of a sequence or optional
};
// Adds the outputs of both to their functions as results in one form. Sequences of different
// lengths become stacks, so their elements must have one type. An optional that is empty in one
// branch becomes a tensor (zeros when empty) and a bool. A refused branch gets the other's results
// later.
std::vector<OutputForm> add_outputs(Branch& a, Branch& b);
// Rebuilds the outputs from the results of the If, which are the first of these values.
Values outputs_of(hone::Graph&, const std::vector<OutputForm>&, const Values&);

// Adds the value and whether it was computed to both branches' results; the branch without it
// returns zeros. A refused branch gets the other's results later.
void add_dumped(const std::string& name, Branch& a, Branch& b);
// A branch that is never taken with these sizes: gets the other branch's types and a reason.
void refuse_like(Branch&, const Function& other);

// The sizes of a result of an If. Where the branches' sizes differ, both return the result at the
// front of a zero-filled tensor, and its sizes as a further result.
struct ChosenSizes {
  Dims dims;                 // large enough for both
  std::vector<bool> open;    // by axis: how much is used is known only at run time
  bool is_unproven = false;  // whether some sizes are equal depends on the sizes of the inputs
  bool is_open() const;
};
// For each result. Sizes that may be equal and may differ are either open or assumed equal; a run
// in which they differ is then rejected.
std::vector<ChosenSizes> chosen_sizes(const Function& yes, const Function& no, bool may_differ);
// The branch over the parameters `all`, with its results in the given sizes, followed by the sizes
// of the open ones. Sizes that are not proved are checked when the branch is taken.
FunctionRef closed_branch(const Branch&, const Values& all, const std::vector<ChosenSizes>&);

}  // namespace hone::onnx
