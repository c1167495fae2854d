#include "backend/cuda/target/dialect.h"

#include "base/error.h"

namespace hone::cuda {

namespace {

constexpr std::string_view preamble = R"(typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define INT64_C(n) n##LL
#define UINT64_C(n) n##ULL
#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295u
#define INT64_MIN (-9223372036854775807LL - 1)
#define INT64_MAX 9223372036854775807LL
#define UINT64_MAX 18446744073709551615ULL
#define NAN __int_as_float(0x7fc00000)
#define INFINITY __int_as_float(0x7f800000)
#define HONE_INLINE static __device__ __forceinline__
#define HONE_FUSES 1

template <class T, int n>
struct alignas(sizeof(T) * n < 16 ? sizeof(T) * n : 16) hone_vector {
  T of[n];
};
template <bool is_aligned, class T, int n>
HONE_INLINE void hone_load(hone_vector<T, n> &to, const T *from) {
  if (is_aligned) {
    to = *(const hone_vector<T, n> *)from;
    return;
  }
#pragma unroll
  for (int i = 0; i < n; ++i) to.of[i] = from[i];
}
template <bool is_aligned, class T, int n>
HONE_INLINE void hone_store(T *to, const hone_vector<T, n> &from) {
  if (is_aligned) {
    *(hone_vector<T, n> *)to = from;
    return;
  }
#pragma unroll
  for (int i = 0; i < n; ++i) to[i] = from.of[i];
}

/* Until what the kernel before this one wrote is there; then the next kernel's blocks may come. */
HONE_INLINE void hone_wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;\ngriddepcontrol.launch_dependents;" ::: "memory");
#endif
}

HONE_INLINE void hone_fetch(const void *at) { asm volatile("prefetch.global.L2 [%0];" :: "l"(at)); }

/* 16 bytes, or zeros; finished when hone_wait finishes its batch. Tiles of a group go through the
   first cache, because neighbouring places of a window are read again soon. */
template <bool is_aligned, int n, bool is_of_group, class T>
HONE_INLINE void hone_copy_async(T *to, const T *from, bool reads) {
#if __CUDA_ARCH__ >= 800
  if (is_aligned) {
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    const uint32_t bytes = reads ? 16 : 0;
    if (is_of_group)
      asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" :: "r"(at), "l"(from), "r"(bytes) : "memory");
    else
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(at), "l"(from), "r"(bytes) : "memory");
    return;
  }
#endif
  /* Few copies are not aligned: what is short compiles fast. */
#pragma unroll 1
  for (int i = 0; i < n; ++i) to[i] = reads ? from[i] : (T)0;
}
HONE_INLINE void hone_end_batch() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/* Until at most n batches of this thread's copies are unfinished. */
template <int n>
HONE_INLINE void hone_wait() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" :: "n"(n) : "memory");
#endif
}

/* Each n neighbouring threads get what their values join to. */
template <int n, class T, class Join>
HONE_INLINE T hone_join(T x, Join join) {
#pragma unroll
  for (int h = n / 2; h > 0; h /= 2) x = join(x, (T)__shfl_xor_sync(0xffffffffu, x, h));
  return x;
}

/* All threads get what their values join to, in an order that their number fixes. */
template <int threads, class T, class Join>
HONE_INLINE T hone_reduce(T x, Join join) {
  constexpr int lanes = threads < 32 ? threads : 32, warps = threads / 32;
  constexpr unsigned all = lanes == 32 ? 0xffffffffu : (1u << (lanes & 31)) - 1;
#pragma unroll
  for (int h = lanes / 2; h > 0; h /= 2) x = join(x, (T)__shfl_xor_sync(all, x, h));
  if (warps > 1) {
    __shared__ T parts[warps > 1 ? warps : 1];
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
    __syncthreads();
    x = parts[threadIdx.x % (warps > 1 ? warps : 1)];
#pragma unroll
    for (int h = warps / 2; h > 0; h /= 2) x = join(x, (T)__shfl_xor_sync(0xffffffffu, x, h));
    __syncthreads();
  }
  return x;
}

)";

// Functions with machine instructions.
constexpr c::Helper helpers[] = {
    {"max_f32", "",
     R"(HONE_INLINE float hone_max_f32(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float m;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(m) : "f"(a), "f"(b));
  return m;
#else
  const float m = a > b ? a : b;
  return a == a ? m : a;
#endif
}
)"},
    {"min_f32", "",
     R"(HONE_INLINE float hone_min_f32(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float m;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(m) : "f"(a), "f"(b));
  return m;
#else
  const float m = a < b ? a : b;
  return a == a ? m : a;
#endif
}
)"},
    // exp(x) = 2^n * 2^r with n = x / ln(2) rounded down and 0 <= r < 1. The instruction for 2^r is
    // within 2 units in the last place. `n` holds the integer in its last bits. Because `part` is
    // clamped to [0, 1], the integer lies between -126 and 126; r compensates if x is beyond that,
    // infinite or NaN.
    {"exp_f32", "",
     R"(HONE_INLINE float hone_exp_f32(float x) {
  const float part = __saturatef(__fmaf_rn(x, 1.44269504f / 252.0f, 0.5f));
  const float n = __fmaf_rd(part, 252.0f, 12582913.0f);
  const float r = __fmaf_rn(x, 1.92596299e-8f, __fmaf_rn(x, 1.44269504f, 12583039.0f - n));
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(r));
  return __uint_as_float(__float_as_uint(n) << 23) * y;
}
)"},
    {"bits_f32", "",
     R"(HONE_INLINE uint32_t hone_bits_f32(float x) {
  return __float_as_uint(x);
}
)"},
    {"f32_bits", "",
     R"(HONE_INLINE float hone_f32_bits(uint32_t bits) {
  return __uint_as_float(bits);
}
)"},
    {"bits_f64", "",
     R"(HONE_INLINE int64_t hone_bits_f64(double x) {
  return __double_as_longlong(x);
}
)"},
    {"f64_bits", "",
     R"(HONE_INLINE double hone_f64_bits(int64_t bits) {
  return __longlong_as_double(bits);
}
)"},
    {"fma_f32", "",
     R"(HONE_INLINE float hone_fma_f32(float a, float b, float c) {
  return __fmaf_rn(a, b, c);
}
)"},
    {"fma_f64", "",
     R"(HONE_INLINE double hone_fma_f64(double a, double b, double c) {
  return __fma_rn(a, b, c);
}
)"},
    {"f32_of_f16", "",
     R"(HONE_INLINE float hone_f32_of_f16(uint16_t h) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
  return x;
}
)"},
    // The compiler emits one instruction for either half of a register.
    {"f32_of_bf16", "",
     R"(HONE_INLINE float hone_f32_of_bf16(uint16_t h) {
  float x;
  asm("mov.b32 %0, {%1, %2};" : "=f"(x) : "h"((uint16_t)0), "h"(h));
  return x;
}
)"},
    {"bf16_of_f32", "bits_f32",
     R"(HONE_INLINE uint16_t hone_bf16_of_f32(float x) {
#if __CUDA_ARCH__ >= 900
  uint16_t h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
#else
  const uint32_t bits = hone_bits_f32(x);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return (uint16_t)(x != x ? 0x7fffu : rounded);
#endif
}
)"},
    {"f16_of_f32", "",
     R"(HONE_INLINE uint16_t hone_f16_of_f32(float x) {
  uint16_t h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
}
)"},
    {"short_power_f32", "",
     R"(HONE_INLINE float hone_short_power_f32(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
)"},
    // Packs two neighbouring elements in a register.
    {"pack_f16", "",
     R"(HONE_INLINE uint32_t hone_pack_f16(float low, float high) {
  uint32_t both;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
)"},
    {"pack_bf16", "",
     R"(HONE_INLINE uint32_t hone_pack_bf16(float low, float high) {
  uint32_t both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
)"},
    // Loads four pieces of 8 x 8 elements: lane l passes the address of row l % 8 of piece l / 8,
    // and receives elements l % 4 * 2 and the next of row l / 4 of each; across: of column l / 4.
    {"load_pieces", "",
     R"(HONE_INLINE void hone_load_pieces(uint32_t *to, const uint16_t *from) {
  const uint32_t at = (uint32_t)__cvta_generic_to_shared(from);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at) : "memory");
}
)"},
    {"load_pieces_across", "",
     R"(HONE_INLINE void hone_load_pieces_across(uint32_t *to, const uint16_t *from) {
  const uint32_t at = (uint32_t)__cvta_generic_to_shared(from);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at) : "memory");
}
)"},
    {"multiply_f16", "",
     R"(HONE_INLINE void hone_multiply_f16(float *c, const uint32_t *a, uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
)"},
    {"multiply_bf16", "",
     R"(HONE_INLINE void hone_multiply_bf16(float *c, const uint32_t *a, uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
)"},
};

// Groups that are clusters of blocks. Each block arrives at the cluster barrier when it begins and
// whenever others may write to its memory again, and waits there before it writes to theirs. By
// then most others have arrived.
constexpr std::string_view clusters = R"(HONE_INLINE void hone_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
HONE_INLINE void hone_wait_for_blocks() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
HONE_INLINE void hone_meet() {
  hone_wait_for_blocks();
  hone_arrive();
  hone_wait_for_blocks();
  hone_arrive();
}
/* Each warp gives a value. Of the values of all blocks' warps, each lane gets every 32nd, from its
   own number on. */
template <int threads, class T>
HONE_INLINE const T *hone_exchange(const T &of_warp) {
  constexpr int warps = threads / HONE_BLOCKS / 32;
  static_assert(HONE_BLOCKS * warps >= 32, "a warp reads them all");
  __shared__ T parts[HONE_BLOCKS * warps];
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  hone_wait_for_blocks();
  if (lane < HONE_BLOCKS) {
    T *to;
    asm("mapa.u64 %0, %1, %2;" : "=l"(to) : "l"(&parts[blockIdx.x % HONE_BLOCKS * warps + warp]), "r"(lane));
    *to = of_warp;
  }
  hone_arrive();
  hone_wait_for_blocks();
  return parts + lane;
}
template <int threads, class T, class Join>
HONE_INLINE T hone_reduce_cluster(T x, Join join) {
  const T *const parts = hone_exchange<threads>(hone_join<32>(x, join));
  x = parts[0];
#pragma unroll
  for (int i = 32; i < threads / 32; i += 32) x = join(x, parts[i]);
  hone_arrive();
  return hone_join<32>(x, join);
}
struct hone_exponentials {
  float maximum, sum;
};
/* If a warp's maximum is -infinity, its sum is 0; if all warps' maximum is, the sum is NaN. */
template <int threads, class Maximum, class Exp>
HONE_INLINE void hone_join_exponentials(float &maximum, float &sum, Maximum larger, Exp exp) {
  const auto add = [](float a, float b) { return a + b; };
  const float of_warp = hone_join<32>(maximum, larger);
  sum = hone_join<32>(sum * exp(maximum - (of_warp == -INFINITY ? 0.0f : of_warp)), add);
  const hone_exponentials *const parts = hone_exchange<threads>(hone_exponentials{of_warp, sum});
  constexpr int each = threads / 1024;
  hone_exponentials own[each];
#pragma unroll
  for (int i = 0; i < each; ++i) own[i] = parts[i * 32];
  hone_arrive();
  maximum = own[0].maximum;
#pragma unroll
  for (int i = 1; i < each; ++i) maximum = larger(maximum, own[i].maximum);
  maximum = hone_join<32>(maximum, larger);
  sum = 0;
#pragma unroll
  for (int i = 0; i < each; ++i) sum += own[i].sum * exp(own[i].maximum - maximum);
  sum = hone_join<32>(sum, add);
}

)";

}  // namespace

std::string cluster_preamble(std::uint32_t blocks) {
  return cat("#define HONE_BLOCKS ", blocks, "\n", clusters);
}

constinit const c::Dialect cuda_cpp = {
    .language = "CUDA C++",
    .preamble = preamble,
    .helpers = helpers,
    .size = "n$I",
    .has_groups = true,
    .group = "blockIdx.x",
    .groups = "gridDim.x",
    .thread = "threadIdx.x",
    .barrier = "__syncthreads();",
    .unroll = "#pragma unroll",
    .keep_loop = "#pragma unroll 1",
    .unroll_products = "#pragma unroll (is_aligned ? 64 : 1)",
    .vector_type = "hone_vector<$T, $N>",
    .vector_load = "hone_load<is_aligned>($V, $P + ($I));",
    .vector_store = "hone_store<is_aligned>($P + ($I), $V);",
    .reduce_group = "$R = hone_reduce<$N>($X, [](const $T a, const $T b) -> $T { return $E; });",
    .reduce_neighbours = "$R = hone_join<$N>($X, [](const $T a, const $T b) -> $T { return $E; });",
    .multiplies_halves = true,
    .copy_async = "hone_copy_async<is_aligned, $N, $G>($T, $F, $C);",
    .end_batch = "hone_end_batch();",
    .wait_copies = "hone_wait<$N>();",
    .fetch = "hone_fetch($A);",
    .shared = "$T *const $P = ($T *)(shared + $O);",
    .block_thread = "(int32_t)threadIdx.x",
    .scratch = "$T *const $P = ($T *)(scratch + $O);",
};

}  // namespace hone::cuda
