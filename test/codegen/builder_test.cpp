// The builder from IR to numbers: control flow, tails, gathers, integer rules, reductions.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "jit.h"

namespace hone::llvm {

namespace {

class EachTarget : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Builder, EachTarget, testing::ValuesIn(targets()));

// Runs out[i] = f(a[i], b[i]) over the pairs.
template <class T, class Out = T>
std::vector<Out> map2(const std::string& target, DType in, DType out, const std::vector<T>& a,
                      const std::vector<T>& b, int lanes,
                      const std::function<Value(Value, Value)>& f) {
  LoadedBinary code = jit_kernel(target, 3, [&](Module& m, const KernelArguments& k) {
    m.loop(m.index(0), k.size(0), lanes, [&](Value i) {
      Value mask = m.tail_mask(k.size(0) - i, lanes);
      Value x = load_masked(in, offset(k.buffers[0], in, i), mask);
      Value y = load_masked(in, offset(k.buffers[1], in, i), mask);
      store_masked(out, offset(k.buffers[2], out, i), f(x, y), mask);
    });
  });
  std::vector<T> x = a, y = b;
  std::vector<Out> z(a.size());
  run(code, {x.data(), y.data(), z.data()}, static_cast<std::int64_t>(a.size()));
  return z;
}

template <class T>
struct Pairs {
  std::vector<T> a, b;
};
template <class T>
Pairs<T> pairs(const std::vector<T>& values) {
  Pairs<T> out;
  for (T x : values)
    for (T y : values) {
      out.a.push_back(x);
      out.b.push_back(y);
    }
  return out;
}

}  // namespace

TEST_P(EachTarget, TailsTouchNothingBeyondTheEnd) {
  LoadedBinary code =
      jit_map(GetParam(), DType::f32, DType::f32, [](Value x) { return x * 2.0 + 1.0; });
  for (std::int64_t n = 0; n <= 49; ++n) {
    std::vector<float> in(static_cast<std::size_t>(n)), out(static_cast<std::size_t>(n) + 16, -7);
    std::iota(in.begin(), in.end(), 1.0f);
    run(code, {in.data(), out.data()}, n);
    for (std::size_t i = 0; i < out.size(); ++i)
      ASSERT_EQ(out[i], i < in.size() ? 2 * in[i] + 1 : -7) << "n " << n << " i " << i;
  }
}

TEST_P(EachTarget, ChunksAreTheCallersRange) {
  LoadedBinary code = jit_kernel(GetParam(), 1, [](Module& m, const KernelArguments& k) {
    m.loop(k.begin, k.end, 1,
           [&](Value i) { store(DType::i64, offset(k.buffers[0], DType::i64, i), i * 10); });
  });
  std::vector<std::int64_t> out(8, -1);
  run(code, {out.data()}, 0, 2, 5);
  EXPECT_EQ(out, (std::vector<std::int64_t>{-1, -1, 20, 30, 40, -1, -1, -1}));
}

TEST_P(EachTarget, LoopCarriesValues) {
  LoadedBinary code = jit_kernel(GetParam(), 1, [](Module& m, const KernelArguments& k) {
    Values sums = m.loop(m.index(0), k.size(0), 1, {m.index(0), m.index(1)},
                         [](Value i, const Values& now) { return Values{now[0] + i, now[1] * 3}; });
    store(DType::i64, k.buffers[0], sums[0]);
    store(DType::i64, offset(k.buffers[0], DType::i64, 1), sums[1]);
  });
  std::int64_t out[2];
  run(code, {out}, 5);
  EXPECT_EQ(out[0], 10);
  EXPECT_EQ(out[1], 243);
  run(code, {out}, 0);
  EXPECT_EQ(out[0], 0);
  EXPECT_EQ(out[1], 1);
}

TEST_P(EachTarget, WhileAndIf) {
  LoadedBinary code = jit_kernel(GetParam(), 1, [](Module& m, const KernelArguments& k) {
    // Steps of the Collatz sequence.
    Values end = m.while_(
        {k.size(0), m.index(0)}, [](const Values& v) { return not_equal(v[0], 1); },
        [&](const Values& v) {
          Values next = m.if_values(
              equal(v[0] & 1, 0), [&] { return Values{v[0] >> 1}; },
              [&] { return Values{v[0] * 3 + 1}; });
          return Values{next[0], v[1] + 1};
        });
    m.if_(
        greater(end[1], 100), [&] { store(DType::i64, k.buffers[0], end[1]); },
        [&] { store(DType::i64, k.buffers[0], -end[1]); });
  });
  std::int64_t out;
  run(code, {&out}, 27);
  EXPECT_EQ(out, 111);
  run(code, {&out}, 6);
  EXPECT_EQ(out, -8);
}

TEST_P(EachTarget, GatherAndScatter) {
  for (DType d :
       {DType::f32, DType::f64, DType::i64, DType::i8, DType::f16, DType::bf16, DType::b1}) {
    LoadedBinary code = jit_kernel(GetParam(), 3, [&](Module& m, const KernelArguments& k) {
      Value at = load(DType::i32, k.buffers[1], 16);
      Value v = gather(d, k.buffers[0], at);
      scatter_masked(d, k.buffers[2], m.iota({DType::i32, 16}) * 2, v,
                     less(m.iota({DType::i32, 16}), 15));
    });
    std::vector<std::byte> in(32 * 8), out(32 * 8, std::byte{0x55});
    const std::size_t size = static_cast<std::size_t>(byte_size(d));
    // f16 and bf16 count up in bits; b1 holds bits.
    for (std::size_t i = 0; i < 32; ++i)
      in[i * size] = static_cast<std::byte>(d == DType::b1 ? i % 3 == 0 : i);
    std::vector<std::int32_t> at(16);
    for (int i = 0; i < 16; ++i) at[static_cast<std::size_t>(i)] = (i * 7) % 32;
    run(code, {in.data(), at.data(), out.data()}, 0);
    for (std::size_t i = 0; i < 15; ++i)
      EXPECT_EQ(std::memcmp(&out[2 * i * size], &in[static_cast<std::size_t>(at[i]) * size], size),
                0)
          << d << " " << i;
    EXPECT_EQ(out[size], std::byte{0x55}) << d;
    EXPECT_EQ(out[30 * size], std::byte{0x55}) << d;
  }
}

template <class T>
void check_division(const std::string& target, DType d, int lanes) {
  using Limits = std::numeric_limits<T>;
  auto [a, b] = pairs<T>({T(0), T(1), T(-1), T(2), T(7), T(-7), T(100), T(3), Limits::min(),
                          Limits::max(), T(Limits::min() + 1), T(Limits::max() / 2)});
  auto q = map2<T>(target, d, d, a, b, lanes, [](Value x, Value y) { return x / y; });
  auto r = map2<T>(target, d, d, a, b, lanes, [](Value x, Value y) { return x % y; });
  for (std::size_t i = 0; i < a.size(); ++i) {
    T n = a[i], m = b[i], quotient, rest;
    if (m == 0) {
      quotient = static_cast<T>(~T(0));
      rest = n;
    } else if (std::is_signed_v<T> && m == T(-1)) {
      quotient = static_cast<T>(0 - static_cast<std::uint64_t>(n));
      rest = 0;
    } else {
      quotient = static_cast<T>(n / m);
      rest = static_cast<T>(n % m);
    }
    ASSERT_EQ(q[i], quotient) << d << ": " << +n << " / " << +m;
    ASSERT_EQ(r[i], rest) << d << ": " << +n << " % " << +m;
  }
}

TEST_P(EachTarget, IntegerDivisionNeverTraps) {
  for (int lanes : {1, 8}) {
    check_division<std::int8_t>(GetParam(), DType::i8, lanes);
    check_division<std::int16_t>(GetParam(), DType::i16, lanes);
    check_division<std::int32_t>(GetParam(), DType::i32, lanes);
    check_division<std::int64_t>(GetParam(), DType::i64, lanes);
    check_division<std::uint8_t>(GetParam(), DType::u8, lanes);
    check_division<std::uint16_t>(GetParam(), DType::u16, lanes);
    check_division<std::uint32_t>(GetParam(), DType::u32, lanes);
    check_division<std::uint64_t>(GetParam(), DType::u64, lanes);
  }
}

TEST_P(EachTarget, ShiftsBeyondTheWidthShiftEverythingOut) {
  std::vector<std::int32_t> a = {5, -5, 5, -5, 5, -5}, b = {1, 1, 32, 32, -1, -1};
  EXPECT_EQ(map2<std::int32_t>(GetParam(), DType::i32, DType::i32, a, b, 8,
                               [](Value x, Value y) { return x << y; }),
            (std::vector<std::int32_t>{10, -10, 0, 0, 0, 0}));
  EXPECT_EQ(map2<std::int32_t>(GetParam(), DType::i32, DType::i32, a, b, 8,
                               [](Value x, Value y) { return x >> y; }),
            (std::vector<std::int32_t>{2, -3, 0, -1, 0, -1}));
}

template <class T>
void check_minmax(const std::string& target, DType d, int lanes) {
  const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  auto [a, b] = pairs<T>({T(0), -T(0), 1, -1, inf, -inf, nan});
  auto low = map2<T>(target, d, d, a, b, lanes, [](Value x, Value y) { return minimum(x, y); });
  auto high = map2<T>(target, d, d, a, b, lanes, [](Value x, Value y) { return maximum(x, y); });
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) || std::isnan(b[i])) {
      EXPECT_TRUE(std::isnan(low[i]) && std::isnan(high[i])) << a[i] << " " << b[i];
      continue;
    }
    const T least = std::min(a[i], b[i]), most = std::max(a[i], b[i]);
    EXPECT_EQ(low[i], least);
    EXPECT_EQ(high[i], most);
  }
}

TEST_P(EachTarget, MinimumAndMaximumKeepNaN) {
  for (int lanes : {1, 8, 16}) {
    check_minmax<float>(GetParam(), DType::f32, lanes);
    check_minmax<double>(GetParam(), DType::f64, lanes);
  }
}

TEST_P(EachTarget, MinimumAndMaximumWithANumber) {
  const float inf = INFINITY;
  for (float bound : {0.0f, -0.0f, 1.0f, -2.0f, inf}) {
    std::vector<float> in = {0.0f, -0.0f, 1, -1, -2, 3, inf, -inf, NAN};
    for (bool is_maximum : {false, true}) {
      std::vector<float> out(in.size());
      LoadedBinary code = jit_map(GetParam(), DType::f32, DType::f32, [&](Value x) {
        return is_maximum ? maximum(x, real_like(x, bound)) : minimum(real_like(x, bound), x);
      });
      run(code, {in.data(), out.data()}, static_cast<std::int64_t>(in.size()));
      for (std::size_t i = 0; i + 1 < in.size(); ++i) {
        float exact = is_maximum ? std::max(in[i], bound) : std::min(in[i], bound);
        EXPECT_EQ(out[i], exact) << in[i] << " " << bound;
      }
      EXPECT_TRUE(std::isnan(out.back())) << bound;
    }
  }
}

TEST_P(EachTarget, ComparisonsWithNaN) {
  const float nan = NAN;
  std::vector<float> a = {1, nan, nan, 2}, b = {nan, 1, nan, 2};
  auto holds = [&](Value (*compare)(Value, Value)) {
    return map2<float, std::uint8_t>(GetParam(), DType::f32, DType::b1, a, b, 8, compare);
  };
  using Bits = std::vector<std::uint8_t>;
  EXPECT_EQ(holds(equal), (Bits{0, 0, 0, 1}));
  EXPECT_EQ(holds(not_equal), (Bits{1, 1, 1, 0}));
  EXPECT_EQ(holds(less_equal), (Bits{0, 0, 0, 1}));
  EXPECT_EQ(holds(greater_equal), (Bits{0, 0, 0, 1}));
  EXPECT_EQ(holds(less), (Bits{0, 0, 0, 0}));
}

TEST_P(EachTarget, UnsignedOrderAndMasks) {
  std::vector<std::uint8_t> a = {0, 200, 255, 3}, b = {1, 100, 255, 250};
  EXPECT_EQ((map2<std::uint8_t>(GetParam(), DType::u8, DType::b1, a, b, 16,
                                [](Value x, Value y) { return ~less(x, y) | equal(x, 3); })),
            (std::vector<std::uint8_t>{0, 1, 1, 1}));
}

TEST_P(EachTarget, ReduceFoldsHalves) {
  // An order that depends on the lane count alone: ((0-4)-(2-6))-((1-5)-(3-7)) for eight lanes.
  LoadedBinary code = jit_kernel(GetParam(), 2, [](Module&, const KernelArguments& k) {
    Value v = load(DType::f32, k.buffers[0], 8);
    store(DType::f32, k.buffers[1], reduce(v, [](Value a, Value b) { return a - b; }));
  });
  float in[8] = {128, 1, 2, 4, 8, 16, 32, 64}, out;
  run(code, {in, &out}, 0);
  auto sub = [&](int a, int b) { return in[a] - in[b]; };
  EXPECT_EQ(out, (sub(0, 4) - sub(2, 6)) - (sub(1, 5) - sub(3, 7)));
}

TEST_P(EachTarget, FunctionsLocalsAndConstants) {
  const std::vector<float> table = {3, 1, 4, 1, 5, 9, 2, 6};
  LoadedBinary code = jit(GetParam(), [&](Module& m) {
    std::vector<std::optional<ValueType>> parameters = {std::nullopt, ValueType{DType::i64, 1}};
    auto in = m.begin_function("pick", ValueType{DType::f32, 1}, parameters);
    Function pick =
        m.end_function(load(DType::f32, offset(in.pointers[0], DType::f32, in.values[0])));
    std::vector<Buffer> buffers(1);
    KernelArguments k = m.begin_kernel("f", buffers);
    Pointer data = m.constant_data(std::as_bytes(std::span(table)));
    Pointer kept = m.local(DType::f32, 8);
    m.loop(m.index(0), m.index(8), 1, [&](Value i) {
      LLVMValueRef arguments[] = {data.ref, (m.index(7) - i).ref};
      store(DType::f32, offset(kept, DType::f32, i), *m.call(pick, arguments));
    });
    store(DType::f32, k.buffers[0], load(DType::f32, kept, 8));
    m.end_kernel();
  });
  alignas(64) float out[8];
  run(code, {out}, 0);
  EXPECT_EQ(std::vector<float>(out, out + 8), std::vector<float>(table.rbegin(), table.rend()));
}

TEST_P(EachTarget, ContractMayBeSwitchedOff) {
  // x * x - 1 with x = 1 + 2^-12: fused it keeps 2^-24.
  const float x = 1 + 0x1p-12f;
  for (bool contract : {true, false}) {
    LoadedBinary code = jit_map(GetParam(), DType::f32, DType::f32, [&](Value v) {
      bool before = v.module->set_contract(contract);
      Value out = v * v - 1.0;
      v.module->set_contract(before);
      return out;
    });
    float in = x, out;
    run(code, {&in, &out}, 1);
    const float square = x * x;
    EXPECT_EQ(out, contract ? std::fma(x, x, -1.0f) : square - 1) << contract;
  }
}

TEST(Builder, MisuseIsAnInternalError) {
  TargetSpec spec = cpu::target_spec("x86-64-v3");
  Module m("test", spec);
  std::vector<Buffer> none;
  m.begin_kernel("f", none);
  EXPECT_THROW(m.real(1) + m.index(1), InternalError);
  EXPECT_THROW(m.real(1) & m.real(1), InternalError);
  EXPECT_THROW(m.integer(1, {DType::f32, 1}), InternalError);
  EXPECT_THROW(m.begin_kernel("g", none), InternalError);
  EXPECT_THROW(m.verify(), InternalError);
  m.end_kernel();
  EXPECT_NO_THROW(m.verify());
}

TEST(TargetSpec, NamesAnUnknownTarget) {
  try {
    cpu::target_spec("pentium");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("'pentium'"), std::string::npos) << e.what();
  }
}

}  // namespace hone::llvm
