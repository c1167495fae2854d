// checkpoint() in plans: less memory, its kernels twice, the same numbers.
#include <gtest/gtest.h>

#include "backend/devices/devices.h"
#include "compile/program.h"
#include "nn/layers.h"
#include "runtime/prepare.h"
#include "runtime/session.h"
#include "tensor/grad.h"
#include "verify/sample.h"

namespace hone::test {
namespace {

constexpr std::int64_t width = 64, batch = 256, parts = 8;

// A deep chain; each part keeps four values of [batch, width] for its derivative.
Plan deep(bool is_checkpointed) {
  Program p("deep", {.seed = 5});
  Variables weights;
  for (int i = 0; i < 2 * parts; ++i)
    weights.push_back(p.variable(cat("w", i), f32({width, width}), Start::normal(0, 0.15)));
  p.entry("train", {Arg{"x", f32({batch, width})}}, [&](const Tensor& x) {
    Tensors y{x};
    for (int i = 0; i < parts; ++i) {
      const auto part = [&](const Tensors& in) {
        const Tensor h = gelu(matmul(in[0], weights[static_cast<std::size_t>(2 * i)]));
        return Tensors{in[0] + tanh(matmul(h, weights[static_cast<std::size_t>(2 * i + 1)]))};
      };
      y = is_checkpointed ? checkpoint(part, y) : part(y);
    }
    const Tensor loss = mean(square(y[0]));
    Results out{{"loss", loss}};
    for (const Tensor& d : grad(loss, weights)) out.add(cat("d", out.all().size()), d);
    return out;
  });
  return compile(p.graph(), {.strategy = "cpu", .cache = false});
}

std::int64_t arena(const Plan& plan) { return arena_bytes(plan.main().variants[0]).number(); }

std::vector<Array> results_of(const Plan& plan) {
  const auto executable = load_plan(std::make_shared<const Plan>(plan), open_devices(plan));
  State model(executable);
  Session s(executable, {.threads = 1, .entry = "train", .states = {model}});
  return s.run(std::vector{sample_array(f32({batch, width}), {}, Fill::random, 1)});
}

TEST(Recomputed, PlansNeedLessMemory) {
  const Plan kept = deep(false), again = deep(true);
  RecordProperty("kept", std::to_string(arena(kept)));
  RecordProperty("again", std::to_string(arena(again)));
  std::printf("%lld bytes kept, %lld computed again\n", static_cast<long long>(arena(kept)),
              static_cast<long long>(arena(again)));
  EXPECT_LT(arena(again), arena(kept) / 2);
  const std::vector<Array> a = results_of(kept), b = results_of(again);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::int64_t e = 0; e < a[i].count(); ++e)
      ASSERT_NEAR(a[i].real(e), b[i].real(e), 1e-7) << "result " << i << " element " << e;
}

}  // namespace
}  // namespace hone::test
