// In a sanitizer build kernels are instrumented, so that the sanitizer checks them.
#include "base/sanitizer.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "jit.h"

namespace hone::llvm {

namespace {

LoadedBinary writer(int lanes) {
  return jit_kernel("x86-64-v3", 1, [&](Module& m, const KernelArguments& k) {
    Pointer at = offset(k.buffers[0], DType::f32, k.size(0));
    store(DType::f32, at, m.real(1, {DType::f32, lanes}));
  });
}

}  // namespace

TEST(Sanitizer, AddressSanitizerSeesAKernelsWrites) {
  if (!with_address_sanitizer) GTEST_SKIP() << "not an AddressSanitizer build";
  for (int lanes : {1, 8}) {
    LoadedBinary code = writer(lanes);
    std::vector<float> buffer(16);
    run(code, {buffer.data()}, 16 - lanes);
    EXPECT_DEATH(run(code, {buffer.data()}, 17 - lanes), "heap-buffer-overflow");
  }
}

TEST(Sanitizer, AddressSanitizerSeesAKernelsOwnArrays) {
  if (!with_address_sanitizer) GTEST_SKIP() << "not an AddressSanitizer build";
  LoadedBinary code = jit_kernel("x86-64-v3", 1, [](Module& m, const KernelArguments& k) {
    Pointer own = m.local(DType::f32, 1000);
    store(DType::f32, offset(own, DType::f32, k.begin), m.real(1));
    store(DType::f32, offset(own, DType::f32, k.size(0)), m.real(2));
    store(DType::f32, k.buffers[0], load(DType::f32, offset(own, DType::f32, k.begin)));
  });
  float out = 0;
  run(code, {&out}, 999);
  EXPECT_EQ(out, 1);
  EXPECT_DEATH(run(code, {&out}, 1000), "stack-buffer-overflow");
}

TEST(Sanitizer, ThreadSanitizerSeesRacesOfKernels) {
  if (!with_thread_sanitizer) GTEST_SKIP() << "not a ThreadSanitizer build";
  auto race = [] {
    LoadedBinary code = writer(1);
    float shared = 0;
    std::thread other([&] { run(code, {&shared}, 0); });
    run(code, {&shared}, 0);
    other.join();
    std::exit(0);  // the sanitizer's exit status replaces it
  };
  EXPECT_EXIT(race(), [](int status) { return status != 0; }, "data race");
}

}  // namespace hone::llvm
