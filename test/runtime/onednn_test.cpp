#include "backend/cpu/device/onednn.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include "base/error.h"
#include "plan/plan_file.h"
#include "plans.h"
#include "runtime/prepare.h"
#include "runtime/session.h"

namespace hone {
namespace {

using Sizes = std::vector<std::int64_t>;
using test::Memory;

std::int64_t count(const Sizes& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

CallOperand dense(Sizes dims, bool is_written = false) {
  CallOperand o{DType::f32, dims, Sizes(dims.size(), 1), is_written};
  for (std::size_t i = dims.size(); i-- > 1;) o.strides[i - 1] = o.strides[i] * dims[i];
  return o;
}

// Calls f with every index in the dims.
void for_each_index(const Sizes& dims, const std::function<void(const Sizes&)>& f) {
  if (count(dims) == 0) return;
  Sizes at(dims.size(), 0);
  for (std::int64_t i = 0; i < count(dims); ++i) {
    f(at);
    for (std::size_t a = at.size(); a-- > 0 && ++at[a] == dims[a];) at[a] = 0;
  }
}

// The same for at most about 2,000 of them.
void for_some_indices(const Sizes& dims, const std::function<void(const Sizes&)>& f) {
  const std::int64_t step = std::max<std::int64_t>(count(dims) / 2000, 1);
  std::int64_t i = 0;
  for_each_index(dims, [&](const Sizes& at) {
    if (i++ % step == 0) f(at);
  });
}

struct Operands {
  std::vector<CallOperand> specs;
  std::vector<Memory<float>> data;

  // `last` is the result.
  explicit Operands(std::vector<CallOperand> given) : specs(std::move(given)) {
    std::mt19937 random(11);
    std::uniform_real_distribution<float> uniform(-1, 1);
    specs.back().is_written = true;
    for (const CallOperand& o : specs) {
      Memory<float> m(static_cast<std::size_t>(std::max<std::int64_t>(count(o.dims), 1)));
      for (std::size_t i = 0; i < m.size(); ++i) m[i] = uniform(random);
      data.push_back(std::move(m));
    }
  }
  float& at(std::size_t operand, const Sizes& index) {
    std::int64_t offset = 0;
    for (std::size_t a = 0; a < index.size(); ++a) offset += index[a] * specs[operand].strides[a];
    return data[operand][static_cast<std::size_t>(offset)];
  }
  std::vector<void*> addresses() {
    std::vector<void*> out;
    for (Memory<float>& m : data) out.push_back(m.data());
    return out;
  }
};

void run(const CpuCall& call, std::vector<void*> operands) {
  Memory<std::byte> scratch(call.scratch_bytes() + 1);
  for (std::int64_t c = call.chunks(); c-- > 0;)
    call.run(operands.data(), c, c + 1, scratch.data());
}

std::vector<float> result(Operands& o) {
  return {o.data.back().data(), o.data.back().data() + count(o.specs.back().dims)};
}

// Runs the call with plain weights, and with packed ones if the library prefers that.
void run_both_ways(const CallRequest& r, Operands& o, const std::function<void()>& check) {
  const auto clear = [&] { std::fill_n(o.data.back().data(), o.data.back().size(), -7.0f); };
  clear();
  run(*onednn::bind(r), o.addresses());
  check();
  const std::optional<Packing> packing = onednn::packing(r);
  if (!packing) return;
  Memory<std::byte> packed(packing->bytes);
  const auto bytes = static_cast<std::int64_t>(packing->bytes);
  const CallOperand packed_operand{DType::u8, {bytes}, {1}, true};
  const CallOperand pack_operands[] = {o.specs[1], packed_operand};
  run(*onednn::bind(CallRequest{packing->pack_name, pack_operands, packing->pack_settings}),
      {o.data[1].data(), packed.data()});
  CallSettings settings(r.settings.begin(), r.settings.end());
  settings.insert(settings.end(), packing->settings.begin(), packing->settings.end());
  std::vector<CallOperand> operands = o.specs;
  operands[1] = packed_operand;
  std::vector<void*> addresses = o.addresses();
  addresses[1] = packed.data();
  clear();
  run(*onednn::bind(CallRequest{r.name, operands, settings}), addresses);
  check();
}

struct MatmulCase {
  std::int64_t batch, m, k, n;  // batch 0: none
  bool transpose_a, transpose_b, bias, relu;
};

void check_matmul(const MatmulCase& c) {
  SCOPED_TRACE(testing::Message() << c.batch << " x " << c.m << " x " << c.k << " x " << c.n);
  const auto matrix = [&](std::int64_t rows, std::int64_t columns, bool is_transposed) {
    Sizes dims = is_transposed ? Sizes{columns, rows} : Sizes{rows, columns};
    if (c.batch > 0) dims.insert(dims.begin(), c.batch);
    return dense(dims);
  };
  std::vector<CallOperand> specs = {matrix(c.m, c.k, c.transpose_a),
                                    matrix(c.k, c.n, c.transpose_b)};
  if (c.bias) specs.push_back(dense({1, c.n}));
  specs.push_back(matrix(c.m, c.n, false));
  Operands o(specs);
  const CallSettings settings = {{"transpose_a", c.transpose_a},
                                 {"transpose_b", c.transpose_b},
                                 {"bias", c.bias},
                                 {"relu", c.relu}};
  const CallRequest request{"onednn.matmul", o.specs, settings};
  run_both_ways(request, o, [&] {
    for_some_indices(o.specs.back().dims, [&](const Sizes& out) {
      const auto index = [&](std::int64_t row, std::int64_t column, bool is_transposed) {
        Sizes s = is_transposed ? Sizes{column, row} : Sizes{row, column};
        if (c.batch > 0) s.insert(s.begin(), out[0]);
        return s;
      };
      const std::int64_t i = out[out.size() - 2], j = out.back();
      double sum = c.bias ? o.at(2, {0, j}) : 0;
      for (std::int64_t k = 0; k < c.k; ++k)
        sum += static_cast<double>(o.at(0, index(i, k, c.transpose_a))) *
               o.at(1, index(k, j, c.transpose_b));
      if (c.relu) sum = std::max(sum, 0.0);
      ASSERT_NEAR(o.at(o.specs.size() - 1, out), sum, 1e-4) << i << ", " << j;
    });
  });
}

TEST(Onednn, MatrixProductsAreRight) {
  for (const MatmulCase& c : {MatmulCase{0, 1, 1, 1, false, false, false, false},
                              {0, 5, 7, 3, false, false, true, true},
                              {0, 5, 7, 3, true, true, true, false},
                              {0, 1, 300, 1000, false, true, true, false},
                              {0, 1, 300, 1000, false, false, false, true},
                              {0, 130, 64, 70, false, true, false, false},
                              {0, 200, 256, 300, false, false, true, true},
                              {3, 9, 8, 7, false, false, false, false},
                              {3, 9, 8, 7, true, true, false, true},
                              {20, 64, 64, 32, false, true, false, false},
                              {0, 0, 7, 3, false, false, false, false}})
    check_matmul(c);
}

struct ConvCase {
  Sizes space, taps, strides, dilations, pads_low, pads_high;
  std::int64_t images, in, out, groups;
  bool bias, relu, channels_last = true;
};

void check_conv(const ConvCase& c) {
  const std::size_t axes = c.space.size();
  Sizes out_space;
  CallSettings settings = {
      {"bias", c.bias}, {"relu", c.relu}, {"groups", c.groups}, {"channels_last", c.channels_last}};
  for (std::size_t a = 0; a < axes; ++a) {
    const std::int64_t reach = (c.taps[a] - 1) * c.dilations[a] + 1;
    out_space.push_back((c.space[a] + c.pads_low[a] + c.pads_high[a] - reach) / c.strides[a] + 1);
    settings.emplace_back(cat("strides", a), c.strides[a]);
    settings.emplace_back(cat("dilations", a), c.dilations[a]);
    settings.emplace_back(cat("pads_low", a), c.pads_low[a]);
    settings.emplace_back(cat("pads_high", a), c.pads_high[a]);
  }
  const auto join = [&](std::int64_t first, const Sizes& space, std::int64_t channel) {
    Sizes s = {first};
    if (!c.channels_last) s.push_back(channel);
    s.insert(s.end(), space.begin(), space.end());
    if (c.channels_last) s.push_back(channel);
    return s;
  };
  const auto weight = [&](std::int64_t out, const Sizes& taps, std::int64_t in) {
    Sizes s = taps;
    if (c.channels_last) {
      s.insert(s.end(), {in, out});
    } else {
      s.insert(s.begin(), {out, in});
    }
    return s;
  };
  std::vector<CallOperand> specs = {dense(join(c.images, c.space, c.in)),
                                    dense(weight(c.out, c.taps, c.in / c.groups))};
  if (c.bias) specs.push_back(dense({c.out}));
  specs.push_back(dense(join(c.images, out_space, c.out)));
  Operands o(specs);
  const CallRequest request{"onednn.conv", o.specs, settings};
  run_both_ways(request, o, [&] {
    Sizes all = {c.images, c.out};
    all.insert(all.end(), out_space.begin(), out_space.end());
    for_some_indices(all, [&](const Sizes& at) {
      const Sizes place(at.begin() + 2, at.end());
      const std::int64_t group = at[1] / (c.out / c.groups);
      double sum = c.bias ? o.at(2, {at[1]}) : 0;
      for_each_index(c.taps, [&](const Sizes& tap) {
        Sizes from(axes);
        bool is_inside = true;
        for (std::size_t a = 0; a < axes; ++a) {
          from[a] = place[a] * c.strides[a] + tap[a] * c.dilations[a] - c.pads_low[a];
          is_inside &= from[a] >= 0 && from[a] < c.space[a];
        }
        for (std::int64_t i = 0; is_inside && i < c.in / c.groups; ++i)
          sum += static_cast<double>(o.at(0, join(at[0], from, group * (c.in / c.groups) + i))) *
                 o.at(1, weight(at[1], tap, i));
      });
      if (c.relu) sum = std::max(sum, 0.0);
      ASSERT_NEAR(o.at(o.specs.size() - 1, join(at[0], place, at[1])), sum, 1e-4);
    });
  });
}

TEST(Onednn, ConvolutionsAreRight) {
  int number = 0;
  for (const ConvCase& c :
       {ConvCase{{9, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1, 3, 5, 1, true, true},
        // many rows, so that they are split
        {{60, 40}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1, 16, 32, 1, true, false},
        {{61, 33}, {5, 3}, {2, 2}, {1, 1}, {2, 1}, {0, 1}, 1, 16, 32, 1, false, true},
        {{61, 33}, {3, 3}, {1, 2}, {2, 3}, {2, 3}, {1, 3}, 1, 16, 32, 1, false, false},
        {{64, 64}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1, 64, 64, 64, true, true},  // depthwise
        {{30, 30}, {3, 3}, {2, 2}, {1, 1}, {0, 0}, {1, 1}, 3, 32, 48, 4, true, false},
        {{40, 40}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1, 64, 64, 1, true, true},
        {{400}, {3}, {1}, {1}, {1}, {1}, 2, 33, 65, 1, true, false},
        {{12, 11, 10},
         {3, 2, 3},
         {1, 1, 2},
         {1, 1, 1},
         {1, 0, 1},
         {1, 1, 1},
         2,
         4,
         6,
         1,
         true,
         false},
        {{40, 30}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 2, 16, 32, 1, true, true, false},
        {{20, 20}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1, 16, 16, 16, false, false, false}}) {
    SCOPED_TRACE(number++);
    check_conv(c);
  }
}

TEST(Onednn, ReluKeepsNan) {
  Operands o({dense({2, 2}), dense({2, 1}), dense({2, 1})});
  o.at(0, {0, 0}) = std::numeric_limits<float>::quiet_NaN();
  o.at(0, {1, 0}) = -std::numeric_limits<float>::infinity();
  const CallSettings settings = {{"relu", 1}};
  run(*onednn::bind(CallRequest{"onednn.matmul", o.specs, settings}), o.addresses());
  EXPECT_TRUE(std::isnan(result(o)[0])) << result(o)[0];
}

// relu(x w + bias) over x f32[n,100], w[100,200].
Plan dense_layer() {
  using test::n;
  Plan p = test::plan_of({{"x", f32({n, 100})}}, {{"y", f32({n, 200})}});
  std::vector<float> w(100 * 200), bias(200);
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i % 7) - 3;
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i);
  p.weights = {{"w", Array::of<float>(DType::f32, {100, 200}, w)},
               {"bias", Array::of<float>(DType::f32, {200}, bias)}};
  Variant& v = p.main().variants[0];
  v.buffers = {{PlanBuffer::Kind::param, 0, 0, n * 400},
               {PlanBuffer::Kind::weight, 0, 0, 80'000},
               {PlanBuffer::Kind::weight, 1, 0, 800},
               {PlanBuffer::Kind::result, 0, 0, n * 800}};
  Step call{.kind = Step::Kind::library, .name = "onednn.matmul"};
  call.operands = {test::dense(0, DType::f32, {n, 100}), test::dense(1, DType::f32, {100, 200}),
                   test::dense(2, DType::f32, {200}), test::dense(3, DType::f32, {n, 200})};
  call.written = {false, false, false, true};
  call.settings = {{"bias", 1}, {"relu", 1}};
  v.steps = {call, call};  // both read the same packed weights
  return p;
}

void check_dense_layer(Session& s, const Plan& original, std::int64_t rows) {
  Array x = Array::zeros(DType::f32, {rows, 100});
  for (std::int64_t i = 0; i < x.count(); ++i) x.set_real(i, static_cast<double>(i % 5) - 2);
  const Array y = s.run(std::span(&x, 1))[0];
  const auto w = original.weights[0].data.as<float>();
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < 200; ++j) {
      float sum = static_cast<float>(j);
      for (std::int64_t k = 0; k < 100; ++k)
        sum += x.as<float>()[static_cast<std::size_t>(i * 100 + k)] *
               w[static_cast<std::size_t>(k * 200 + j)];
      ASSERT_EQ(y.as<float>()[static_cast<std::size_t>(i * 200 + j)], std::max(sum, 0.0f));
    }
}

TEST(Onednn, PlansKeepWeightsAsTheLibraryWantsThem) {
  Plan p = dense_layer();
  run_prepare(p, open_cpu_device(), make_thread_pool({.threads = 2}));
  const Variant& v = p.main().variants[0];
  // Without AVX-512 it reads the weights of this layer unpacked.
  if (p.prepared.empty() && open_cpu_device()->description() != "x86-64-v4")
    GTEST_SKIP() << "the library keeps these weights as they are on this machine";
  ASSERT_EQ(p.prepared.size(), 1u);
  EXPECT_GE(p.prepared[0].data.size(), 80'000u);
  EXPECT_EQ(v.steps[0].operands[1].buffer, v.steps[1].operands[1].buffer);
  EXPECT_EQ(v.buffers[v.steps[0].operands[1].buffer].kind, PlanBuffer::Kind::prepared);
  const auto path = std::filesystem::path(testing::TempDir()) / "dense.hone";
  write_plan(path, p);
  Session s(Executable::open(path, open_cpu_device()), {.threads = 2});
  for (std::int64_t rows : {1, 2, 33, 500, 0}) check_dense_layer(s, p, rows);
  EXPECT_EQ(s.counters().library_calls, 10);
}

TEST(Onednn, PlansForANarrowerTargetKeepPlainWeights) {
  Plan p = dense_layer();
  p.main().variants[0].devices[0].target = "x86-64-v2";
  run_prepare(p, open_cpu_device(), make_thread_pool({.threads = 1}));
  EXPECT_TRUE(p.prepared.empty());
  Session s(test::load(p));
  check_dense_layer(s, p, 3);
}

TEST(Onednn, EqualBitsForEveryThreadCount) {
  Plan p = dense_layer();
  run_prepare(p, open_cpu_device(), make_thread_pool({.threads = 1}));
  Array x = Array::zeros(DType::f32, {3000, 100});
  for (std::int64_t i = 0; i < x.count(); ++i) x.set_real(i, std::sin(static_cast<double>(i)));
  const auto executable = test::load(p);
  std::vector<float> first;
  for (int threads : {1, 2, 4}) {
    Session s(executable, {.threads = threads});
    for (int i = 0; i < 10; ++i) {
      const Array y = s.run(std::span(&x, 1))[0];
      if (first.empty()) first.assign(y.as<float>().begin(), y.as<float>().end());
      ASSERT_TRUE(std::ranges::equal(first, y.as<float>()));
    }
  }
}

TEST(Onednn, RefusesWhatDoesNotFit) {
  const auto refusal = [](std::string_view name, std::vector<CallOperand> operands,
                          CallSettings settings) -> std::string {
    try {
      onednn::bind(CallRequest{name, operands, settings});
    } catch (const UserError& e) {
      return e.what();
    }
    return "accepted";
  };
  EXPECT_NE(refusal("onednn.matmul", {dense({2, 3}), dense({4, 5}), dense({2, 5})}, {})
                .find("sizes do not fit"),
            std::string::npos);
  EXPECT_NE(refusal("onednn.matmul", {dense({2, 3}), dense({3, 5})}, {}).find("got 2 operands"),
            std::string::npos);
  EXPECT_NE(refusal("onednn.sort", {}, {}).find("not known"), std::string::npos);
  // Weights packed by another version of oneDNN.
  const CallSettings other = {{"packed", 1},
                              {"packed_format", 1},
                              {"packed_rank", 2},
                              {"packed_dim0", 3},
                              {"packed_dim1", 5}};
  EXPECT_NE(refusal("onednn.matmul", {dense({2, 3}), dense({60}), dense({2, 5})}, other)
                .find("packed for another oneDNN"),
            std::string::npos);
}

}  // namespace
}  // namespace hone
