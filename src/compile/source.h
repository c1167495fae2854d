// The input of a compilation, and the sizes at which it is checked and timed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/function.h"
#include "plan/plan.h"
#include "ref/evaluate.h"
#include "verify/sample.h"

namespace hone {

// A function for one set of assumptions about sizes.
struct SourceVariant {
  std::vector<Guard> guards;
  Function function;
  std::optional<Sizing> sizes = {};  // some that satisfy all conditions, if known
};
struct Source {
  std::string name;
  std::vector<SourceVariant> variants;
  // Inputs for whole-model checks and timing; made up from the types when empty.
  std::vector<std::vector<Array>> samples;
};

// All conditions on sizes: the variant's guards, and the equalities that its function recorded.
std::vector<Guard> conditions_of(const SourceVariant&);
// Its function, narrowed to the sizes that its guards allow.
Function narrowed(const SourceVariant&);
// Sizes of the inputs, by the names of the variant's symbols.
Sizing sizes_of(const SourceVariant&, const std::vector<Array>& inputs);

// Whether the variant's guards hold for the sizes of one of the samples.
bool serves_sample(const Source&, const SourceVariant&);

// Odd and small, so that errors in rows, strides and tails show; if there are none,
// sizes_to_time().
Sizing sizes_to_check(const Source&, const SourceVariant&);
// Further sizes at which kernels take other paths: none, one element, part of a vector or tile,
// exactly one, slightly more than one, several, the upper bounds, and many blocks of one symbol.
// Only those that satisfy the variant's conditions.
std::vector<Sizing> sizes_to_check_also(const SourceVariant&);
// Further sizes for the plan as a whole: all symbols small, then each symbol alone larger by one,
// because a cache key may miss a symbol; and large sizes, because an element count may be held in
// too few bits. Only those that need little work.
std::vector<Sizing> sizes_of_one_symbol(const SourceVariant&);
// Sizes of the sample inputs that the variant serves, else made up. Throws UserError when none are
// found.
Sizing sizes_to_time(const Source&, const SourceVariant&);
// The sample inputs that the variant serves, else made-up ones of these sizes.
std::vector<Array> inputs_to_time(const Source&, const SourceVariant&, const Sizing&);

}  // namespace hone
