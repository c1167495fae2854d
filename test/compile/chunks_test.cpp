// Which chunks of a candidate's kernels a check runs.
#include "verify/kernel/chunks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <variant>

#include "kernel/forms/forms.h"
#include "ops/common.h"
#include "test/kernel/machines.h"

namespace hone {
namespace {

std::vector<std::int64_t> run_by(Chunks& pool, std::int64_t chunks) {
  std::vector<std::int64_t> out;
  pool.run(
      chunks,
      [](void* context, std::int64_t begin, std::int64_t end, int) {
        for (; begin < end; ++begin)
          static_cast<std::vector<std::int64_t>*>(context)->push_back(begin);
      },
      &out);
  return out;
}

Candidate product(const Dim& m, std::int64_t n, bool has_weight) {
  Function f;
  const Value x = f.add_param({DType::f32, {m, 300}}, "x"),
              w = f.add_param({DType::f32, {300, n}}, "w");
  f.add_result(ops::matmul(x, w));
  GroupSpec spec;
  for (const Type& t : f.param_types()) spec.param_strides.push_back(dense_strides(t.shape));
  spec.result_strides = {dense_strides(f.result(0).shape())};
  spec.param_is_weight = {false, has_weight};
  spec.function = std::move(f);
  return generated_candidates(spec, with_vectors_of_256_bits()).at(0);
}

TEST(Chunks, OrderAndChoice) {
  using List = std::vector<std::int64_t>;
  Chunks pool(4);
  EXPECT_EQ(run_by(pool, 3), (List{0, 1, 2}));
  EXPECT_TRUE(pool.were_several());
  pool.set(Chunks::Which::some, Chunks::Order::forwards);
  EXPECT_EQ(run_by(pool, 12), (List{0, 2, 6, 10, 11}));
  pool.set(Chunks::Which::some, Chunks::Order::backwards);
  EXPECT_EQ(run_by(pool, 12), (List{11, 10, 6, 2, 0}));
  // A thread may compute several neighbors that are not the first ones.
  pool.set(Chunks::Which::all, Chunks::Order::backwards);
  EXPECT_EQ(run_by(pool, 7), (List{6, 4, 5, 1, 2, 3, 0}));
}

// Of a wide weight, only the panels that the checked chunks of the product read are packed,
// including the first and the last.
TEST(Chunks, PackWhatSomeChunksRead) {
  const Candidate c = product(64, 40'001, true);
  ASSERT_EQ(c.steps.size(), 2u);
  const auto &pack = std::get<Kernel>(c.steps[0].what), &reader = std::get<Kernel>(c.steps[1].what);
  Chunks pool(64);
  ASSERT_TRUE(pool.pack_for_some(c));
  const std::vector<std::int64_t> packed = run_by(pool, pack.chunks.number());
  EXPECT_EQ(packed.front(), 0);
  EXPECT_EQ(packed.back(), pack.chunks.number() - 1);
  EXPECT_LT(std::ssize(packed), pack.chunks.number() / 4);
  pool.set(Chunks::Which::all, Chunks::Order::forwards);
  EXPECT_EQ(std::ssize(run_by(pool, pack.chunks.number())), pack.chunks.number());
  EXPECT_GT(reader.chunks.number(), 4);
}

TEST(Chunks, PackAllWhereThatIsNotKnown) {
  Chunks pool(64);
  EXPECT_FALSE(pool.pack_for_some(product(64, 40'001, false)));  // packed on each run
  EXPECT_FALSE(pool.pack_for_some(product(Dim::symbol("m", 1, 100), 40'001, true)));
  Candidate two = product(64, 40'001, true);
  two.steps.push_back(two.steps.back());
  EXPECT_FALSE(pool.pack_for_some(two));
}

}  // namespace
}  // namespace hone
