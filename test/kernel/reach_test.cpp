// Checks reach() with the interpreter: a chunk writes nothing outside of its reach, and memory
// outside of it does not affect results.
#include "kernel/reach.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "kernel/tiles/contraction.h"
#include "kernel/tiles/convolution.h"
#include "machines.h"
#include "ops/common.h"
#include "run.h"

namespace hone::test {

namespace {

constexpr std::string_view kernel_text = R"(kernel k
p0: f32[100,8] strides [8,1]
p1: f32[40] strides [1]
p2: f32[40] strides [1] written
p3: f32[9] strides [1]
t0: tile f32 2x8
chunks 4
grid loop:0 < 4
  var r0: i64 in 0..99 = i64(5*floor_div(loop:0,2))
  var r1: i64 in 0..99 = i64(7)
  r1 = i64(loop:0)
  for loop:1 < 3
    t0 = f32(0) columns 8
    t0 += p1[reg:0; 0,2; 1] * p0[8*loop:1+8*reg:0; 8] k < 4 columns 6
    if bool(1)
      %0 = load f32 p0[8*reg:1]
      p2[10*loop:0+loop:1] = %0
)";

TEST(Reach, IsReadOffPositions) {
  const Kernel k = parse_kernel(kernel_text);
  const auto text = [&](int param, std::int64_t chunk) {
    const std::optional<Reach> r = reach(k, param, chunk);
    return r ? cat(r->first, "..", r->last) : std::string("unknown");
  };
  // A register that changes has the range of its bounds; a constant one has its value.
  EXPECT_EQ(text(0, 0), "0..792");
  EXPECT_EQ(text(1, 0), "0..5");
  EXPECT_EQ(text(1, 3), "5..10");
  EXPECT_EQ(text(2, 0), "0..2");
  EXPECT_EQ(text(2, 3), "30..32");
  EXPECT_EQ(text(3, 0), "unknown");
  EXPECT_TRUE((Reach{3, 5}).meets({5, 9}));
  EXPECT_FALSE((Reach{3, 5}).meets({6, 9}));
}

TEST(Reach, IsUnknownWhereSizesAreOrGroups) {
  constexpr std::string_view with_size =
      "kernel k\nsize n 1..9\np0: f32[n] strides [1] written\nchunks n\n"
      "grid loop:0 < n\n  p0[loop:0] = f32(1)\n";
  constexpr std::string_view with_group =
      "kernel k\np0: f32[8] strides [1] written\nchunks 2\n"
      "grid loop:0 < 2\n  group loop:1 < 4\n    p0[4*loop:0+loop:1] = f32(1)\n";
  for (const std::string_view text : {with_size, with_group})
    EXPECT_FALSE(reach(parse_kernel(text), 0, 0)) << text;
}

constexpr std::uint8_t mark = 0x7b;

std::vector<std::byte> numbers(std::size_t bytes, std::uint32_t seed) {
  std::vector<std::byte> out(bytes);
  for (std::size_t i = 0; i + 4 <= bytes; i += 4) {
    seed = seed * 1664525 + 1013904223;
    const float x = static_cast<float>(seed >> 8) / 16777216.f - 0.5f;
    std::memcpy(out.data() + i, &x, 4);
  }
  return out;
}

std::int64_t elements_of(const KernelParam& p) {
  std::int64_t n = 1;
  for (const Dim& d : p.dims) n *= d.number();
  return n;
}

// All parameters hold f32.
void expect_reaches_hold(const Kernel& k) {
  SCOPED_TRACE(print(k));
  const Interpreter interpreter(k);
  const auto run = [&](std::vector<std::vector<std::byte>>& memory, std::int64_t chunk) {
    std::vector<std::span<std::byte>> spans(memory.begin(), memory.end());
    interpreter.run(spans, {}, chunk, chunk + 1);
  };
  for (std::int64_t chunk = 0; chunk < k.chunks.number(); ++chunk) {
    std::vector<std::vector<std::byte>> plain, poisoned;
    for (std::size_t p = 0; p < k.params.size(); ++p) {
      ASSERT_EQ(k.params[p].dtype, DType::f32);
      const std::int64_t count = elements_of(k.params[p]);
      std::vector<std::byte> m = numbers(static_cast<std::size_t>(4 * count), 7 + 13 * p);
      if (k.params[p].written) std::ranges::fill(m, std::byte{mark});
      plain.push_back(m);
      const std::optional<Reach> r = reach(k, static_cast<int>(p), chunk);
      ASSERT_TRUE(r);
      const float nan = std::numeric_limits<float>::quiet_NaN();
      for (std::int64_t i = 0; i < count; ++i)
        if (!k.params[p].written && !r->meets({i, i})) std::memcpy(&m[4 * i], &nan, 4);
      poisoned.push_back(std::move(m));
    }
    run(plain, chunk);
    run(poisoned, chunk);
    for (std::size_t p = 0; p < k.params.size(); ++p) {
      if (!k.params[p].written) continue;
      EXPECT_EQ(plain[p], poisoned[p]) << "chunk " << chunk;
      const Reach r = *reach(k, static_cast<int>(p), chunk);
      for (std::int64_t i = 0; i < std::ssize(plain[p]); ++i)
        EXPECT_TRUE(plain[p][static_cast<std::size_t>(i)] == std::byte{mark} ||
                    (r.first <= i / 4 && i / 4 <= r.last))
            << "chunk " << chunk << " writes byte " << i << " of p" << p;
    }
  }
}

void expect_reaches_hold(const std::optional<Candidate>& candidate, bool has_parts) {
  ASSERT_TRUE(candidate);
  for (const Candidate::Step& s : candidate->steps) expect_reaches_hold(std::get<Kernel>(s.what));
  // A chunk reads only a part of a packed operand.
  const Kernel& k = std::get<Kernel>(candidate->steps.back().what);
  const int packed = static_cast<int>(k.params.size()) - 1;
  const std::optional<Reach> r = reach(k, packed, 0);
  ASSERT_TRUE(r);
  EXPECT_EQ(r->last - r->first + 1 < elements_of(k.params.back()), has_parts);
}

TEST(Reach, HoldsForChunksOfContractions) {
  for (const TargetInfo& target : {with_vectors_of_256_bits(), with_vectors_of_512_bits()})
    for (const bool is_transposed : {false, true})
      for (const std::int64_t k_part : {16, 1000}) {
        Function f;
        const Value x = f.add_param(f32({21, 30}), "x"),
                    w = f.add_param(is_transposed ? f32({400, 30}) : f32({30, 400}), "w");
        f.add_result(ops::relu(ops::matmul(x, is_transposed ? transpose_matrix(w) : w)));
        GroupSpec spec = spec_of(f);
        spec.param_is_weight[1] = true;
        const Tuning t = {{"pack_b", 1}, {"chunk_columns", 100}, {"k_part", k_part}};
        expect_reaches_hold(contraction_candidate(spec, target, t), true);
      }
}

TEST(Reach, HoldsForChunksOfConvolutions) {
  for (const std::int64_t groups : {1, 3}) {
    Function f;
    const Value x = f.add_param(f32({2, 5, 6, 6}), "x"),
                w = f.add_param(f32({3, 3, 6 / groups, 48}), "w");
    f.add_result(ops::conv(Values{x, w}, {{"strides", Dims{1, 1}},
                                          {"dilations", Dims{1, 1}},
                                          {"groups", groups},
                                          {"pads_low", Dims{1, 1}},
                                          {"pads_high", Dims{1, 1}},
                                          {"channels_last", 1}}));
    GroupSpec spec = spec_of(f);
    spec.param_is_weight[1] = true;
    expect_reaches_hold(convolution_candidate(spec, with_vectors_of_256_bits(), {}), false);
  }
}

}  // namespace

}  // namespace hone::test
