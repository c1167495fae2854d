// Changes to kernels, of which planted faults consist.
#pragma once

#include <functional>
#include <unordered_map>

#include "kernel/kernel.h"
#include "ops/ops.h"

namespace hone::test {

using Break = std::function<bool(Kernel&)>;

// Visits every statement until f returns true.
bool any_statement(Block&, const std::function<bool(Stmt&)>& f);
bool any_statement(Kernel&, const std::function<bool(Stmt&)>& f);

// The replacement of a value whose operands were replaced; an empty one keeps it.
using ReplaceValue = std::function<Value(Graph& to, Value old, const Values& operands)>;
// Rebuilds all expressions in a graph of their own. False if nothing was replaced.
bool rebuild(Kernel&, const ReplaceValue&);
// Replaces the values of this operation.
Break replacing(const Op&, const ReplaceValue&);

inline Value number(Value like, double x) { return scalar(like.graph(), x, like.dtype()); }
inline Value made(const Op& op, const Values& v) { return v[0].graph().intern(op, v, {}); }
inline bool is_real(Value v) { return is_float(v.dtype()); }

}  // namespace hone::test
