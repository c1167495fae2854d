// The CUDA C++ keywords and functions that kernels use, for a C++ compiler on the CPU. The threads
// of a block, or of a cluster of blocks, are fibers, which switch at barriers; blocks and clusters
// run one after the other.
#pragma once

namespace hone::test {

inline constexpr const char* cuda_shim_head = R"shim(#define int64_t libc_int64_t
#define uint64_t libc_uint64_t
#include <math.h>
#include <ucontext.h>
#undef int64_t
#undef uint64_t
#undef NAN
#undef INFINITY
#define __device__
#define __global__
#define __forceinline__ inline
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
struct ShimIndex { unsigned x; };
static ShimIndex threadIdx, blockIdx, gridDim, blockDim;
// The running fiber, and its block: among those that run together.
static unsigned shim_me, shim_block, shim_first_block;
static void shim_resume(unsigned me) {
  shim_me = me;
  threadIdx.x = me % blockDim.x;
  shim_block = me / blockDim.x;
  blockIdx.x = shim_first_block + shim_block;
}
static ucontext_t shim_fibers[1024], shim_main;
static unsigned long long shim_slots[1024];
static bool shim_done[1024];
static void __syncthreads() {
  const unsigned me = shim_me;
  swapcontext(&shim_fibers[me], &shim_main);
  shim_resume(me);
}
static void __syncwarp() { __syncthreads(); }
template <class T> static T __shfl_xor_sync(unsigned, T x, int h) {
  const unsigned me = shim_me;
  __builtin_memcpy(&shim_slots[me], &x, sizeof x);
  __syncthreads();
  T y;
  __builtin_memcpy(&y, &shim_slots[me ^ (unsigned)h], sizeof y);
  __syncthreads();
  return y;
}
template <class To, class From> static To shim_bits(From x) {
  To y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
}
static unsigned __float_as_uint(float x) { return shim_bits<unsigned>(x); }
static float __uint_as_float(unsigned x) { return shim_bits<float>(x); }
static float __int_as_float(int x) { return shim_bits<float>(x); }
static long long __double_as_longlong(double x) { return shim_bits<long long>(x); }
static double __longlong_as_double(long long x) { return shim_bits<double>(x); }
static float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static float __fmaf_rd(float a, float b, float c) {
  const double exact = (double)a * b + c;
  const float near = (float)exact;
  return near > exact ? __builtin_nextafterf(near, -__builtin_inff()) : near;
}
static float __saturatef(float x) { return x > 1 ? 1 : x > 0 ? x : 0; }
static double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
static float shim_of_half(unsigned short h) { return (float)shim_bits<_Float16>(h); }
static unsigned short shim_half_of(float x) { return shim_bits<unsigned short>((_Float16)x); }
static unsigned short shim_bf16_of(float x) {
  const unsigned bits = shim_bits<unsigned>(x);
  return x != x ? 0x7fff : (unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
#define memcpy __builtin_memcpy
#define __CUDA_ARCH__ 800
// cp.async: a batch of a thread's copies arrives when the thread waits for it.
struct ShimCopy { void *to; const void *from; bool reads; unsigned batch; };
static ShimCopy shim_copies[1024][64];
static unsigned shim_first[1024], shim_last[1024], shim_batches[1024];
static void shim_copy(void *to, const void *from, bool reads) {
  const unsigned me = shim_me;
  shim_copies[me][shim_last[me]++ % 64] = {to, from, reads, shim_batches[me]};
}
static void shim_end_batch() { ++shim_batches[shim_me]; }
static void shim_wait(unsigned left) {
  const unsigned me = shim_me;
  for (; shim_first[me] != shim_last[me]; ++shim_first[me]) {
    const ShimCopy &c = shim_copies[me][shim_first[me] % 64];
    if (c.batch + left >= shim_batches[me]) break;
    if (c.reads) __builtin_memcpy(c.to, c.from, 16);
    else __builtin_memset(c.to, 0, 16);
  }
}
static unsigned long long __cvta_generic_to_shared(const void *) { return 0; }
// ldmatrix: lane l names row l % 8 of piece l / 8.
static void shim_load_pieces(unsigned *to, const unsigned short *from, bool across) {
  const unsigned me = shim_me, lane = me % 32;
  shim_slots[me] = (unsigned long long)from;
  __syncthreads();
  for (unsigned piece = 0; piece < 4; ++piece) {
    unsigned short of[2];
    for (unsigned i = 0; i < 2; ++i) {
      const unsigned row = across ? lane % 4 * 2 + i : lane / 4, column = across ? lane / 4 : lane % 4 * 2 + i;
      of[i] = ((const unsigned short *)shim_slots[me - lane + piece * 8 + row])[column];
    }
    to[piece] = of[0] | (unsigned)of[1] << 16;
  }
  __syncthreads();
}
static unsigned shim_words[1024][6];
// mma.m16n8k16
static void shim_multiply(float *c, const unsigned *a, unsigned b0, unsigned b1, bool is_f16) {
  const unsigned me = shim_me, lane = me % 32;
  for (unsigned i = 0; i < 4; ++i) shim_words[me][i] = a[i];
  shim_words[me][4] = b0, shim_words[me][5] = b1;
  __syncthreads();
  for (unsigned i = 0; i < 4; ++i)
    for (unsigned k = 0; k < 16; ++k) {
      const unsigned row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2, first = me - lane;
      const unsigned x = shim_words[first + row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2],
                     y = shim_words[first + column * 4 + k % 8 / 2][4 + k / 8];
      const unsigned short p = x >> (k % 2 * 16), q = y >> (k % 2 * 16);
      c[i] += is_f16 ? shim_of_half(p) * shim_of_half(q)
                     : shim_bits<float>((unsigned)p << 16) * shim_bits<float>((unsigned)q << 16);
    }
  __syncthreads();
}
)shim";

inline constexpr const char* cuda_shim_tail = R"shim(
template <unsigned... I> struct ShimIndices {};
template <unsigned... I, class... A>
static void shim_call(ShimIndices<I...>, void (*f)(A...), const unsigned long long *a) {
  f((A)a[I]...);
}
template <class... A> static void shim_spread(void (*f)(A...), const unsigned long long *a) {
  shim_call(ShimIndices<__integer_pack(sizeof...(A))...>(), f, a);
}
static const unsigned long long *shim_arguments;
static int shim_kernel;
static void shim_fiber(int me) {
  shim_resume((unsigned)me);
  SHIM_CALL
  shim_done[me] = true;
}
// `together`: blocks of a cluster.
extern "C" void shim_run(unsigned blocks, unsigned together, unsigned threads, int kernel, const unsigned long long *a) {
  static char stacks[1024][32 << 10] __attribute__((aligned(64)));
  shim_arguments = a, shim_kernel = kernel;
  gridDim.x = blocks, blockDim.x = threads;
  for (shim_first_block = 0; shim_first_block < blocks; shim_first_block += together) {
    for (unsigned t = 0; t < threads * together; ++t) {
      getcontext(&shim_fibers[t]);
      shim_fibers[t].uc_stack.ss_sp = stacks[t];
      shim_fibers[t].uc_stack.ss_size = sizeof stacks[t];
      shim_fibers[t].uc_link = &shim_main;
      shim_done[t] = false;
      makecontext(&shim_fibers[t], (void (*)())shim_fiber, 1, (int)t);
    }
    for (bool is_open = true; is_open;) {
      is_open = false;
      for (unsigned t = 0; t < threads * together; ++t)
        if (!shim_done[t]) {
          swapcontext(&shim_main, &shim_fibers[t]);
          is_open = is_open || !shim_done[t];
        }
    }
  }
}
)shim";

}  // namespace hone::test
