// Random functions: for any schedule, the results equal the reference's.
#include "random_function.h"
#include "simulate.h"

namespace hone {
namespace {

TEST(RandomFunctions, StaticSizes) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Function f = RandomFunction(seed, 4).make(4 + static_cast<int>(seed % 30));
    ScheduleOptions one;
    one.one_op_groups = true;
    Simulated fused = simulate(f), single = simulate(f, one);
    EXPECT_LE(fused.launches, single.launches);
    if (HasFailure()) FAIL() << print(f);
  }
}

TEST(RandomFunctions, SymbolicSizes) {
  Dim n = Dim::symbol("n", 1, 40);
  for (unsigned seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    Function f = RandomFunction(seed, n).make(4 + static_cast<int>(seed % 30));
    for (std::int64_t k : {1, 5}) simulate(f, {}, {{"n", k}});
    if (HasFailure()) FAIL() << print(f);
  }
}

}  // namespace
}  // namespace hone
