// Branches of an If that data decides: closed Functions whose results are given one type. What
// reads them is the walk.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/function.h"

namespace hone::onnx {

// A value asked for by name, and a bool[] that says whether this run computed it; invalid: always.
struct Dumped {
  Value value, computed;
};

// One branch of a data-driven If as a closed Function of what it captures.
struct Branch {
  Function function;
  std::vector<Function::Result> outputs = {};  // tensors, sequences and optionals
  Values captures = {};
  std::string refused = {};  // why it cannot be typed; then the others are empty
  bool failed = false;       // something in it is not supported
  std::map<std::string, Dumped> dumped = {};
};

// How the results of an If, which are tensors, represent one of its outputs.
struct OutputForm {
  enum class Kind : std::uint8_t { tensor, sequence, optional, maybe, stack };
  Kind kind = Kind::tensor;
  std::size_t count = 1;  // of results: elements of a sequence or optional
};
// Adds the outputs of both to their functions as results in one form. Sequences of different
// lengths become stacks, so their elements must have one type. An optional that one of them leaves
// empty becomes a tensor, zeros where there is none, and a bool. A refused branch is given the
// other's results later.
std::vector<OutputForm> add_outputs(Branch& a, Branch& b);
// Rebuilds the outputs from the results of the If, which come first among these values.
Values outputs_of(hone::Graph&, const std::vector<OutputForm>&, const Values&);

// Adds the value and whether it was computed to both branches' results; the one that lacks it gives
// zeros. A refused branch is given the other's results later.
void add_dumped(const std::string& name, Branch& a, Branch& b);
// A branch that no run with these sizes may take: it has the other one's types and a reason.
void refuse_like(Branch&, const Function& other);

// The sizes of a result of an If. Where the branches have other sizes, both give it in the front of
// zeros, and its sizes as a further result.
struct ChosenSizes {
  Dims dims;                 // with room for both
  std::vector<bool> open;    // by axis: the run finds how much of the room is used
  bool is_unproven = false;  // whether some sizes are equal depends on those of the inputs
  bool is_open() const;
};
// Of each result. Sizes that may be equal and may differ are either open or taken to be equal, and
// a run in which they differ is refused.
std::vector<ChosenSizes> chosen_sizes(const Function& yes, const Function& no, bool may_differ);
// The branch over the parameters `all`, its results in the given sizes, behind them the sizes of
// those that are open. Where it is not proved that it has the others, the branch checks it when it
// is taken.
FunctionRef closed_branch(const Branch&, const Values& all, const std::vector<ChosenSizes>&);

}  // namespace hone::onnx
