// Kernels of groups that update a part of their result in place.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "kernel/nest/nest_candidate.h"
#include "kernel/walk.h"
#include "machines.h"
#include "ops/common.h"
#include "test/kernel/steps.h"

namespace hone {
namespace {

using test::spec_of;

struct Moved {
  std::int64_t loads = 0, stores = 0;
};

using Now = std::map<std::string, std::int64_t>;

bool has_extent_with(const Block& block, const Dim& variable) {
  return std::ranges::any_of(block, [&](const Stmt& s) {
    return mentions(s.extent, variable) || has_extent_with(s.body, variable);
  });
}

// Counts loaded and stored elements; all sizes must be numbers.
void count(const Block& block, std::int64_t times, Now& now, Moved& out) {
  for (const Stmt& s : block) {
    if (s.kind == Stmt::Kind::store) out.stores += times;
    const std::vector<Value> values = values_of(s);
    for (NodeId n : values.empty() ? std::vector<NodeId>() : nodes_below(values))
      if (&values[0].graph().op(n) == &ops::load) out.loads += times;
    if (s.kind != Stmt::Kind::loop) {
      count(s.body, times, now, out);
      continue;
    }
    const std::int64_t n =
        s.extent.eval([&](std::string_view name) { return now.at(std::string(name)); });
    const Dim variable = loop_symbol(s.var, s.extent);
    if (!has_extent_with(s.body, variable)) {
      count(s.body, times * n, now, out);
      continue;
    }
    for (std::int64_t i = 0; i < n; ++i) {
      now[variable.name()] = i;
      count(s.body, times, now, out);
    }
  }
}

Moved moved_by(const Candidate& c) {
  Moved out;
  for (const Candidate::Step& s : c.steps) {
    Now now;
    count(std::get<Kernel>(s.what).body, 1, now, out);
  }
  return out;
}

constexpr std::int64_t rows = 2048, width = 512;  // 4 MiB, of which 2 KiB change

TEST(UpdateKernels, WriteTheirWindowAlone) {
  Function f;
  Value cache = f.add_param(f32({rows, width}), "cache"),
        next = f.add_param(f32({1, width}), "next"), at = f.add_param(i64({2}), "at");
  f.add_result(ops::dynamic_update(Values{cache, next, at}));
  GroupSpec spec = spec_of(f);
  const TargetInfo target = with_vectors_of_256_bits();
  EXPECT_EQ(moved_by(nest_candidate(spec, target)).stores, rows * width);
  spec.updates = {{0, 0}};
  const Candidate c = nest_candidate(spec, target);
  const Moved moved = moved_by(c);
  EXPECT_EQ(moved.stores, width);
  EXPECT_EQ(moved.loads, width + 2);
  // The old value is still an operand, so that plans show the dependence.
  ASSERT_EQ(c.steps.size(), 1u);
  EXPECT_EQ(c.steps[0].operands.size(), 4u);
}

TEST(UpdateKernels, ScatterCopiesNothing) {
  for (const char* kind : {"set", "add"}) {
    Function f;
    Value table = f.add_param(f32({rows, width}), "table"), at = f.add_param(i64({3}), "at"),
          change = f.add_param(f32({3, width}), "change");
    f.add_result(
        ops::scatter(Values{table, at, change}, {{"axis", 0}, {"kind", std::string(kind)}}));
    GroupSpec spec = spec_of(f);
    const TargetInfo target = with_vectors_of_256_bits();
    EXPECT_EQ(moved_by(nest_candidate(spec, target)).stores, rows * width + 3 * width);
    spec.updates = {{0, 0}};
    EXPECT_EQ(moved_by(nest_candidate(spec, target)).stores, 3 * width) << kind;
  }
}

}  // namespace
}  // namespace hone
