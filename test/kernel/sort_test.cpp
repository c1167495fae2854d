// Sorts of long rows in pieces, interpreted: every element is where the reference puts it.
#include "kernel/nest/sort.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "kernel/nest/nest_candidate.h"
#include "machines.h"
#include "ops/common.h"
#include "ref/evaluate.h"
#include "run.h"

namespace hone::test {

namespace {

const TargetInfo sort_target = with_vectors_of_256_bits();
const Dim open_length = Dim::symbol("n", 0, 1 << 20);

enum Which { keys_of_sort, places_of_sort, both_of_sort };

Function sort_function(const Type& t, int axis, int descending, Which which,
                       const std::optional<Dim>& count = {}) {
  Function f;
  const Value x = f.add_param(t, "x");
  Attrs attrs = {{"axis", axis}, {"descending", descending}};
  if (count) attrs.set("count", Dims{*count});
  const Value sorted = ops::sort(x, attrs);
  if (which != places_of_sort) f.add_result(sorted.result(0), "keys");
  if (which != keys_of_sort) f.add_result(sorted.result(1), "places");
  return f;
}

// Few distinct numbers, so that many are equal; with NaN, infinities and zeros of both signs.
Array with_ties(DType t, std::vector<std::int64_t> dims) {
  std::mt19937 random(5);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double special[] = {std::numeric_limits<double>::quiet_NaN(), infinity, -infinity, 0.0,
                                -0.0};
  Array a = Array::zeros(t, std::move(dims));
  for (std::int64_t i = 0; i < a.count(); ++i) {
    const std::uint32_t x = random();
    if (!is_float(t))
      a.set_integer(i, static_cast<std::int64_t>(x % 50) - 25);
    else if (x % 8 == 0)
      a.set_real(i, special[x / 8 % 5]);
    else
      a.set_real(i, static_cast<double>(x / 8 % 40) - 20.5);
  }
  return a;
}

void expect_sorted(const Function& f, const Array& input, const Tuning& tuning = {}) {
  const std::optional<Candidate> candidate = sort_candidate(spec_of(f), sort_target, tuning);
  ASSERT_TRUE(candidate);
  const Candidate whole = nest_candidate(spec_of(f), sort_target);
  for (const Candidate::Step& step : candidate->steps) {
    const Kernel& k = std::get<Kernel>(step.what);
    check(k);
    const Kernel parsed = parse_kernel(print(k));
    ASSERT_EQ(print(parsed), print(k));
  }
  SCOPED_TRACE(print(std::get<Kernel>(candidate->steps.back().what)));
  const Array inputs[] = {input};
  const std::vector<Array> expected = evaluate(f, inputs),
                           got = interpret_candidate(*candidate, f, inputs, all_checks),
                           in_parts = interpret_candidate(*candidate, f, inputs, {}, 3),
                           by_one = interpret_candidate(whole, f, inputs, all_checks);
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(got[i] == expected[i]) << "result " << i;
    EXPECT_TRUE(in_parts[i] == expected[i]) << "result " << i;
    EXPECT_TRUE(by_one[i] == expected[i]) << "result " << i;
  }
}

TEST(SortInPieces, OfAnyLength) {
  for (std::int64_t n : {0, 1, 2, 3, 5, 63, 64, 65, 127, 129, 1000})
    for (int descending : {0, 1}) {
      SCOPED_TRACE(cat(n, descending ? " descending" : " ascending"));
      const Type t(DType::f32, Shape{open_length});
      expect_sorted(sort_function(t, 0, descending, both_of_sort), with_ties(DType::f32, {n}));
    }
}

TEST(SortInPieces, OfEveryKindOfNumber) {
  for (DType t : {DType::f16, DType::bf16, DType::f64, DType::i8, DType::u8, DType::i64})
    for (int descending : {0, 1})
      expect_sorted(sort_function(Type(t, Shape{open_length}), 0, descending, both_of_sort),
                    with_ties(t, {501}));
}

TEST(SortInPieces, OfOneResultAlone) {
  for (Which which : {keys_of_sort, places_of_sort})
    expect_sorted(sort_function(Type(DType::f32, Shape{open_length}), 0, 1, which),
                  with_ties(DType::f32, {777}));
}

TEST(SortInPieces, OfFewRowsAlongAnyAxis) {
  for (int axis : {0, 1, 2}) {
    Shape shape{2, 3, 2};
    shape.dims[static_cast<std::size_t>(axis)] = open_length;
    std::vector<std::int64_t> dims = {2, 3, 2};
    dims[static_cast<std::size_t>(axis)] = 213;
    expect_sorted(sort_function(Type(DType::f32, shape), axis, 0, both_of_sort),
                  with_ties(DType::f32, dims));
  }
  const Dim rows = Dim::symbol("rows", 0, 100);
  expect_sorted(sort_function(Type(DType::f32, Shape{rows, open_length}), 1, 1, both_of_sort),
                with_ties(DType::f32, {3, 150}));
}

TEST(SortInPieces, OfTheFirstFew) {
  const Dim n = Dim::symbol("n", 700, 1 << 20);
  for (const Dim& count : {Dim(1), Dim(2), Dim(7), Dim(100), Dim(699), n - Dim(3)})
    for (int descending : {0, 1}) {
      SCOPED_TRACE(cat(count, descending ? " descending" : " ascending"));
      for (std::int64_t length : {700, 1025})
        expect_sorted(sort_function(Type(DType::f32, Shape{n}), 0, descending, both_of_sort, count),
                      with_ties(DType::f32, {length}));
    }
  expect_sorted(sort_function(Type(DType::f32, Shape{3, n, 2}), 1, 1, places_of_sort, Dim(5)),
                with_ties(DType::f32, {3, 801, 2}));
  const std::int64_t known = (1 << 15) + 37;
  for (std::int64_t count : {0, 50, 5000})
    expect_sorted(sort_function(f32({known}), 0, 1, both_of_sort, Dim(count)),
                  with_ties(DType::f32, {known}));
}

TEST(SortInPieces, OfKnownLength) {
  const std::int64_t n = (1 << 15) + 37;
  const Function f = sort_function(f32({n}), 0, 0, both_of_sort);
  expect_sorted(f, with_ties(DType::f32, {n}));
  for (std::int64_t pieces : {2, 32})
    expect_sorted(f, with_ties(DType::f32, {n}), {{"pieces", pieces}});
}

TEST(SortInPieces, WithProducersAndConsumers) {
  Function f;
  const Value x = f.add_param(Type(DType::f32, Shape{open_length}), "x");
  const Value sorted = ops::sort(x * -2.0, {{"axis", 0}, {"descending", 0}});
  f.add_result(sorted + 1.0, "y");
  f.add_result(sorted.result(1), "places");
  f.add_result(sorted.result(1), "again");
  expect_sorted(f, with_ties(DType::f32, {300}));
}

TEST(SortInPieces, NotOfShortOrManyRows) {
  auto is_cut = [](const Shape& shape, int axis) {
    const Function f = sort_function(Type(DType::f32, shape), axis, 0, both_of_sort);
    return sort_candidate(spec_of(f), sort_target).has_value();
  };
  EXPECT_TRUE(is_cut({1 << 20}, 0));
  EXPECT_TRUE(is_cut({4, 1 << 20}, 1));
  EXPECT_TRUE(is_cut({1 << 20, 4}, 0));
  EXPECT_FALSE(is_cut({1000}, 0));
  EXPECT_FALSE(is_cut({64, 1 << 20}, 1));
  EXPECT_FALSE(is_cut({4, 4, 1 << 20}, 2));
  EXPECT_FALSE(is_cut({Dim::symbol("n", 0, 1000)}, 0));
  Function other;
  other.add_result(other.add_param(f32({1 << 20}), "x") * 2.0);
  EXPECT_FALSE(sort_candidate(spec_of(other), sort_target));
}

// The cost prediction prefers pieces where they are faster, without measurements.
TEST(SortInPieces, IsPredictedToBeFaster) {
  auto first = [](const Dim& n) {
    const Function f = sort_function(Type(DType::f32, Shape{n}), 0, 0, keys_of_sort);
    return generated_candidates(spec_of(f), sort_target).front().name;
  };
  EXPECT_EQ(first(1 << 22), "sort");
  EXPECT_EQ(first(Dim::symbol("n", 1 << 16, 1 << 24)), "sort");
  EXPECT_EQ(first(open_length), "nest");
}

}  // namespace

}  // namespace hone::test
