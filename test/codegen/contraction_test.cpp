#include "kernel/contraction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "codegen/llvm/skeleton.h"
#include "guarded.h"
#include "jit.h"

namespace hone {
namespace {

using llvm::targets;
using test::Guard;
using test::GuardedBuffer;

// y[b, m, n] = sum_k a[b, m, k] * w[(b,) k, n], plain buffers: a (0), packed w (1), y (2).
struct Case {
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  bool symbolic_m = false, batched_b = false, copies = false, transposed_a = false;
  bool packed = true;
  std::int64_t k_block = 0;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.batch << "x" << c.m << "x" << c.n << "x" << c.k << (c.symbolic_m ? " m?" : "")
             << (c.copies ? " copy" : "") << (c.transposed_a ? " transposed" : "")
             << (c.packed ? "" : " unpacked") << " k_block " << c.k_block;
}

void fill(std::span<float> out, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> in(-1, 1);
  for (float& x : out) x = in(random);
}

class Compiled {
 public:
  Compiled(const Case& c, const std::string& isa) : case_(c) {
    Contraction body;
    body.batch = c.batch;
    body.m = c.symbolic_m ? Dim::symbol("m", 0, 1000) : Dim(c.m);
    body.n = c.n;
    body.k = c.k;
    body.packed_b = c.packed ? 1 : -1;
    body.packed_batch = c.batched_b;
    OperandAccess access{!c.copies, c.transposed_a ? 1 : c.k, c.transposed_a ? c.m : 1};
    choose_blocking(body, access, cpu_target_info(isa));
    if (c.k_block > 0) body.k_block = c.k_block;
    kernel_.name = "contraction";
    if (c.symbolic_m) kernel_.sizes = {body.m};
    kernel_.chunks = chunks_of(body);
    kernel_.body = body;
    build(llvm::target_spec(isa));
  }

  const Contraction& body() const { return std::get<Contraction>(kernel_.body); }
  std::int64_t chunks() const {
    return kernel_.chunks.eval([&](std::string_view) { return case_.m; });
  }
  std::size_t packed_count() const {
    return static_cast<std::size_t>(packed_type(body()).shape.count().number());
  }
  void operator()(void* a, void* b, void* y, std::int64_t begin, std::int64_t end) const {
    void* buffers[] = {a, b, y};
    std::vector<std::byte> memory(static_cast<std::size_t>(scratch_bytes(body())) + 64);
    auto at = (reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64;
    loaded_.entry("contraction")(buffers, &case_.m, begin, end, reinterpret_cast<void*>(at));
  }

 private:
  void build(const llvm::TargetSpec& spec) {
    using namespace llvm;
    Module m("test", spec);
    std::vector<Buffer> buffers(3, Buffer{.align = 4});
    KernelArguments in = m.begin_kernel("contraction", buffers);
    const Case& c = case_;
    auto a_place = [&](std::span<const llvm::Value> v) {
      llvm::Value inner = c.transposed_a ? v[2] * c.m + v[1] : v[1] * c.k + v[2];
      return offset(in.buffers[0], DType::f32, v[0] * (c.m * c.k) + inner);
    };
    LoadHole a, b;
    a.address = a_place;
    a.elements = [&](auto v, int along, int lanes, auto mask) {
      EXPECT_EQ(along, c.transposed_a ? 1 : 2);
      return mask ? load_masked(DType::f32, a_place(v), *mask)
                  : load(DType::f32, a_place(v), lanes);
    };
    b.elements = [&](auto v, int, int lanes, auto mask) {
      llvm::Value at = v[1] * c.n + v[2];
      if (c.batched_b) at = at + v[0] * (c.k * c.n);
      Pointer p = offset(in.buffers[1], DType::f32, at);
      return mask ? load_masked(DType::f32, p, *mask) : load(DType::f32, p, lanes);
    };
    // y = 2 * sum + 1, so that an epilogue that is skipped or runs twice shows.
    StoreHole epilogue = [&](auto v, llvm::Value x, auto mask) {
      llvm::Value rows = size_of(m, in, kernel_.sizes, body().m);
      Pointer p = offset(in.buffers[2], DType::f32, (v[0] * rows + v[1]) * c.n + v[2]);
      x = x * 2.0 + 1.0;
      mask ? store_masked(DType::f32, p, x, *mask) : store(DType::f32, p, x);
    };
    emit_contraction(m, kernel_, in, a, b, epilogue);
    m.end_kernel();
    Object objects[] = {Emitter(spec).compile(m)};
    loaded_ = load(link_objects(objects, spec.name));
  }

  Case case_;
  Kernel kernel_;
  LoadedBinary loaded_;
};

// B [k, n] as [panel, k, block].
void pack(std::span<const float> b, std::span<float> out, const Case& c, std::int64_t block) {
  std::fill(out.begin(), out.end(), 0.f);
  std::int64_t panels = (c.n + block - 1) / block;
  for (std::int64_t i = 0; i < (c.batched_b ? c.batch : 1); ++i)
    for (std::int64_t k = 0; k < c.k; ++k)
      for (std::int64_t n = 0; n < c.n; ++n)
        out[static_cast<std::size_t>(((i * panels + n / block) * c.k + k) * block + n % block)] =
            b[static_cast<std::size_t>((i * c.k + k) * c.n + n)];
}

float expected(const Case& c, std::span<const float> a, std::span<const float> b, std::int64_t i,
               std::int64_t m, std::int64_t n) {
  double sum = 0;
  for (std::int64_t k = 0; k < c.k; ++k) {
    std::int64_t at = c.transposed_a ? k * c.m + m : m * c.k + k;
    sum += double{a[static_cast<std::size_t>(i * c.m * c.k + at)]} *
           b[static_cast<std::size_t>(((c.batched_b ? i : 0) * c.k + k) * c.n + n)];
  }
  return static_cast<float>(2 * sum + 1);
}

std::size_t bytes_of(std::int64_t count) { return static_cast<std::size_t>(count) * 4; }

void check(const Case& c, const std::string& isa, Guard guard) {
  SCOPED_TRACE(::testing::Message() << c << " on " << isa);
  Compiled run(c, isa);
  GuardedBuffer a(bytes_of(c.batch * c.m * c.k), guard), y(bytes_of(c.batch * c.m * c.n), guard);
  std::vector<float> b(static_cast<std::size_t>((c.batched_b ? c.batch : 1) * c.k * c.n));
  fill(a.as<float>(), 1);
  fill(b, 2);
  GuardedBuffer right(c.packed ? run.packed_count() * 4 : b.size() * 4, guard);
  if (c.packed)
    pack(b, right.as<float>(), c, run.body().block);
  else
    std::copy(b.begin(), b.end(), right.as<float>().begin());
  run(a.data(), right.data(), y.data(), 0, run.chunks());
  std::span<float> got = y.as<float>();
  for (std::int64_t i = 0; i < c.batch; ++i)
    for (std::int64_t m = 0; m < c.m; ++m)
      for (std::int64_t n = 0; n < c.n; ++n) {
        float want = expected(c, a.as<float>(), b, i, m, n);
        ASSERT_NEAR(got[static_cast<std::size_t>((i * c.m + m) * c.n + n)], want,
                    1e-6 * static_cast<double>(c.k + 4))
            << i << ", " << m << ", " << n;
      }
  // Chunks one by one, last first: the same bits.
  std::vector<float> whole(got.begin(), got.end());
  fill(got, 3);
  for (std::int64_t i = run.chunks(); i > 0; --i) run(a.data(), right.data(), y.data(), i - 1, i);
  ASSERT_TRUE(std::equal(whole.begin(), whole.end(), got.begin()));
}

void check(const Case& c) {
  for (const std::string& isa : targets())
    for (Guard guard : {Guard::before, Guard::behind}) check(c, isa, guard);
}

constexpr std::int64_t sizes[] = {1, 2, 3, 7, 15, 16, 17, 31, 33, 64, 100};

// Every pair of sizes meets, not every triple.
TEST(Contraction, SizesAroundTheTile) {
  for (std::size_t i = 0; i < 11; ++i)
    for (std::size_t j = 0; j < 11; ++j) {
      Case c{.m = sizes[i], .n = sizes[j], .k = sizes[(3 * i + 5 * j) % 11]};
      const std::string isa = targets()[(i + j) % targets().size()];
      c.copies = (i + j) % 4 < 2;
      check(c, isa, Guard::behind);
    }
}

TEST(Contraction, EmptySumIsZero) {
  check({.m = 3, .n = 5, .k = 0});
  check({.m = 3, .n = 5, .k = 0, .copies = true});
}

TEST(Contraction, RowsKnownAtRunTime) {
  for (std::int64_t m : {0, 1, 3, 4, 5, 17, 29}) {
    check({.m = m, .n = 40, .k = 33, .symbolic_m = true});
    check({.m = m, .n = 7, .k = 20, .symbolic_m = true, .copies = true});
  }
}

TEST(Contraction, Batches) {
  check({.batch = 3, .m = 17, .n = 33, .k = 20});
  check({.batch = 3, .m = 17, .n = 70, .k = 20, .batched_b = true});
  check({.batch = 3, .m = 17, .n = 70, .k = 20, .batched_b = true, .copies = true});
}

TEST(Contraction, TransposedA) {
  check({.m = 33, .n = 40, .k = 19, .transposed_a = true});
  check({.m = 33, .n = 40, .k = 19, .copies = true, .transposed_a = true});
  check({.m = 5, .n = 100, .k = 200, .copies = true, .transposed_a = true, .k_block = 64});
}

TEST(Contraction, RightOperandReadInPlace) {
  for (std::int64_t n : {1, 16, 40, 64, 130}) {
    check({.m = 3, .n = n, .k = 19, .packed = false});
    check({.batch = 2, .m = 20, .n = n, .k = 19, .batched_b = true, .packed = false});
  }
}

TEST(Contraction, SumsInParts) {
  check({.m = 30, .n = 70, .k = 200, .k_block = 64});
  check({.m = 30, .n = 70, .k = 200, .copies = true, .k_block = 64});
  check({.m = 30, .n = 70, .k = 200, .symbolic_m = true, .copies = true, .k_block = 64});
}

TEST(Contraction, ChunksCoverLargeShapes) {
  check({.m = 260, .n = 600, .k = 70});
  check({.m = 100, .n = 300, .k = 1100, .copies = true});
}

}  // namespace
}  // namespace hone
