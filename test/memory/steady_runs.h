// A function whose plan is run repeatedly on a device, to observe what steady runs allocate.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "backend/backend.h"
#include "compile/compile.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "runtime/session.h"

namespace hone::test {

// y = softmax(x w) and the sums of the rows of x, with a symbolic number of rows.
inline std::shared_ptr<const Plan> steady_plan(std::string_view backend_name) {
  Function f;
  const Value x = f.add_param(f32({Dim::symbol("n", 1, 4096), 256}), "x"),
              w = f.add_param(f32({256, 64}), "w");
  f.add_result(ops::softmax(ops::matmul(x, w), {{"axis", 1}}), "y");
  f.add_result(reduce_axes(ops::reduce_sum, x, {1}), "sum");
  CompileOptions options{.backend = &backend(backend_name)};
  options.verification = Verification::none;
  options.cache = false;
  return std::make_shared<const Plan>(compile({"test", {{{}, f}}, {}}, options));
}

// Runs that plan alternately with two numbers of rows, in the same buffers, and checks the results.
class SteadyRuns {
 public:
  explicit SteadyRuns(Session& session) : session_(session) {}

  void run() {
    for (const std::vector<std::int64_t>& dims : sizes_) {
      const auto n = static_cast<std::size_t>(dims[0]);
      const std::int64_t dims_of_y[] = {dims[0], 64}, dims_of_sum[] = {dims[0]};
      const TensorRef inputs[] = {{DType::f32, dims, memory_of(in_.data(), n * 256)},
                                  {DType::f32, dims_of_w_,
                                   memory_of(weights_.data(), weights_.size())}},
                      outputs[] = {{DType::f32, dims_of_y, memory_of(y_.data(), n * 64)},
                                   {DType::f32, dims_of_sum, memory_of(sums_.data(), n)}};
      session_.run(inputs, outputs);
      ASSERT_EQ(sums_[n - 1], 256);
      ASSERT_NEAR(y_[n * 64 - 1], 1.0 / 64, 1e-6);
    }
  }

 private:
  Session& session_;
  const std::vector<std::int64_t> sizes_[2] = {{32, 256}, {100, 256}}, dims_of_w_ = {256, 64};
  std::vector<float> weights_ = std::vector<float>(256 * 64, 0.5f),
                     in_ = std::vector<float>(100 * 256, 1.0f), y_ = std::vector<float>(100 * 64),
                     sums_ = std::vector<float>(100);
};

}  // namespace hone::test
