// A group computed in several parts, each with the best known way for that part, with dense
// temporaries between them. Not a way to compute any one part.
#pragma once

#include <functional>
#include <optional>

#include "kernel/kernel.h"

namespace hone {

// Splits a group around an attention into scores, softmax and weighted values, each computed by
// `best`; nullopt for other groups.
std::optional<Candidate> attention_in_parts(
    const GroupSpec&, const std::function<Candidate(const GroupSpec& part)>& best);

// Splits a group around a product whose left operand is one row, made from other values by a
// function that reduces, into that row and the rest; nullopt for other groups.
std::optional<Candidate> row_in_parts(const GroupSpec&,
                                      const std::function<Candidate(const GroupSpec& part)>& best);

}  // namespace hone
