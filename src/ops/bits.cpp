// Elementwise logic and shifts; logical operations on bool.
#include "ops/check.h"
#include "ops/contents.h"
#include "ops/eval.h"
#include "ops/samples.h"

namespace hone {

namespace {

std::vector<Type> infer_bits(const Call& c) { return infer_equal(c, 2, Accept::bits); }
std::vector<Type> infer_integers(const Call& c) { return infer_equal(c, 2, Accept::integer); }

template <class F>
std::vector<Wide> map_bits(const Evaluation& e, F f) {
  return map_two(e, [](double a, double) { return a; }, f);
}

Samples logic_samples() {
  return joined({{{b1({2, 3}), b1({2, 3})}}, {{b1({}), b1({})}}, {{b1({0}), b1({0})}}},
                samples_of(sample_integer_types(), 2));
}
Samples shift_samples() { return samples_of(sample_integer_types(), 2); }

int bits_of(const Evaluation& e) { return 8 * byte_size(e.inputs[0]->dtype); }

// Contents rules apply to bool only: sizes have no bits.
std::optional<Dims> logic(const Call& c, const Type& t, DimRule rule) {
  return t.dtype == DType::b1 ? contents_each(c, t, rule) : contents_by_value(c, t);
}

}  // namespace

constinit const Op ops::bit_not = {
    .name = "bit_not",
    .doc = "Every bit inverted; on bool: not.",
    .kind = OpKind::elementwise,
    .infer = [](const Call& c) { return infer_equal(c, 1, Accept::bits); },
    .eval =
        [](const Evaluation& e) {
          bool logical = e.inputs[0]->dtype == DType::b1;
          return map_one(
              e, [](double x) { return x; },
              [=](std::int64_t n) -> std::int64_t { return logical ? n == 0 : ~n; });
        },
    .contents =
        [](const Call& c, const Type& t) {
          return logic(c, t,
                       [](std::span<const Dim> x) -> std::optional<Dim> { return Dim(1) - x[0]; });
        },
    .ulps = 0,
    .samples = [] { return joined({{{b1({2, 3})}}, {{b1({})}}}, integer_unary_samples()); },
};

constinit const Op ops::bit_and = {
    .name = "bit_and",
    .doc = "Bit by bit; on bool: and.",
    .kind = OpKind::elementwise,
    .infer = infer_bits,
    .eval =
        [](const Evaluation& e) {
          return map_bits(e, [](std::int64_t a, std::int64_t b) { return a & b; });
        },
    .contents =
        [](const Call& c, const Type& t) {
          return logic(
              c, t, [](std::span<const Dim> x) -> std::optional<Dim> { return min(x[0], x[1]); });
        },
    .commutative = true,
    .ulps = 0,
    .samples = logic_samples,
};

constinit const Op ops::bit_or = {
    .name = "bit_or",
    .doc = "Bit by bit; on bool: or.",
    .kind = OpKind::elementwise,
    .infer = infer_bits,
    .eval =
        [](const Evaluation& e) {
          return map_bits(e, [](std::int64_t a, std::int64_t b) { return a | b; });
        },
    .contents =
        [](const Call& c, const Type& t) {
          return logic(
              c, t, [](std::span<const Dim> x) -> std::optional<Dim> { return max(x[0], x[1]); });
        },
    .commutative = true,
    .ulps = 0,
    .samples = logic_samples,
};

constinit const Op ops::bit_xor = {
    .name = "bit_xor",
    .doc = "Bit by bit; on bool: exactly one of the two.",
    .kind = OpKind::elementwise,
    .infer = infer_bits,
    .eval =
        [](const Evaluation& e) {
          return map_bits(e, [](std::int64_t a, std::int64_t b) { return a ^ b; });
        },
    .contents =
        [](const Call& c, const Type& t) {
          return logic(c, t, [](std::span<const Dim> x) -> std::optional<Dim> {
            return Dim(1) - equal(x[0], x[1]);
          });
        },
    .commutative = true,
    .ulps = 0,
    .samples = logic_samples,
};

constinit const Op ops::shift_left = {
    .name = "shift_left",
    .doc = "x * 2^y, low bits 0. y counts as unsigned; from the width of the dtype on it gives 0.",
    .kind = OpKind::elementwise,
    .infer = infer_integers,
    .eval =
        [](const Evaluation& e) {
          auto bits = static_cast<std::uint64_t>(bits_of(e));
          return map_bits(e, [=](std::int64_t a, std::int64_t b) -> std::int64_t {
            auto n = static_cast<std::uint64_t>(b);
            return n >= bits ? 0 : static_cast<std::int64_t>(static_cast<std::uint64_t>(a) << n);
          });
        },
    .contents = contents_by_value,
    .ulps = 0,
    .samples = shift_samples,
    .low = 0,
    .high = 10,
};

constinit const Op ops::shift_right = {
    .name = "shift_right",
    .doc =
        "Signed x keep their sign, unsigned are filled with 0. y counts as unsigned; from the "
        "width of the dtype on nothing but the filling is left.",
    .kind = OpKind::elementwise,
    .infer = infer_integers,
    .eval =
        [](const Evaluation& e) {
          auto bits = static_cast<std::uint64_t>(bits_of(e));
          bool is_u64 = e.inputs[0]->dtype == DType::u64;
          return map_bits(e, [=](std::int64_t a, std::int64_t b) -> std::int64_t {
            auto n = static_cast<std::uint64_t>(b);
            if (is_u64)
              return n >= bits ? 0 : static_cast<std::int64_t>(static_cast<std::uint64_t>(a) >> n);
            return n >= bits ? (a < 0 ? -1 : 0) : a >> n;
          });
        },
    .contents = contents_by_value,
    .ulps = 0,
    .samples = shift_samples,
    .low = -4,
    .high = 10,
};

}  // namespace hone
