// Generated kernels against the multiply-add rate of this machine, measured in the same run.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "backend/cpu/target/measure.h"
#include "base/sanitizer.h"
#include "group_runner.h"
#include "kernel/contraction.h"
#include "ops/common.h"

namespace hone::test {

namespace {

// Of this thread alone: other work on the machine disturbs less.
double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

TEST(Speed, ContractionReachesMostOfThePeak) {
  if (with_address_sanitizer || with_thread_sanitizer) GTEST_SKIP() << "kernels are instrumented";
  constexpr std::int64_t n = 512;
  Function f;
  Value x = f.add_param(f32({n, n}), "x"), w = f.add_param(f32({n, n}), "w");
  f.add_result(ops::matmul(x, w));
  GroupSpec spec = spec_of(f);
  spec.param_is_weight[1] = true;
  const std::string target = llvm::targets().back();
  std::optional<Candidate> candidate = contraction_candidate(spec, cpu_target_info(target));
  ASSERT_TRUE(candidate);
  CompiledCandidate compiled(*candidate, target);
  Array a = Array::zeros(DType::f32, {n, n}), y = a;
  Array packed = Array::zeros(DType::f32, candidate->temporaries.at(0).type.shape.numbers());
  std::vector<void*> buffers = {a.writable_bytes().data(), y.writable_bytes().data(),
                                packed.writable_bytes().data()};
  const std::vector<Array> inputs = {a, a};
  const Sizes sizes(f, inputs);
  double seconds = 1, peak = 0;
  for (int round = 0; round < 12; ++round) {
    peak = std::max(peak, cpu::measure_fma_gflops(1));
    const double start = thread_seconds();
    compiled.launch(1, buffers, sizes, {});
    seconds = std::min(seconds, thread_seconds() - start);
  }
  const double share = 2.0 * n * n * n / seconds / 1e9 / peak;
  std::cout << "512^3: " << 100 * share << " % of " << peak << " GFLOP/s\n";
  EXPECT_GE(share, 0.6);
}

}  // namespace

}  // namespace hone::test
