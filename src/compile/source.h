// What is compiled, and the sizes at which it is checked and timed.
#pragma once

#include <string>
#include <vector>

#include "ir/function.h"
#include "plan/plan.h"
#include "ref/evaluate.h"
#include "verify/sample.h"

namespace hone {

// What is compiled: one function for each set of assumptions about sizes.
struct SourceVariant {
  std::vector<Guard> guards;
  Function function;
};
struct Source {
  std::string name;
  std::vector<SourceVariant> variants;
  // Inputs for whole-model checks and timing; made up from the types when empty.
  std::vector<std::vector<Array>> samples;
};

// All that sizes must satisfy: the variant's guards, and the equalities its function recorded.
std::vector<Guard> conditions_of(const SourceVariant&);
// Its function for the sizes that its guards let in.
Function narrowed(const SourceVariant&);
// Of the inputs, by the names of the variant's symbols.
Sizing sizes_of(const SourceVariant&, const std::vector<Array>& inputs);

// Odd and small, so that rows, strides and tails show; else those to time at.
Sizing sizes_to_check(const Source&, const SourceVariant&);
// Others at which kernels take other ways: none, one, a part of a vector or of a tile, just one,
// one and a bit, several. Those that satisfy the variant's conditions.
std::vector<Sizing> sizes_to_check_also(const SourceVariant&);
// Others for the plan as a whole: few of all, then of each symbol alone one more, for what is kept
// from run to run may be told apart by too few of them; and many, for a number of elements that is
// held in few bits. Those that are little work.
std::vector<Sizing> sizes_of_one_symbol(const SourceVariant&);
// Of the sample inputs that the variant serves, else made up. Throws UserError when none are found.
Sizing sizes_to_time(const Source&, const SourceVariant&);
// The sample inputs that the variant serves, else made-up ones of these sizes.
std::vector<Array> inputs_to_time(const Source&, const SourceVariant&, const Sizing&);

}  // namespace hone
