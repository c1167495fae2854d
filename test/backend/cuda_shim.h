// The words of CUDA C++ that kernels use, for a compiler of C++ on the processor: threads of a
// block are fibers, which change at barriers, and blocks run one after the other.
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
#define __launch_bounds__(n)
struct ShimIndex { unsigned x; };
static ShimIndex threadIdx, blockIdx, gridDim, blockDim;
static ucontext_t shim_fibers[1024], shim_main;
static unsigned long long shim_slots[1024];
static bool shim_done[1024];
static void __syncthreads() {
  const unsigned me = threadIdx.x;
  swapcontext(&shim_fibers[me], &shim_main);
  threadIdx.x = me;
}
template <class T> static T __shfl_xor_sync(unsigned, T x, int h) {
  const unsigned me = threadIdx.x;
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
static double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
static float shim_of_half(unsigned short h) { return (float)shim_bits<_Float16>(h); }
static unsigned short shim_half_of(float x) { return shim_bits<unsigned short>((_Float16)x); }
#define memcpy __builtin_memcpy
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
  threadIdx.x = (unsigned)me;
  SHIM_CALL
  shim_done[me] = true;
}
extern "C" void shim_run(unsigned blocks, unsigned threads, int kernel, const unsigned long long *a) {
  static char stacks[1024][32 << 10] __attribute__((aligned(64)));
  shim_arguments = a, shim_kernel = kernel;
  gridDim.x = blocks, blockDim.x = threads;
  for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
    for (unsigned t = 0; t < threads; ++t) {
      getcontext(&shim_fibers[t]);
      shim_fibers[t].uc_stack.ss_sp = stacks[t];
      shim_fibers[t].uc_stack.ss_size = sizeof stacks[t];
      shim_fibers[t].uc_link = &shim_main;
      shim_done[t] = false;
      makecontext(&shim_fibers[t], (void (*)())shim_fiber, 1, (int)t);
    }
    for (bool is_open = true; is_open;) {
      is_open = false;
      for (unsigned t = 0; t < threads; ++t)
        if (!shim_done[t]) {
          swapcontext(&shim_main, &shim_fibers[t]);
          is_open = is_open || !shim_done[t];
        }
    }
  }
}
)shim";

}  // namespace hone::test
