// Cases that the tests of all loop-nest code generators share.
#pragma once

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "../ops/harness.h"
#include "kernel/nest/lower.h"
#include "ops/common.h"
#include "pass/codes.h"

namespace hone::test {

// Control flow is executed by the plan, not by kernels.
inline bool holds_control(const Function& f) {
  Function core = expand_for_kernels(f);
  for (NodeId n : live_nodes(core))
    if (core.graph().op(n).kind == OpKind::control) return true;
  return false;
}

// Cases as they reach kernels: only parameters and results have small dtypes.
inline std::vector<harness::Case> as_codes(std::vector<harness::Case> cases) {
  for (harness::Case& c : cases) c.function = small_dtypes_as_codes(c.function);
  return cases;
}

// One operation for each kind of lowering; all others treat layouts the same way.
inline const Op* const kinds[] = {
    &ops::add,        &ops::select,     &ops::cast,       &ops::reshape,       &ops::pad,
    &ops::transpose,  &ops::concat,     &ops::slice,      &ops::gather,        &ops::dynamic_slice,
    &ops::scatter,    &ops::reduce_sum, &ops::argmax,     &ops::reduce_window, &ops::sort,
    &ops::cumulative, &ops::softmax,    &ops::layer_norm, &ops::dot,           &ops::conv};

inline Array random_array(const Type& t, std::uint64_t seed, double low = -2, double high = 2) {
  std::mt19937_64 random(seed);
  return harness::filled(t, [&](DType d) { return harness::random_number(d, low, high, random); });
}

struct LargeForm {
  std::string name;
  std::vector<Type> params;
  std::function<Value(std::span<const Value>)> build;
  bool is_chunked = true;
};

inline std::vector<LargeForm> large_forms() {
  Dim n = Dim::symbol("n", 0, 1 << 20), m = Dim::symbol("m", 1, 4096);
  auto square = [](std::span<const Value> x) { return x[0] * x[0] + 1.0; };
  auto softmax = [](std::span<const Value> x) { return ops::softmax(x[0], {{"axis", 1}}); };
  auto sum = [](int axis) {
    return [axis](std::span<const Value> x) { return reduce_axes(ops::reduce_sum, x[0], {axis}); };
  };
  auto add_column = [](std::span<const Value> x) {
    return x[0] + broadcast_to(x[1], x[0].shape());
  };
  auto swap = [](std::span<const Value> x) { return transpose_matrix(x[0]); };
  return {
      {"elementwise", {f32({301, 257})}, square},
      {"elementwise f16", {f16({301, 257})}, square},
      {"elementwise i8",
       {Type(DType::i8, {1001, 1003})},
       [](std::span<const Value> x) { return x[0] + x[0]; }},
      {"symbolic", {f32({n, 65})}, square},
      {"broadcast row", {f32({300, 129}), f32({129})}, add_column},
      {"broadcast column", {f32({300, 129}), f32({300, 1})}, add_column},
      {"broadcast short row", {f32({20000, 3}), f32({3})}, add_column},
      {"symbolic broadcast", {f32({n, m}), f32({m})}, add_column},
      {"transpose", {f32({311, 205})}, swap},
      {"permute",
       {f32({7, 40, 33, 17})},
       [](std::span<const Value> x) { return transpose_by(x[0], Axes{0, 2, 3, 1}); }},
      {"rows", {f32({211, 333})}, softmax},
      {"rows f16", {f16({211, 333})}, softmax},
      {"symbolic rows", {f32({n, m})}, softmax},
      {"columns", {f32({65, 700})}, sum(0)},
      {"row sums", {f32({700, 165})}, sum(1)},
      {"middle sums", {f32({40, 50, 60})}, sum(1)},
      {"softmax over channels", {f32({8, 21, 500})}, softmax},
      {"softmax over rows",
       {f32({64, 96})},
       [](std::span<const Value> x) { return ops::softmax(x[0], {{"axis", 0}}); },
       false},
      {"one long sum", {f32({1, 100003})}, sum(1), false},
      {"norm",
       {f32({150, 384}), f32({384}), f32({384})},
       [](std::span<const Value> x) {
         return ops::layer_norm(Values{x[0], x[1], x[2]}, {{"axis", 1}, {"epsilon", 1e-5}});
       }},
      {"pool",
       {f32({2, 16, 57, 43})},
       [](std::span<const Value> x) {
         return max_pool(x[0], {{3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, false});
       }},
      {"pool channels last",
       {f32({2, 57, 43, 16})},
       [](std::span<const Value> x) {
         return max_pool(x[0], {{3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, true});
       }},
      {"concat",
       {f32({50, 300}), f32({50, 211})},
       [](std::span<const Value> x) { return concat_values(x, 1); }},
      {"gather",
       {f32({100, 70}), i64({500})},
       [](std::span<const Value> x) { return ops::gather(Values{x[0], x[1]}, {{"axis", 0}}); }},
      {"dot",
       {f32({50, 70}), f32({70, 90})},
       [](std::span<const Value> x) { return ops::matmul(x[0], x[1]); }},
      {"sort",
       {f32({20, 1000})},
       [](std::span<const Value> x) { return ops::sort(x[0], {{"axis", 1}, {"descending", 1}}); }},
  };
}

// A type with its symbols replaced by sizes that are not multiples of a vector.
inline Type sized(Type t) {
  for (Dim& d : t.shape.dims)
    d = d.substitute([](const Dim& s) { return std::optional<Dim>(s.name() == "n" ? 203 : 117); });
  return t;
}

// Functions whose loops are long enough for vectors, chunks and blocks, with tails of each.
struct Large {
  std::string name;
  Function function;
  std::vector<Array> inputs;
  bool is_chunked = true;
};

inline std::vector<Large> large_functions() {
  std::vector<Large> out;
  for (const LargeForm& form : large_forms()) {
    Large l{form.name, {}, {}, form.is_chunked};
    Values params;
    for (const Type& t : form.params) {
      params.push_back(l.function.add_param(t, cat("x", l.inputs.size())));
      l.inputs.push_back(random_array(sized(t), l.inputs.size() + 1, -50, 50));
    }
    l.function.add_result(form.build(params), "y");
    out.push_back(std::move(l));
  }
  return out;
}

}  // namespace hone::test
