// Tests of the CUDA backend that need no GPU: every operation compiles to machine code, for every
// architecture, and errors name what is missing.
#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <sstream>

#include "backend/backend.h"
#include "compile/compile.h"
#include "kernel/nest/nest_candidate.h"
#include "ops/common.h"
#include "test/backend/conformance.h"
#include "test/ops/harness.h"
#include "verify/reduce/case.h"

#if __has_include(<nvrtc.h>)
#include "backend/cuda/device/memory_split.h"
#include "backend/cuda/driver/code.h"
#include "backend/cuda/target/nvrtc.h"

namespace hone::cuda {
extern const char strided_copy_ptx[];
}

namespace hone::test {
namespace {

class CudaTarget : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string& why = cuda::nvrtc_status().failure; !why.empty())
      GTEST_SKIP() << "NOTHING WAS TESTED: " << why;
  }
};

Plan compiled_for(const Function& f, std::string target = "native") {
  CompileOptions o{.strategy = "auto", .backend = &backend("cuda")};
  o.targets = {std::move(target)};
  o.verification = Verification::none;
  o.threads = 1;
  o.cache = false;
  return compile({"test", {{{}, f}}, {}}, o);
}

// A convolution with a window of 3 x 3 whose result is as large as the image.
Value padded_conv(Value x, Value w, std::int64_t channels_last) {
  const Dims ones = {1, 1};
  return ops::conv(Values{x, w}, {{"strides", ones},
                                  {"dilations", ones},
                                  {"pads_low", ones},
                                  {"pads_high", ones},
                                  {"groups", std::int64_t{1}},
                                  {"channels_last", channels_last}});
}

Function doubled() {
  Function f;
  const Value x = f.add_param(f32({Dim::symbol("n", 0, 1 << 20)}), "x");
  f.add_result(x + x, "y");
  return f;
}

// One sample of each operation; all of them with HONE_CONFORMANCE=full.
TEST_F(CudaTarget, CompilesEveryOperation) {
  const char* set = std::getenv("HONE_CONFORMANCE");
  const bool is_full = set && std::string_view(set) == "full";
  std::size_t kernels = 0, number = 0;
  for (const Op* op : all_ops()) {
    const std::vector<harness::Case> cases = harness::cases_of(*op);
    ++number;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      if (!is_full && i != number % cases.size()) continue;
      try {
        kernels += compiled_for(cases[i].function).kernels.size();
      } catch (const std::exception& e) {
        ADD_FAILURE() << cases[i].name << ": " << e.what();
      }
    }
  }
  std::printf("%zu kernels\n", kernels);
  EXPECT_GT(kernels, 80u);
}

// Layers of equal structure with different weights.
Function deep(int layers) {
  Function f;
  int seed = 0;
  const auto weight = [&](std::vector<std::int64_t> dims) {
    Array a = Array::zeros(DType::f32, std::move(dims));
    ++seed;
    for (std::int64_t i = 0; i < a.count(); ++i)
      a.set_real(i, static_cast<double>((i * 7 + seed) % 13) / 40 - 0.1);
    return constant(f.graph(), a);
  };
  Value x = f.add_param(f32({16, 32}), "x");
  for (int i = 0; i < layers; ++i) {
    const Value h =
        ops::gelu(ops::matmul(x, weight({32, 128})) + broadcast_to(weight({128}), Shape{16, 128}));
    x = x + ops::matmul(h, weight({128, 32}));
    x = ops::layer_norm(Values{x, weight({32}), weight({32})}, {{"axis", 1}, {"epsilon", 1e-5}});
  }
  f.add_result(x, "y");
  return f;
}

// A deep model costs a larger graph only: code is generated for one layer.
TEST_F(CudaTarget, DeepModelsCompileTheKernelsOfOneLayer) {
  const Plan one = compiled_for(deep(1)), many = compiled_for(deep(96));
  EXPECT_GE(one.kernels.size(), 2u);
  EXPECT_EQ(many.kernels.size(), one.kernels.size());
  EXPECT_EQ(many.binaries.size(), one.binaries.size());
  EXPECT_EQ(many.main().variants[0].steps.size(), 96 * one.main().variants[0].steps.size());
}

// The norm with its product, both caches, and the attention.
TEST_F(CudaTarget, ADecodingStepHasThreeLaunches) {
  const Plan plan = compiled_for(decoding_step(DType::f16));
  std::size_t launches = 0;
  for (const Step& s : plan.main().variants[0].steps) launches += s.kind == Step::Kind::launch;
  EXPECT_EQ(launches, 3u);
}

// If no device was present at compile time, weights are prepared when the plan is opened.
TEST_F(CudaTarget, PlansKeepWhatPreparesWeights) {
  if (device_count("cuda") > 0) GTEST_SKIP() << "this machine has a device, which did it";
  Function f;
  Array weights = Array::zeros(DType::f16, {24, 16, 3, 3});
  for (std::int64_t i = 0; i < weights.count(); ++i) weights.set_real(i, 0.01 * (i % 7));
  const Value x = f.add_param(Type(DType::f16, {1, 16, 12, 12}), "x");
  f.add_result(padded_conv(x, constant(f.graph(), weights), 0), "y");
  const Plan plan = compiled_for(f);
  ASSERT_EQ(plan.prepared.size(), 1u) << "weights are packed for tensor cores";
  EXPECT_EQ(plan.main().variants[0].prepare.size(), 1u);
  EXPECT_EQ(plan.weights.size(), 1u);
}

// Steps that prepare weights read what others of them write: none of it is read before a launch
// waits. The plan's builder checks that.
TEST_F(CudaTarget, WhatPreparesWeightsWaitsBeforeItReads) {
  std::size_t launches = 0;
  for (const char* name : {"prepares_7000750", "prepares_7000200", "prepares_7001708"}) {
    std::stringstream text;
    text << std::ifstream(cat(HONE_SOURCE_DIR "/test/backend/cases/", name, ".hone-ir")).rdbuf();
    const Plan plan = compiled_for(parse_case(text.str()).function);
    for (const Step& s : plan.main().variants.at(0).prepare)
      launches += s.kind == Step::Kind::launch;
  }
  EXPECT_GT(launches, 20u);
}

TEST_F(CudaTarget, CompilesForEveryArchitecture) {
  for (std::string_view target : backend("cuda").target_names) {
    const Plan plan = compiled_for(doubled(), std::string(target));
    ASSERT_EQ(plan.binaries.size(), 1u) << target;
    EXPECT_TRUE(plan.binaries[0].target.starts_with("sm_"));
    if (target != "native") {
      EXPECT_EQ(plan.binaries[0].target, target);
    }
  }
  EXPECT_NE(
      refusal([] { compiled_for(doubled(), "sm_42"); }).find("expected one of: native, sm_75"),
      std::string::npos);
}

// A kernel may be launched early only if it waits before it reads or writes memory.
TEST_F(CudaTarget, WhatIsLaunchedEarlyWaitsFirst) {
  for (const std::string target : {"sm_80", "sm_90", "sm_100"}) {
    const Plan plan = compiled_for(doubled(), target);
    cuda::CodeHeader header;
    std::memcpy(&header, plan.binaries.at(0).code.data(), sizeof header);
    EXPECT_EQ(header.waits, target == "sm_80" ? 0u : 1u) << target;
    const std::unique_ptr<Target> made = backend("cuda").target(target);
    GroupSpec spec{doubled(), {}, {}, {false}};
    spec.param_strides = spec.result_strides = {Dims{1}};
    const Candidate nest = nest_candidate(spec, made->info());
    const Kernel& kernel = std::get<Kernel>(nest.steps.at(0).what);
    const std::string ptx = made->list({&kernel, "doubled"}).assembly;
    const std::size_t wait = ptx.find("griddepcontrol.wait"), load = ptx.find("ld.global"),
                      store = ptx.find("st.global");
    ASSERT_TRUE(load != std::string::npos && store != std::string::npos) << ptx;
    if (header.waits) {
      EXPECT_LT(wait, std::min(load, store)) << target;
    }
  }
}

// The unaligned form takes almost as long to compile as the aligned one.
TEST_F(CudaTarget, OnlyWhatMayLieUnalignedHasAFormForThat) {
  for (const std::int64_t before : {3, 4}) {
    Function f;
    Values parts;
    for (const std::int64_t length : {before, std::int64_t{1} << 17})
      parts.push_back(ops::tanh(f.add_param(f32({length}), cat("x", length))));
    f.add_result(concat_values(parts, 0), "y");
    std::uint32_t with_vectors = 0, with_both = 0;
    for (const Binary& b : compiled_for(f).binaries) {
      cuda::CodeHeader header;
      std::memcpy(&header, b.code.data(), sizeof header);
      with_vectors += header.alignment > 1;
      with_both += header.has_unaligned;
    }
    EXPECT_EQ(with_vectors, 1u);
    EXPECT_EQ(with_both, before % 4 == 0 ? 0u : 1u) << "the long part begins at " << before;
  }
}

// Hopper: 132 multiprocessors, each with up to 228 KB of memory for blocks.
TEST(CudaLaunch, AsksForTheMemoryOfBlocksThatRunAtOnce) {
  using cuda::CacheCopies;
  constexpr cuda::Multiprocessors machine{132, 228 << 10, 1 << 10};
  constexpr std::int64_t kib = 1 << 10;
  const auto percent = [&](std::int64_t block, std::int64_t most, std::int64_t blocks,
                           CacheCopies copies = CacheCopies::none) {
    return cuda::shared_percent({block * kib, most, copies}, blocks, machine);
  };
  EXPECT_EQ(percent(0, 8, 1000), 0) << "without shared memory all of it is cache";
  EXPECT_EQ(percent(57, 4, 1), 25);
  EXPECT_EQ(percent(57, 4, 132), 25) << "a block for each multiprocessor";
  EXPECT_EQ(percent(57, 4, 133), 50);
  EXPECT_EQ(percent(57, 2, 1 << 20), 50) << "more do not run at once";
  EXPECT_EQ(percent(57, 4, 1 << 20), 100);
  EXPECT_EQ(percent(57, 4, 1 << 20, CacheCopies::again), 85) << "copies need room in the cache";
  EXPECT_EQ(percent(220, 1, 1 << 20, CacheCopies::again), 97) << "but one block has to fit";
  EXPECT_EQ(percent(57, 4, 132, CacheCopies::again), 25);
  EXPECT_EQ(percent(57, 4, 132, CacheCopies::once), 43) << "100 KB hold no second block";
  EXPECT_EQ(percent(118, 1, 132, CacheCopies::once), 85) << "196 KB";
  EXPECT_EQ(percent(57, 4, 1 << 20, CacheCopies::once), 85);
  EXPECT_EQ(cuda::shared_percent({60 * kib, 2, CacheCopies::once}, 1, {108, 164 * kib, kib}), 60)
      << "100 KB of an A100, whose 164 would leave too little";
  EXPECT_EQ(cuda::shared_percent({57 * kib, 4}, 1000, {}), 0) << "of unknown devices";
}

TEST_F(CudaTarget, KernelsSayWhatTheyCopyThroughTheFirstCache) {
  using cuda::CacheCopies;
  const auto copies = [](const Function& f) {
    cuda::CodeHeader header;
    std::memcpy(&header, compiled_for(f, "sm_90").binaries.at(0).code.data(), sizeof header);
    EXPECT_GT(header.shared_bytes, 0u);
    return header.copies;
  };
  const auto product = [&](std::int64_t rows) {
    Function f;
    f.add_result(ops::matmul(f.add_param(Type(DType::f16, Shape{rows, 1024}), "x"),
                             f.add_param(Type(DType::f16, Shape{1024, 1024}), "w")),
                 "y");
    return copies(f);
  };
  EXPECT_EQ(product(256), CacheCopies::again) << "several groups read a part of x, and of w";
  EXPECT_EQ(product(16), CacheCopies::once) << "each group has its own part of w";
  Function rows, windows;
  rows.add_result(ops::softmax(rows.add_param(f32({8, 1 << 18}), "x"), {{"axis", 1}}), "y");
  EXPECT_EQ(copies(rows), CacheCopies::none)
      << "a row stays in the memory of blocks, past that cache";
  windows.add_result(padded_conv(windows.add_param(Type(DType::f16, Shape{1, 8, 8, 64}), "x"),
                                 windows.add_param(Type(DType::f16, Shape{3, 3, 64, 64}), "w"), 1),
                     "y");
  EXPECT_EQ(copies(windows), CacheCopies::again) << "windows overlap";
}

// From sm_90 on, clusters of blocks keep rows in shared memory; older architectures read them
// again.
TEST_F(CudaTarget, LongRowsCompileForEveryArchitecture) {
  for (std::string_view target : backend("cuda").target_names) {
    Function f;
    f.add_result(ops::softmax(f.add_param(f32({8, 65536}), "x"), {{"axis", 1}}), "y");
    const Plan plan = compiled_for(f, std::string(target));
    ASSERT_EQ(plan.binaries.size(), 1u) << target;
    cuda::CodeHeader header;
    std::memcpy(&header, plan.binaries[0].code.data(), sizeof header);
    const bool has_clusters =
        plan.binaries[0].target != "sm_75" && !plan.binaries[0].target.starts_with("sm_8");
    EXPECT_EQ(header.blocks, has_clusters ? 4u : 1u) << target;
    EXPECT_EQ(header.threads, has_clusters ? 256u : 1024u) << target;
  }
}

// The stored PTX, which machines without a compiler run, must match its source.
TEST_F(CudaTarget, StridedCopyIsWhatItsSourceSays) {
  std::ifstream file(HONE_SOURCE_DIR "/src/backend/cuda/device/strided_copy.cu");
  const std::string source(std::istreambuf_iterator<char>(file), {});
  const std::vector<std::byte> made = cuda::nvrtc_compile(source, "strided_copy", "compute_75");
  const auto instructions = [](const std::string& ptx) {
    std::istringstream in(ptx);
    std::string out;
    for (std::string line; std::getline(in, line);)
      if (!line.empty() && !line.starts_with("//") && !line.starts_with(".version"))
        out += line + '\n';
    while (!out.empty() && (out.back() == '\n' || out.back() == '\0')) out.pop_back();
    return out;
  };
  const std::string text(reinterpret_cast<const char*>(made.data()));
  if (cuda::nvrtc_status().version != "13.0") GTEST_SKIP() << "the text was made by NVRTC 13.0";
  EXPECT_EQ(instructions(text), instructions(cuda::strided_copy_ptx));
}

TEST(CudaDevice, WithoutADriverTheMessageNamesTheLibrary) {
  if (device_count("cuda") > 0) GTEST_SKIP() << "this machine has one";
  EXPECT_EQ(std::ranges::count(device_names(), "cuda"), 0);
  EXPECT_NE(refusal([] { open_device("cuda"); }).find("libcuda.so.1"), std::string::npos);
  CompileOptions o{.strategy = "cuda"};
  EXPECT_NE(refusal([&] { compile({"test", {{{}, doubled()}}, {}}, o); }).find("libcuda.so.1"),
            std::string::npos);
}

// Runs a kernel on an invalid address. The error is reported once and names the kernel; from then
// on the device is refused with that message, even if opened again; other devices work. Returns the
// first expectation that fails.
std::string fault_and_go_on(const Plan& plan) {
  const PlanKernel& kernel = plan.kernels.at(0);
  const auto lacks = [](const std::string& text, std::string_view word) {
    return text.find(word) == std::string::npos;
  };
  {
    const std::shared_ptr<Device> device = open_device("cuda");
    const auto program = device->load(std::array{&plan.binaries.at(kernel.binary)}, "test");
    const std::unique_ptr<Stream> stream = device->open_stream();
    const std::vector<DeviceMemory> nowhere(2, DeviceMemory{0x1000, 0});
    const std::int64_t sizes[] = {1000};
    Launch launch{.entry = program->entry(kernel.entry), .operands = nowhere};
    launch.sizes = sizes;
    launch.chunks = 4;
    const std::string first = refusal([&] {
      stream->launch(launch);
      stream->synchronize();
    });
    if (lacks(first, "ILLEGAL_ADDRESS") || lacks(first, kernel.entry)) return "first: " + first;
    const std::string second = refusal([&] { device->alloc(64); });
    if (lacks(second, "refused after an earlier error")) return "second: " + second;
  }
  // If the driver can create a new context, the device works again.
  std::string again;
  try {
    const OwnedMemory memory(open_device("cuda"), 64);
  } catch (const UserError& e) {
    again = e.what();
  }
  if (!again.empty() && (lacks(again, "start a new process") || lacks(again, kernel.entry)))
    return "again: " + again;
  const Function f = doubled();
  const auto plan_here =
      std::make_shared<const Plan>(compile({"test", {{{}, f}}, {}}, {.strategy = "cpu"}));
  const Array x = harness::filled(f32({1000}), [](DType) { return 3.0; });
  const std::vector<Array> y =
      Session(Executable::load(plan_here, open_devices(*plan_here))).run(std::vector{x});
  return y.at(0).real(7) == 6.0 ? "" : "the processor computes something else";
}

// Runs in its own process, because the driver is unusable there afterwards.
TEST(CudaDevice, AfterAFaultTheProcessLivesOn) {
  if (device_count("cuda") == 0) GTEST_SKIP() << "this machine has none";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const std::string wrong = fault_and_go_on(compiled_for(doubled()));
        std::fprintf(stderr, "%s\n", wrong.empty() ? "lived on" : wrong.c_str());
        std::exit(wrong.empty() ? 0 : 1);
      },
      testing::ExitedWithCode(0), "lived on");
}

}  // namespace
}  // namespace hone::test
#endif
