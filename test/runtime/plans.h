// Handwritten plans: their kernels are functions of the test program, reached through a few bytes
// of machine code, so that sanitizers can check them.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/device/cpu_device.h"
#include "backend/cpu/device/kernel_abi.h"
#include "plan/plan.h"
#include "runtime/executable.h"
#include "runtime/ports.h"

namespace hone::test {

// Kernels that jump to functions of this process.
inline Binary binary_of(std::vector<std::pair<std::string, KernelFunction>> functions,
                        std::string target = "x86-64-v3") {
  Binary b;
  b.target = std::move(target);
  for (const auto& [name, function] : functions) {
    b.entries.push_back({name, b.code.size()});
    const auto address = reinterpret_cast<std::uint64_t>(function);
    std::byte code[16] = {std::byte{0x48}, std::byte{0xb8}};  // mov rax, address
    std::memcpy(code + 2, &address, sizeof address);
    code[10] = std::byte{0xff};  // jmp rax
    code[11] = std::byte{0xe0};
    b.code.insert(b.code.end(), code, code + sizeof code);
  }
  return b;
}

inline View dense(std::uint32_t buffer, DType dtype, Dims dims) {
  return {buffer, 0, dtype, dims, dense_strides(Shape(dims))};
}

inline Step launch_of(std::uint32_t kernel, std::vector<View> operands, Few<bool, 8> written,
                      Dims sizes, Dim chunks = 1) {
  Step s{.kind = Step::Kind::launch, .index = kernel};
  s.operands = std::move(operands);
  s.written = std::move(written);
  s.scalars = std::move(sizes);
  s.chunks = std::move(chunks);
  return s;
}

// A plan with one variant that accepts all inputs.
inline Plan plan_of(std::vector<PlanParam> params, std::vector<PlanParam> results) {
  Plan p;
  p.name = "test";
  p.main().params = std::move(params);
  p.main().results = std::move(results);
  p.main().result_alias.assign(p.main().results.size(), -1);
  Variant v;
  v.devices[0].target = "any";
  for (const PlanParam& r : p.main().results) v.results.push_back(r.type);
  p.main().variants.push_back(v);
  return p;
}

inline void add_kernels(Plan& p, std::vector<std::pair<std::string, KernelFunction>> functions,
                        std::string target = "x86-64-v3") {
  const auto binary = static_cast<std::uint32_t>(p.binaries.size());
  for (const auto& [name, function] : functions) p.kernels.push_back({binary, name, {}});
  p.binaries.push_back(binary_of(std::move(functions), std::move(target)));
}

// y[i] = x[i] * 2 + 1; sizes: n. A chunk is 1024 elements.
inline void scale_kernel(void* const* buffers, const std::int64_t* sizes, std::int64_t begin,
                         std::int64_t end, void*) {
  const auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  const std::int64_t last = end * 1024 < sizes[0] ? end * 1024 : sizes[0];
  for (std::int64_t i = begin * 1024; i < last; ++i) y[i] = x[i] * 2 + 1;
}

// z[i] = x[i] + w[i % 4] + the thread's scratch, which the kernel fills with zeros first.
inline void add_weight_kernel(void* const* buffers, const std::int64_t* sizes, std::int64_t begin,
                              std::int64_t end, void* scratch) {
  const auto* x = static_cast<const float*>(buffers[0]);
  const auto* w = static_cast<const float*>(buffers[1]);
  auto* z = static_cast<float*>(buffers[2]);
  auto* zeros = static_cast<float*>(scratch);
  for (int i = 0; i < 1024; ++i) zeros[i] = 0;
  const std::int64_t last = end * 1024 < sizes[0] ? end * 1024 : sizes[0];
  for (std::int64_t i = begin * 1024; i < last; ++i)
    z[i] = x[i] + w[i % 4] + zeros[static_cast<std::size_t>(i % 1024)];
}

inline const Dim n = Dim::symbol("n", 0, 1 << 24);

// z = (2 x + 1) + w over x f32[n], through the arena, with weights (1, 2, 3, 4).
inline Plan scale_and_add() {
  Plan p = plan_of({{"x", f32({n})}}, {{"z", f32({n})}});
  add_kernels(p, {{"scale", scale_kernel}, {"add_weight", add_weight_kernel}});
  const float w[] = {1, 2, 3, 4};
  p.weights = {{"w", Array::of<float>(DType::f32, {4}, w)}};
  Variant& v = p.main().variants[0];
  const Dim arena = ceil_div(n * 4, 64) * 64;
  v.buffers = {{PlanBuffer::Kind::param, 0, 0, n * 4},
               {PlanBuffer::Kind::arena, 0, 0, n * 4},
               {PlanBuffer::Kind::weight, 0, 0, 16},
               {PlanBuffer::Kind::result, 0, 0, n * 4}};
  v.devices[0].arena_bytes = v.devices[0].arena_lower_bound = arena;
  v.groups = {{.name = "scale", .origins = "node 0 \"first\""}, {.name = "add"}};
  v.steps = {
      launch_of(0, {dense(0, DType::f32, {n}), dense(1, DType::f32, {n})}, {false, true}, {n},
                ceil_div(n, 1024)),
      launch_of(1,
                {dense(1, DType::f32, {n}), dense(2, DType::f32, {4}), dense(3, DType::f32, {n})},
                {false, false, true}, {n}, ceil_div(n, 1024))};
  v.steps[0].group = 0;
  v.steps[1].group = 1;
  v.steps[1].scratch_bytes = 4096;
  return p;
}

inline std::shared_ptr<const Executable> load(Plan p) {
  return Executable::load(std::make_shared<const Plan>(std::move(p)), open_cpu_device());
}

// Memory at a multiple of buffer_alignment, or `shift` bytes after one.
template <class T>
class Memory {
 public:
  explicit Memory(std::size_t count, std::size_t shift = 0)
      : bytes_(count * sizeof(T) + 2 * buffer_alignment), count_(count) {
    const auto at = reinterpret_cast<std::uintptr_t>(bytes_.data());
    offset_ = (buffer_alignment - at % buffer_alignment) % buffer_alignment + shift;
  }
  T* data() { return reinterpret_cast<T*>(bytes_.data() + offset_); }
  std::span<std::byte> memory() { return memory_of(data(), count_); }
  T& operator[](std::size_t i) { return data()[i]; }
  std::size_t size() const { return count_; }

 private:
  std::vector<std::byte> bytes_;
  std::size_t count_, offset_ = 0;
};

}  // namespace hone::test
