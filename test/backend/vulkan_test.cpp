// Tests specific to the Vulkan backend: SPIR-V that its validator accepts, no messages of the
// validation layers, weights larger than a shader may bind, and error messages. Needs a Vulkan
// device, which may be software: HONE_VULKAN_DEVICE names it.
#ifdef HONE_VULKAN
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "backend/vulkan/device/queue.h"
#include "backend/vulkan/device/stream.h"
#include "backend/vulkan/driver/machine.h"
#include "backend/vulkan/shader/shader.h"
#include "backend/vulkan/target/glsl.h"
#include "backend/vulkan/target/vulkan_target.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "plan/plan_file.h"
#include "ref/evaluate.h"
#include "test/backend/conformance.h"
#include "test/compile/models.h"
#include "test/kernel/steps.h"
#include "test/ops/harness.h"
#include "verify/sample.h"

namespace hone::test {
namespace {

bool tries_all() {
  const char* set = std::getenv("HONE_CONFORMANCE");
  return set && std::string_view(set) == "full";
}

CompileOptions vulkan_options() {
  CompileOptions o{.strategy = "auto", .backend = &backend("vulkan")};
  o.verification = Verification::none;
  o.threads = 2;
  o.cache = false;
  return o;
}

Plan vulkan_plan(const Function& f) { return compile({"test", {{{}, f}}, {}}, vulkan_options()); }

// The output of spirv-val for a plan's kernels; empty if it accepts them.
std::string refused_by_validator(const Plan& plan) {
  const std::string file = testing::TempDir() + cat("/kernel_", getpid(), ".spv");
  std::string out;
  const auto validate = [&](std::span<const std::byte> spirv) {
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(spirv.data()),
               static_cast<std::streamsize>(spirv.size()));
    const std::string command =
        cat("spirv-val --target-env vulkan1.2 --scalar-block-layout ", file, " 2>&1");
    FILE* pipe = popen(command.c_str(), "r");
    char line[512];
    while (std::fgets(line, sizeof line, pipe)) out += line;
    if (pclose(pipe) != 0 && out.empty()) out = "spirv-val fails";
  };
  for (const Binary& b : plan.binaries) {
    vulkan::ShaderHeader header;
    std::memcpy(&header, b.code.data(), sizeof header);
    const auto spirv = std::span(b.code).subspan(sizeof header);
    validate(spirv.first(header.code_words * 4));
    if (header.plain_words > 0) validate(spirv.subspan(header.code_words * 4));
  }
  std::remove(file.c_str());
  return out;
}

// One sample of each operation; all of them with HONE_CONFORMANCE=full.
TEST(VulkanTarget, EveryOperationIsValidSpirv) {
  std::size_t kernels = 0, number = 0;
  for (const Op* op : all_ops()) {
    const std::vector<harness::Case> cases = harness::cases_of(*op);
    ++number;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      if (!tries_all() && i != number % cases.size()) continue;
      try {
        const Plan plan = vulkan_plan(cases[i].function);
        kernels += plan.kernels.size();
        EXPECT_EQ(refused_by_validator(plan), "") << cases[i].name;
      } catch (const std::exception& e) {
        ADD_FAILURE() << cases[i].name << ": " << e.what();
      }
    }
  }
  std::printf("%zu kernels\n", kernels);
  EXPECT_GT(kernels, 80u);
}

struct SpirvModule {
  std::uint32_t bound = 0;  // of ids
  // The opcode of each instruction, followed by its operand words.
  std::vector<std::pair<std::uint32_t, std::vector<std::uint32_t>>> instructions;
};

SpirvModule spirv_of(const Binary& b) {
  vulkan::ShaderHeader header;
  std::memcpy(&header, b.code.data(), sizeof header);
  std::vector<std::uint32_t> words(header.code_words);
  std::memcpy(words.data(), b.code.data() + sizeof header, words.size() * 4);
  SpirvModule out{words[3], {}};
  for (std::size_t at = 5; at < words.size(); at += words[at] >> 16)
    out.instructions.emplace_back(
        words[at] & 0xffff,
        std::vector(&words[at + 1], &words[at] + std::max(words[at] >> 16, 1u)));
  return out;
}

Kernel first_kernel(const Function& f, std::string_view target) {
  const std::vector<Proposal> all = backend("vulkan").target(target)->candidates(spec_of(f));
  return std::get<Kernel>(all.front().candidate.steps.at(0).what);
}

// NVIDIA's driver 580.159 crashes on a shader that has a division and subgroupMin(x) of floats, or
// -subgroupMax(-x).
TEST(VulkanTarget, MinimaOfFloatsUseSharedMemory) {
  constexpr std::uint32_t float_min = 355, float_max = 358;  // OpGroupNonUniformFMin and FMax
  const auto uses_of = [&](const Op& reduce) {
    Function f;
    const Value one = reduce_axes(reduce, f.add_param(f32({17, 17}), "x"), {0, 1});
    f.add_result(one / (one + 1.0), "y");
    std::map<std::uint32_t, int> uses;
    for (const Binary& b : vulkan_plan(f).binaries)
      for (const auto& [op, words] : spirv_of(b).instructions) ++uses[op];
    return std::pair(uses[float_min], uses[float_max]);
  };
  EXPECT_EQ(uses_of(ops::reduce_min), std::pair(0, 0));
  EXPECT_GT(uses_of(ops::reduce_max).second, 0);
}

// A driver that sees both conversions may remove them, and with them the rounding.
TEST(VulkanTarget, RoundingIsHiddenFromDrivers) {
  Function f;
  const Value x = f.add_param(f32({64}), "x");
  f.add_result(ops::abs(cast_to(cast_to(x, DType::f16), DType::f32)), "y");
  const std::string text = c::shader(first_kernel(f, "vulkan1.2")).text;
  EXPECT_NE(text.find("hone_f32_of_f16(hone_kept_f16_of_f32("), std::string::npos) << text;
}

// Such as the zeros that a product keeps in registers before its first tiles arrive.
TEST(VulkanTarget, ConstantsAreNotHiddenFromDrivers) {
  Function f;
  f.add_result(ops::matmul(f.add_param(f16({256, 256}), "a"), f.add_param(f16({256, 256}), "b")),
               "y");
  const std::string text = c::shader(first_kernel(f, "vulkan1.3-matrices")).text;
  EXPECT_EQ(text.find("kept_f16"), std::string::npos) << text;
}

// With 64 multiplications a step, NVIDIA's driver needs longer for unrolled steps, and so many
// registers that only one group runs at a time. Steps of 32 multiplications are faster unrolled.
TEST(VulkanTarget, LargeTilesOfProductsStayLoops) {
  const auto loops_before_sums = [](std::int64_t n) {
    Function f;
    f.add_result(ops::matmul(f.add_param(f32({n, 512}), "a"), f.add_param(f32({512, n}), "b")),
                 "y");
    const std::string text = c::shader(first_kernel(f, "vulkan1.2-large")).text;
    const std::size_t loop = text.rfind("for (int32_t k", text.find("= hone_fma_f32("));
    const std::size_t hint = text.rfind("[[", loop);
    return text.substr(hint, text.find(']', hint) - hint);
  };
  EXPECT_EQ(loops_before_sums(2048), "[[dont_unroll");
  EXPECT_EQ(loops_before_sums(512), "[[unroll");
}

// With 32 elements and their weights a thread needs so many registers that only one group runs at a
// time.
TEST(VulkanTarget, ThreadsTakeFewerElementsOfRowsWithWeights) {
  const auto threads = [](const char* target, DType t, bool has_weights) {
    Function f;
    const Value x = f.add_param(Type(t, Shape{8192, 16384}), "x");
    const Values with = {x, f.add_param(Type(t, Shape{16384}), "w")};
    f.add_result(has_weights ? ops::rms_norm(with, {{"axis", 1}, {"epsilon", 1e-5}})
                             : ops::softmax(x, {{"axis", 1}}),
                 "y");
    return group_threads(first_kernel(f, target));
  };
  EXPECT_EQ(threads("vulkan1.2-large", DType::f32, true), 1024);
  EXPECT_EQ(threads("vulkan1.2-large", DType::f32, false), 512);
  EXPECT_EQ(threads("vulkan1.2-large", DType::f16, true), 512);
}

TEST(VulkanTarget, KnowsItsForms) {
  EXPECT_NE(refusal([] { backend("vulkan").target("vulkan9"); }).find("vulkan1.3-large"),
            std::string::npos);
  vulkan::Adapter a;
  a.limits.maxComputeWorkGroupInvocations = a.limits.maxComputeWorkGroupSize[0] = 1024;
  a.limits.maxComputeSharedMemorySize = 32768;
  EXPECT_EQ(vulkan::form_of(a).name, "vulkan1.2-large");
  a.limits.maxComputeSharedMemorySize = 49152;
  EXPECT_EQ(vulkan::form_of(a).name, "vulkan1.2-large");
  a.multiplies_matrices = true;  // of no use without subgroups, to which they belong
  EXPECT_EQ(vulkan::form_of(a).name, "vulkan1.2-large");
  a.joins_in_subgroups = a.shuffles_in_subgroups = true;
  a.least_subgroup = 16, a.most_subgroup = 32, a.group_subgroups = 16;
  EXPECT_EQ(vulkan::form_of(a).name, "vulkan1.2-large");
  a.group_subgroups = 32;
  a.multiplies_matrices = false;
  EXPECT_EQ(vulkan::form_of(a).name, "vulkan1.3-large");
  a.multiplies_matrices = true;
  EXPECT_EQ(vulkan::form_of(a).name, "vulkan1.3-matrices");
  a.limits.maxComputeSharedMemorySize = 16384;
  EXPECT_EQ(vulkan::form_of(a).name, "vulkan1.2");
  for (std::string_view name : backend("vulkan").target_names) {
    const auto target = backend("vulkan").target(name);
    EXPECT_TRUE(name == "native" || target->info().name == name) << name;
    EXPECT_GE(target->info().group_threads, 256) << name;
  }
}

// glslang wrote NVIDIA's matrices, the binary holds those of Khronos: types of three uses, loads by
// rows and by columns, products and stores. A device without them refuses the plan by its target
// name.
TEST(VulkanTarget, MatricesAreThoseOfKhronos) {
  Function f;
  const Value x = f.add_param(f16({64, 64}), "x"), w = f.add_param(f16({96, 64}), "w");
  f.add_result(ops::matmul(x, transpose_matrix(w)), "y");
  const auto target = backend("vulkan").target("vulkan1.3-matrices");
  const Candidate c = target->candidates(spec_of(f)).front().candidate;
  ASSERT_EQ(c.name, "tensor");
  const auto pool = make_thread_pool({.threads = 1});
  const CompileJob job{&std::get<Kernel>(c.steps.at(0).what), "entry"};
  const Binary b = target->compile(std::span(&job, 1), *pool).at(0);
  vulkan::ShaderHeader header;
  std::memcpy(&header, b.code.data(), sizeof header);
  EXPECT_EQ(header.subgroup, 32u);
  const SpirvModule module = spirv_of(b);
  // Numbers of SPIR-V and of SPV_KHR_cooperative_matrix.
  constexpr std::uint32_t capability = 17, constant = 43, extension = 10, nv_capability = 5357,
                          khr_capability = 6022, type = 4456, load = 4457, store = 4458,
                          multiply = 4459;
  std::map<std::uint32_t, std::uint32_t> numbers;  // by id
  std::multiset<std::uint32_t> uses, layouts;
  std::size_t stores = 0, products = 0, capabilities = 0, largest = 0;
  for (const auto& [op, words] : module.instructions) {
    EXPECT_FALSE(op >= 5358 && op <= 5362) << "an instruction of NVIDIA's extension";
    EXPECT_FALSE(op == capability && words[0] == nv_capability);
    const bool names_extension =
        op == extension && std::string_view(reinterpret_cast<const char*>(words.data())) ==
                               "SPV_NV_cooperative_matrix";
    EXPECT_FALSE(names_extension);
    capabilities += op == capability && words[0] == khr_capability;
    if (op == constant) numbers[words[1]] = words[2];
    if (op == constant) largest = std::max<std::size_t>(largest, words[1]);
    if (op == type) uses.insert(numbers.at(words[5]));
    if (op == load) layouts.insert(numbers.at(words[3]));
    stores += op == store;
    products += op == multiply;
  }
  EXPECT_EQ(capabilities, 1u);
  EXPECT_LT(largest, module.bound) << "an id beyond the bound";
  EXPECT_EQ(uses, (std::multiset<std::uint32_t>{0, 1, 2}));
  EXPECT_TRUE(layouts.contains(0) && layouts.contains(1));
  EXPECT_GT(stores, 0u);
  EXPECT_GT(products, 0u);
  if (!std::getenv("HONE_VULKAN_DEVICE")) return;
  const std::shared_ptr<Device> device = open_device("vulkan");
  if (device->rank(b.target) > 0) return;
  const Binary* binaries[] = {&b};
  EXPECT_NE(refusal([&] { device->load(binaries, "plan.hone"); }).find("vulkan1.3-matrices"),
            std::string::npos);
}

// Forms support different kernels; every candidate must be one that its form supports.
TEST(VulkanTarget, EveryFormCompilesItsAttention) {
  const auto pool = make_thread_pool({.threads = 1});
  int compiled = 0;
  for (std::string_view name : backend("vulkan").target_names) {
    const auto target = backend("vulkan").target(name);
    for (const DType t : {DType::f16, DType::f32})
      for (const auto& [queries, is_causal] : {std::pair{1, false}, {128, false}, {128, true}}) {
        Function f;
        Values in = {f.add_param(Type(t, {4, queries, 64}), "q")};
        for (const char* each : {"k", "v"}) in.push_back(f.add_param(Type(t, {4, 128, 64}), each));
        Attrs attrs = {{"scale", 0.125}};
        if (is_causal) attrs.set("causal", Dims{0});
        f.add_result(ops::attention(in, attrs), "y");
        for (const auto& each : target->candidates(spec_of(f)))
          for (const Candidate::Step& step : each.candidate.steps) {
            const auto* kernel = std::get_if<Kernel>(&step.what);
            if (!kernel) continue;
            const CompileJob job{kernel, "entry"};
            EXPECT_NO_THROW(target->compile(std::span(&job, 1), *pool))
                << name << " " << t << " " << each.candidate.name;
            ++compiled;
          }
      }
  }
  EXPECT_GE(compiled, 16);
}

// Kernels for large and for small thread groups; the device may not support the large ones.
TEST(Vulkan, EveryFormRuns) {
  if (!std::getenv("HONE_VULKAN_DEVICE")) GTEST_SKIP() << "HONE_VULKAN_DEVICE names no device";
  Function f;
  const Value x = f.add_param(f32({300, 8192}), "x"), w = f.add_param(f32({8192, 70}), "w");
  f.add_result(ops::softmax(x, {{"axis", 1}}), "y");
  f.add_result(ops::matmul(x, w), "z");
  std::vector<Array> inputs;
  for (const Type& t : f.param_types())
    inputs.push_back(sample_array(t, {}, Fill::random, inputs.size()));
  const std::shared_ptr<Device> device = open_device("vulkan");
  int tried = 0;
  for (std::string_view name : backend("vulkan").target_names) {
    CompileOptions o = vulkan_options();
    o.targets = {std::string(name)};
    const auto plan = std::make_shared<const Plan>(compile({"test", {{{}, f}}, {}}, o));
    if (device->rank(plan->binaries.at(0).target) < 0) continue;
    expect_accepted(Session(Executable::load(plan, device), {}).run(inputs), f, inputs);
    ++tried;
  }
  EXPECT_GE(tried, 2);
}

std::string refusal_with(const char* variable, const char* value) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    setenv(variable, value, 1);
    setenv("HONE_VULKAN_VALIDATION", "0", 1);
    const std::string text = refusal([] { vulkan::choose_adapter(vulkan::Instance()); });
    (void)!write(ends[1], text.data(), text.size());
    _exit(0);
  }
  close(ends[1]);
  std::string out(4096, '\0');
  const ssize_t count = read(ends[0], out.data(), out.size());
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return out.substr(0, static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
}

TEST(Vulkan, WhatIsMissingIsNamed) {
  const std::string driver = refusal_with("VK_DRIVER_FILES", "/nonexistent.json");
  EXPECT_NE(driver.find("install a driver (Debian: mesa-vulkan-drivers"), std::string::npos)
      << driver;
  const std::string number = refusal_with("HONE_VULKAN_DEVICE", "99");
  EXPECT_NE(number.find("HONE_VULKAN_DEVICE is '99', expected one of: 0: "), std::string::npos)
      << number;
}

// Compiling a plan needs no device, and running it needs no compiler.
TEST(Vulkan, APlanFileRuns) {
  if (!std::getenv("HONE_VULKAN_DEVICE")) GTEST_SKIP() << "HONE_VULKAN_DEVICE names no device";
  Function f;
  const Value x = f.add_param(f32({4, 8}), "x");
  f.add_result(reduce_axes(ops::reduce_sum, x * x, {1}), "y");
  const std::string file = testing::TempDir() + cat("/vulkan_", getpid(), ".hone");
  write_plan(file, vulkan_plan(f));
  const auto plan = std::make_shared<const Plan>(read_plan(file));
  EXPECT_TRUE(plan->binaries.at(0).target.starts_with("vulkan1."));
  Session session(Executable::load(plan, open_devices(*plan)), {});
  Array a = Array::zeros(DType::f32, {4, 8});
  for (std::int64_t i = 0; i < a.count(); ++i) a.set_real(i, static_cast<double>(i));
  EXPECT_EQ(session.run(std::span(&a, 1))[0].real(0), 0 + 1 + 4 + 9 + 16 + 25 + 36 + 49);
  std::remove(file.c_str());
}

std::size_t entries_of(const char* directory) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(directory), {}));
}

// Devices, streams and plans are released with their sessions, and the drivers stay loaded.
TEST(Vulkan, ManySessionsLeaveNothingBehind) {
  if (!std::getenv("HONE_VULKAN_DEVICE")) GTEST_SKIP() << "HONE_VULKAN_DEVICE names no device";
  Function f;
  const Value x = f.add_param(f32({64}), "x");
  f.add_result(x * 2.0, "y");
  const auto plan = std::make_shared<const Plan>(vulkan_plan(f));
  Array a = Array::zeros(DType::f32, {64});
  a.set_real(5, 3);
  const auto run = [&] {
    Session session(Executable::load(plan, open_device("vulkan")), {});
    EXPECT_EQ(session.run(std::span(&a, 1))[0].real(5), 6);
  };
  const vulkan::Instance* const first = vulkan::open_instance().get();
  run();
  const std::size_t files = entries_of("/proc/self/fd"), threads = entries_of("/proc/self/task");
  for (int i = 0; i < 200; ++i) run();
  EXPECT_EQ(vulkan::open_instance().get(), first) << "the drivers were loaded again";
  EXPECT_LE(entries_of("/proc/self/fd"), files);
  // A thread that has ended stays listed until the system has removed it.
  for (int i = 0; i < 100 && entries_of("/proc/self/task") > threads; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_LE(entries_of("/proc/self/task"), threads);
}

// A kernel does large aligned copies; the driver does the rest.
TEST(Vulkan, CopiesBeginAndEndAnywhere) {
  if (!std::getenv("HONE_VULKAN_DEVICE")) GTEST_SKIP() << "HONE_VULKAN_DEVICE names no device";
  const std::shared_ptr<Device> device = open_device("vulkan");
  const std::unique_ptr<Stream> stream = device->open_stream();
  constexpr std::size_t most = (std::size_t{1} << 17) + 64;
  const OwnedMemory from(device, most), to(device, most);
  std::vector<std::byte> sent(most), got(most);
  for (std::size_t i = 0; i < most; ++i) sent[i] = static_cast<std::byte>(i * 31 + (i >> 8));
  stream->upload(from.at(), sent);
  for (const std::size_t bytes : {1 << 17, (1 << 17) + 5, 1 << 16, (1 << 16) - 16, 3})
    for (const std::int64_t offset : {0, 16, 4, 1}) {
      stream->fill(to.at(), std::byte{0xee}, most);
      stream->copy(to.at() + offset, from.at() + offset, bytes);
      stream->download(got, to.at());
      stream->synchronize();
      std::vector<std::byte> expected(most, std::byte{0xee});
      std::copy_n(sent.begin() + offset, bytes, expected.begin() + offset);
      EXPECT_TRUE(got == expected) << bytes << " bytes at " << offset;
    }
}

// 200 MB: more than maxStorageBufferRange of Mesa's software device.
TEST(Vulkan, AWeightMayBeLargerThanWhatIsBound) {
  if (!std::getenv("HONE_VULKAN_DEVICE")) GTEST_SKIP() << "HONE_VULKAN_DEVICE names no device";
  constexpr std::int64_t rows = 50'000'000 / 64, row = 64;
  Function f;
  const Value x = f.add_param(f32({rows, row}), "x");
  f.add_result(slice_axis(x * 2.0, 0, rows - 3, 3), "end");
  f.add_result(reduce_axes(ops::reduce_sum, slice_axis(x, 1, 0, 1), {0, 1}), "sum");
  const auto plan = std::make_shared<const Plan>(vulkan_plan(f));
  Session session(Executable::load(plan, open_device("vulkan")), {});
  Array a = Array::zeros(DType::f32, {rows, row});
  for (std::int64_t i = 0; i < rows; ++i) a.set_real(i * row, static_cast<double>(i % 2));
  for (std::int64_t i = 0; i < 3 * row; ++i) a.set_real((rows - 3) * row + i, 1);
  const std::vector<Array> got = session.run(std::span(&a, 1));
  EXPECT_EQ(got[0].real(3 * row - 1), 2);
  double sum = 0;
  for (std::int64_t i = 0; i < rows; ++i) sum += a.real(i * row);
  EXPECT_EQ(got[1].real(0), sum);
}

// Mesa 22.3 narrows a remainder, and finds its comparison with a constant of 64 bits false.
TEST(Vulkan, PositionsOfOpenSizesAreComparedWithConstants) {
  if (!std::getenv("HONE_VULKAN_DEVICE")) GTEST_SKIP() << "HONE_VULKAN_DEVICE names no device";
  const Dim n = Dim::symbol("n", 1, 1 << 20), h = Dim::symbol("h", 1, 1 << 20);
  Function f;
  const Value x = f.add_param(f32({n, 8, h, 1, 3}), "x");
  f.add_result(pad_with(x, scalar(f.graph(), 0, DType::f32), {0, 0, 0, 0, 0}, {0, 0, 0, 1, 0}),
               "y");
  const auto plan = std::make_shared<const Plan>(vulkan_plan(f));
  const Array a = sample_array(f32({2, 8, 3, 1, 3}), {}, Fill::random, 1);
  const std::vector<Array> got =
      Session(Executable::load(plan, open_device("vulkan")), {}).run(std::span(&a, 1));
  EXPECT_TRUE(std::ranges::equal(got[0].bytes(), evaluate(f, std::span(&a, 1))[0].bytes()));
}

// If the size of subgroups is known, neighbours exchange values instead of meeting at barriers.
TEST(Vulkan, NeighboursOfASubgroupExchangeValues) {
  if (!std::getenv("HONE_VULKAN_DEVICE")) GTEST_SKIP() << "HONE_VULKAN_DEVICE names no device";
  const auto device = open_device("vulkan");
  const vulkan::Adapter& adapter = vulkan::Shared::open()->machine->adapter;
  static vulkan::Form form;  // functions of a backend hold no data
  form = {"vulkan1.2", 256, 16 << 10, 2 << 10, false, adapter.most_subgroup};
  // Mesa's device has a size that kernels may require.
  ASSERT_TRUE(adapter.most_subgroup > 0 || !adapter.is_software);
  if (adapter.most_subgroup == 0 || !form.fits(adapter))
    GTEST_SKIP() << "kernels may not require a size of subgroups";
  Backend of_known_size = backend("vulkan");
  of_known_size.target = [](std::string_view) { return vulkan::make_target(form); };
  CompileOptions options = vulkan_options();
  options.backend = &of_known_size;
  const auto attend = [](Function& f, std::int64_t queries) {
    const auto heads = [&](std::int64_t length, const char* name) {
      return f.add_param(f32({2, length, 32}), name);
    };
    const Values read = {heads(queries, "q"), heads(90, "k"), heads(90, "v")};
    f.add_result(ops::attention(read, {{"scale", 0.2}, {"causal", Dims{20}}}), "y");
  };
  Function many, one, product;
  attend(many, 70);
  attend(one, 1);
  product.add_result(
      ops::matmul(product.add_param(f32({2, 256}), "x"), product.add_param(f32({256, 32}), "w")),
      "y");
  for (const Function* f : {&many, &one, &product}) {
    const auto plan = std::make_shared<const Plan>(compile({"test", {{{}, *f}}, {}}, options));
    const bool exchanges = std::ranges::any_of(plan->binaries, [](const Binary& b) {
      vulkan::ShaderHeader header;
      std::memcpy(&header, b.code.data(), sizeof header);
      constexpr std::uint32_t op_shuffle_xor = 346;
      const auto all = spirv_of(b).instructions;
      return header.subgroup == form.subgroup &&
             std::ranges::any_of(all, [](const auto& i) { return i.first == op_shuffle_xor; });
    });
    EXPECT_TRUE(exchanges);
    std::vector<Array> inputs;
    for (const Type& t : f->param_types())
      inputs.push_back(sample_array(t, {}, Fill::random, inputs.size()));
    expect_accepted(Session(Executable::load(plan, device), {}).run(inputs), *f, inputs);
  }
}

// Adjacent elements are accessed as words if all operands begin at multiples of 16 bytes, else one
// by one.
TEST(Vulkan, VectorsAreAsTheirElements) {
  if (!std::getenv("HONE_VULKAN_DEVICE")) GTEST_SKIP() << "HONE_VULKAN_DEVICE names no device";
  const std::shared_ptr<Device> device = open_device("vulkan");
  const std::unique_ptr<Stream> stream = device->open_stream();
  constexpr std::int64_t count = 1 << 17;
  for (DType t : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8, DType::u8, DType::i16,
                  DType::u16, DType::i32, DType::u32, DType::i64, DType::u64, DType::b1}) {
    Function f;
    const Value x = f.add_param({t, Shape({count})}, "x");
    f.add_result(t == DType::b1 ? ops::bit_not(x) : x * x, "y");
    const Plan plan = vulkan_plan(f);
    ASSERT_EQ(plan.main().variants[0].steps.size(), 1u) << t;
    const Step& step = plan.main().variants[0].steps[0];
    const PlanKernel& kernel = plan.kernels.at(step.index);
    const Binary& binary = plan.binaries.at(kernel.binary);
    vulkan::ShaderHeader header;
    std::memcpy(&header, binary.code.data(), sizeof header);
    EXPECT_EQ(header.alignment, 16u) << t << ": no vectors";
    const auto program = device->load(std::array{&binary}, "test");
    Array in = Array::zeros(t, {count});
    for (std::int64_t i = 0; i < count; ++i)
      is_float(t) ? in.set_real(i, static_cast<double>(i % 37) / 4) : in.set_integer(i, i % 11);
    const std::vector<Array> expected = evaluate(f, std::span(&in, 1));
    for (std::int64_t offset : {0, byte_size(t)}) {
      const std::size_t bytes = in.bytes().size();
      const OwnedMemory from(device, bytes + 64), to(device, bytes + 64);
      stream->upload(from.at() + offset, in.bytes());
      const DeviceMemory operands[] = {(step.written[0] ? to : from).at() + offset,
                                       (step.written[1] ? to : from).at() + offset};
      Launch launch{.entry = program->entry(kernel.entry), .operands = operands};
      launch.chunks = step.chunks.number();
      stream->launch(launch);
      Array got = Array::zeros(t, {count});
      stream->download(got.writable_bytes(), to.at() + offset);
      stream->synchronize();
      EXPECT_TRUE(std::ranges::equal(got.bytes(), expected[0].bytes())) << t << " at " << offset;
    }
  }
}

TEST(Vulkan, AccessesConflictWhereOneWritesWhatTheOtherUses) {
  using vulkan::Access;
  vulkan::Accesses before;
  const Access used[] = {{100, 200, false}, {200, 300, true}};
  before.add(used);
  const auto waits = [&](Access next) { return before.conflict(std::span(&next, 1)); };
  EXPECT_FALSE(waits({100, 200, false})) << "both read";
  EXPECT_TRUE(waits({150, 151, true})) << "writes what is read";
  EXPECT_TRUE(waits({299, 301, false})) << "reads what is written";
  EXPECT_TRUE(waits({200, 201, true})) << "writes what is written";
  EXPECT_FALSE(waits({0, 100, true})) << "ends where the other begins";
  EXPECT_FALSE(waits({300, 400, true})) << "begins where the other ends";
  before.clear();
  EXPECT_FALSE(waits({0, 400, true}));
}

TEST(Vulkan, BarriersStandWhereDataFlows) {
  if (!std::getenv("HONE_VULKAN_DEVICE")) GTEST_SKIP() << "HONE_VULKAN_DEVICE names no device";
  const auto machine = std::make_shared<vulkan::Machine>();
  vulkan::Memory memory(machine);
  vulkan::Work work(machine, std::make_shared<vulkan::Staging>(machine));
  constexpr std::uint64_t bytes = 1024;
  std::vector<DeviceMemory> all;
  for (int i = 0; i < 4; ++i) all.push_back(memory.alloc(bytes));
  const auto place = [&](int i) { return memory.find(all[static_cast<std::size_t>(i)], bytes); };
  work.add_fill(place(0), bytes, 1);
  work.add_fill(place(1), bytes, 2);
  work.add_copy(place(0), place(2), bytes);  // after the fill
  work.add_copy(place(1), place(3), bytes);
  work.add_fill(place(0), bytes / 2, 3);  // after the copy that reads it
  work.add_fill(place(1), bytes, 4);
  work.add_fill(place(0).at(bytes / 2), bytes / 2, 5);
  const vulkan::Work::Staged got = work.stage(4 * bytes, 16);
  for (int i = 0; i < 4; ++i)  // after all fills
    work.add_copy(place(i), got.place.at(static_cast<std::uint64_t>(i) * bytes), bytes);
  work.synchronize();
  EXPECT_EQ(work.barriers(), 3u);
  const std::uint32_t expected[] = {3, 4, 1, 2};
  for (std::size_t i = 0; i < 4; ++i) {
    std::uint32_t word = 0;
    std::memcpy(&word, got.bytes + i * bytes, sizeof word);
    EXPECT_EQ(word, expected[i]) << i;
  }
  for (const DeviceMemory& m : all) memory.free(m);
}

VkResult lose(VkQueue, std::uint32_t, const VkSubmitInfo*, VkFence) { return VK_ERROR_DEVICE_LOST; }
VkResult have_no_memory(VkDevice, const VkMemoryAllocateInfo*, const VkAllocationCallbacks*,
                        VkDeviceMemory*) {
  return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

void expect_works(Device& device) {
  const DeviceMemory m = device.alloc(64);
  const std::unique_ptr<Stream> stream = device.open_stream();
  std::vector<std::byte> got(64);
  stream->fill(m, std::byte{7}, 64);
  stream->download(got, m);
  stream->synchronize();
  EXPECT_EQ(got, std::vector<std::byte>(64, std::byte{7}));
  device.free(m, 64);
}

// Opening a device is slow, and one plan may use tensors that another one has made.
TEST(Vulkan, AProcessOpensADeviceOnce) {
  if (!std::getenv("HONE_VULKAN_DEVICE")) GTEST_SKIP() << "HONE_VULKAN_DEVICE names no device";
  std::weak_ptr<vulkan::Shared> shared;
  {
    const std::shared_ptr<Device> first = open_device("vulkan"), second = open_device("vulkan");
    const OwnedMemory memory(first, 64);
    EXPECT_TRUE(second->of_host(reinterpret_cast<const void*>(memory.at().handle)));
    shared = vulkan::Shared::open();
  }
  EXPECT_FALSE(shared.expired()) << "closed with its last user";
}

// Memory that a plan has used is available to other programs while another plan still runs.
TEST(Vulkan, AClosedDeviceGivesMemoryBack) {
  if (!std::getenv("HONE_VULKAN_DEVICE")) GTEST_SKIP() << "HONE_VULKAN_DEVICE names no device";
  const std::shared_ptr<Device> stays = open_device("vulkan");
  const OwnedMemory memory(stays, 64);
  std::shared_ptr<Device> closes = open_device("vulkan");
  const std::size_t bytes = std::size_t{100} << 20;
  const DeviceMemory much = closes->alloc(bytes);
  const auto is_held = [&](DeviceMemory m) {
    return stays->of_host(reinterpret_cast<const void*>(m.handle)).has_value();
  };
  EXPECT_TRUE(is_held(much));
  closes->free(much, bytes);
  closes.reset();
  EXPECT_FALSE(is_held(much));
  EXPECT_TRUE(is_held(memory.at()));
}

// A start reads what the driver made of its own kernels, not of all that the device has run.
TEST(Vulkan, EachPlanHasItsOwnFileOfPipelines) {
  if (!std::getenv("HONE_VULKAN_DEVICE")) GTEST_SKIP() << "HONE_VULKAN_DEVICE names no device";
  const char* set = std::getenv("HONE_CACHE_DIR");
  const std::string before = set ? set : "";
  const std::filesystem::path folder = testing::TempDir() + cat("/pipelines_", getpid());
  ::setenv("HONE_CACHE_DIR", folder.c_str(), 1);
  const std::shared_ptr<Device> device = vulkan::device_of(std::make_shared<vulkan::Shared>());
  std::ptrdiff_t files = 0;
  for (const Op* op : {&ops::reduce_sum, &ops::reduce_prod, &ops::reduce_sum}) {
    Function f;
    f.add_result(reduce_axes(*op, f.add_param(f32({4, 8}), "x"), {1}), "y");
    Executable::load(std::make_shared<const Plan>(vulkan_plan(f)), device);
    if (op == &ops::reduce_prod) ++files;
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / "vulkan"), {}), files + 1);
  }
  before.empty() ? ::unsetenv("HONE_CACHE_DIR") : ::setenv("HONE_CACHE_DIR", before.c_str(), 1);
  std::filesystem::remove_all(folder);
}

TEST(Vulkan, AfterALostDeviceNewOnesWork) {
  if (!std::getenv("HONE_VULKAN_DEVICE")) GTEST_SKIP() << "HONE_VULKAN_DEVICE names no device";
  const std::shared_ptr<vulkan::Shared> shared = vulkan::Shared::open();
  shared->machine->api.vkQueueSubmit = lose;
  const std::shared_ptr<Device> device = open_device("vulkan");
  const OwnedMemory memory(device, 64);
  const std::unique_ptr<Stream> stream = device->open_stream();
  for (int i = 0; i < 2; ++i) {
    const std::string why = refusal([&] {
      stream->fill(memory.at(), std::byte{1}, 64);
      stream->synchronize();
    });
    EXPECT_NE(why.find("VK_ERROR_DEVICE_LOST"), std::string::npos) << why;
    EXPECT_NE(why.find("open the device again"), std::string::npos) << why;
  }
  expect_works(*open_device("vulkan"));  // while the lost one is held
}

TEST(Vulkan, WithoutMemoryADeviceStaysUsable) {
  if (!std::getenv("HONE_VULKAN_DEVICE")) GTEST_SKIP() << "HONE_VULKAN_DEVICE names no device";
  const auto shared = std::make_shared<vulkan::Shared>();
  const std::shared_ptr<Device> device = vulkan::device_of(shared);
  const std::string much = refusal([&] { device->alloc(std::size_t{1} << 60); });
  EXPECT_NE(much.find("1152921504606846976 bytes"), std::string::npos) << much;
  const auto real = std::exchange(shared->machine->api.vkAllocateMemory, have_no_memory);
  const std::string none = refusal([&] { device->alloc(64); });
  EXPECT_NE(none.find("VK_ERROR_OUT_OF_DEVICE_MEMORY"), std::string::npos) << none;
  shared->machine->api.vkAllocateMemory = real;
  expect_works(*device);
}

PFN_vkAllocateMemory allocate_really = nullptr;
int allocations = 0;
VkResult count_allocation(VkDevice device, const VkMemoryAllocateInfo* info,
                          const VkAllocationCallbacks* callbacks, VkDeviceMemory* memory) {
  ++allocations;
  return allocate_really(device, info, callbacks, memory);
}

// Drivers may take milliseconds for each allocation.
TEST(Vulkan, APlanOfManyWeightsStartsWithTwoAllocations) {
  if (!std::getenv("HONE_VULKAN_DEVICE")) GTEST_SKIP() << "HONE_VULKAN_DEVICE names no device";
  Function f;
  Value y = f.add_param(f32({64}), "x");
  for (int i = 0; i < 8; ++i) {
    Array w = Array::zeros(DType::f32, {64});
    for (int k = 0; k < 64; ++k) w.set_real(k, i + k % (i + 2));
    y = y * constant(f.graph(), w) + y;
  }
  f.add_result(y, "y");
  const auto shared = std::make_shared<vulkan::Shared>();
  allocate_really = std::exchange(shared->machine->api.vkAllocateMemory, count_allocation);
  allocations = 0;
  const auto plan = std::make_shared<const Plan>(vulkan_plan(f));
  EXPECT_EQ(plan->weights.size(), 8u);
  const auto executable = Executable::load(plan, vulkan::device_of(shared));
  const std::vector<Array> inputs = {Array::zeros(DType::f32, {64})};
  for (int i = 0; i < 3; ++i) Session(executable).run(inputs);
  EXPECT_EQ(allocations, 2) << "one for the device, one that the host reaches";
}

// Callers may hold inputs and outputs on the device.
TEST(Vulkan, MemoryOfTheDeviceIsUsedWhereItLies) {
  if (!std::getenv("HONE_VULKAN_DEVICE")) GTEST_SKIP() << "HONE_VULKAN_DEVICE names no device";
  const std::shared_ptr<Device> device = open_device("vulkan");
  const OwnedMemory memory(device, 256);
  const auto pointer = reinterpret_cast<void*>(memory.at().handle);
  EXPECT_EQ(device->of_host(pointer), memory.at());
  EXPECT_EQ(device->of_host(static_cast<std::byte*>(pointer) + 4), std::nullopt) << "not aligned";
  alignas(64) const std::byte mine[64] = {};
  EXPECT_EQ(device->of_host(mine), std::nullopt);
  EXPECT_EQ(device->of_host(nullptr), std::nullopt);
}

// Plans of `multi` for the CPU and this device pass verification and match the test sets. On a GPU
// silero_vad is so small that the processor alone may be faster.
TEST(Vulkan, SharesModelsWithTheProcessor) {
  if (!std::getenv("HONE_VULKAN_DEVICE")) GTEST_SKIP() << "HONE_VULKAN_DEVICE names no device";
  const bool is_software = vulkan::choose_adapter(*vulkan::open_instance()).is_software;
  const auto spread = [](const fs::path& model, bool needs_both) {
    CompileOptions o{.strategy = "multi"};
    o.verification = Verification::model;
    o.cache = false;
    auto plan = std::make_shared<const Plan>(compile(source_of(model), o));
    std::set<std::string> launched;
    for (const Variant& v : plan->main().variants)
      for_each_step(v.steps, [&](const Step& s) {
        if (s.kind == Step::Kind::launch) launched.insert(v.devices[s.device].name);
      });
    EXPECT_TRUE(launched.contains("vulkan") || !needs_both) << model;
    EXPECT_TRUE(launched.size() == 2 || !needs_both) << model;
    return plan;
  };
  spread(fs::path(HONE_SOURCE_DIR) / "examples/digits/digits.onnx", true);
  const auto plan = spread(models_root() / "silero_vad/model.onnx", is_software);
  Session session(Executable::load(plan, open_devices(*plan)), {.threads = 2});
  for (const TestSet& set : test_sets("silero_vad"))
    expect_close(session.run(set.inputs), set.outputs, "silero_vad");
}

// With HONE_VULKAN_VALIDATION=1 the layers watch all tests of this program.
class ValidationLayers final : public testing::Environment {
 public:
  void TearDown() override { EXPECT_EQ(vulkan::validation_messages(), 0); }
};
const testing::Environment* const layers = testing::AddGlobalTestEnvironment(new ValidationLayers);

}  // namespace
}  // namespace hone::test
#endif
