#include "backend/vulkan/device/program.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/error.h"
#include "base/file.h"
#include "base/thread_pool.h"

namespace hone::vulkan {

namespace {

// Constants of the SPIR-V specification.
constexpr std::uint32_t spirv_magic = 0x07230203, op_capability = 17, op_entry_point = 15,
                        op_execution_mode = 16;
constexpr std::uint32_t capability_float64 = 10;

struct Capability {
  std::uint32_t number;
  std::string_view name;
  bool (*has)(const Adapter&);
};
constexpr Capability capabilities[] = {
    {1, "Shader", [](const Adapter&) { return true; }},
    {5347, "PhysicalStorageBufferAddresses", [](const Adapter&) { return true; }},
    {11, "Int64", [](const Adapter&) { return true; }},
    {9, "Float16", [](const Adapter& a) { return a.features12.shaderFloat16 != 0; }},
    {10, "Float64", [](const Adapter& a) { return a.features.shaderFloat64 != 0; }},
    {22, "Int16", [](const Adapter& a) { return a.features.shaderInt16 != 0; }},
    {61, "GroupNonUniform", [](const Adapter& a) { return a.joins_in_subgroups; }},
    {62, "GroupNonUniformVote", [](const Adapter& a) { return a.joins_in_subgroups; }},
    {63, "GroupNonUniformArithmetic", [](const Adapter& a) { return a.joins_in_subgroups; }},
    {65, "GroupNonUniformShuffle", [](const Adapter& a) { return a.shuffles_in_subgroups; }},
    {5345, "VulkanMemoryModel", [](const Adapter& a) { return a.multiplies_matrices; }},
    {6022, "CooperativeMatrixKHR", [](const Adapter& a) { return a.multiplies_matrices; }},
    {39, "Int8", [](const Adapter& a) { return a.features12.shaderInt8 != 0; }},
    {4448, "StorageBuffer8BitAccess",
     [](const Adapter& a) { return a.features12.storageBuffer8BitAccess != 0; }},
    {4433, "StorageBuffer16BitAccess",
     [](const Adapter& a) { return a.features11.storageBuffer16BitAccess != 0; }},
};

using Words = std::vector<std::uint32_t>;

// Fails on instructions that extend past the end, and on capabilities that the device lacks.
// Requests modes that preserve NaN, signed zeros and denormals, if the device has them.
Words prepared(std::span<const std::uint32_t> spirv, const Adapter& a, std::string_view where) {
  constexpr std::size_t first = 5;
  const auto broken = [&](std::string_view why) {
    throw UserError(where, ": its SPIR-V ", why, "; compile it again");
  };
  if (spirv.size() <= first || spirv[0] != spirv_magic) broken("has no header");
  Words out(spirv.begin(), spirv.begin() + first), modes;
  std::uint32_t main = 0;
  bool has_doubles = false, has_modes = false;
  for (std::size_t at = first; at < spirv.size();) {
    const std::uint32_t words = spirv[at] >> 16, op = spirv[at] & 0xffff;
    if (words == 0 || at + words > spirv.size()) broken("is cut");
    if (op == op_capability && words == 2) {
      const auto* c = std::ranges::find(capabilities, spirv[at + 1], &Capability::number);
      if (c == std::end(capabilities))
        broken(cat("needs capability ", spirv[at + 1], ", which is not known here"));
      if (!c->has(a))
        throw UserError(where, ": needs ", c->name, "; Vulkan device '", a.name,
                        "' does not support it");
      has_doubles = has_doubles || spirv[at + 1] == capability_float64;
    }
    if (op == op_entry_point && words > 2) main = spirv[at + 2];
    const bool is_mode = op == op_execution_mode;
    if (has_modes && !is_mode) {
      out.insert(out.end(), modes.begin(), modes.end());
      has_modes = false;
    }
    out.insert(out.end(), spirv.begin() + static_cast<std::ptrdiff_t>(at),
               spirv.begin() + static_cast<std::ptrdiff_t>(at + words));
    if (is_mode && modes.empty()) {
      const auto keep = [&](std::uint32_t capability, std::uint32_t mode) {
        const std::uint32_t asked[] = {2u << 16 | op_capability, capability};
        out.insert(out.begin() + first, std::begin(asked), std::end(asked));
        modes.insert(modes.end(), {4u << 16 | op_execution_mode, main, mode, 32u});
        if (has_doubles) modes.insert(modes.end(), {4u << 16 | op_execution_mode, main, mode, 64u});
        if (a.converts_halves)
          modes.insert(modes.end(), {4u << 16 | op_execution_mode, main, mode, 16u});
      };
      if (a.keeps_nan) keep(4466, 4461);
      if (a.keeps_denormals) keep(4464, 4459);
      if (a.converts_halves) keep(4467, 4462);  // to nearest, ties to even
      has_modes = !modes.empty();
    }
    at += words;
  }
  return out;
}

}  // namespace

Pipeline::~Pipeline() {
  Machine& m = cache->machine();
  if (handle) m.api.vkDestroyPipeline(m.handle, handle, nullptr);
  ++m.generation;
}

PipelineCache::PipelineCache(std::shared_ptr<Machine> machine, const Hash128& program)
    : machine_(std::move(machine)), files_(cache_directory(), "vulkan") {
  const Adapter& a = machine_->adapter;
  key_ = hash128(cat(a.uuid, " ", a.driver, " ", a.cache_version, " ", to_hex(program)));
  const std::vector<std::byte> kept = files_.find(key_).value_or(std::vector<std::byte>{});
  VkPipelineCacheCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  info.initialDataSize = kept.size();
  info.pInitialData = kept.data();
  require(machine_->api.vkCreatePipelineCache(machine_->handle, &info, nullptr, &handle_),
          "making a cache of kernels");
}

PipelineCache::~PipelineCache() {
  if (has_more_) keep();
  machine_->api.vkDestroyPipelineCache(machine_->handle, handle_, nullptr);
}

void PipelineCache::keep() {
  std::size_t bytes = 0;
  const auto read = [&](std::byte* data) {
    return machine_->api.vkGetPipelineCacheData(machine_->handle, handle_, &bytes, data);
  };
  if (read(nullptr) != VK_SUCCESS) return;
  std::vector<std::byte> data(bytes);
  if (read(data.data()) == VK_SUCCESS) files_.store(key_, std::span(data).first(bytes));
}

Pipelines::Pipelines(std::shared_ptr<Machine> machine) : machine_(std::move(machine)) {
  VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, most_pushed * 8};
  VkPipelineLayoutCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &range;
  require(machine_->api.vkCreatePipelineLayout(machine_->handle, &info, nullptr, &layout_),
          "making a layout of kernels");
}

Pipelines::~Pipelines() {
  machine_->api.vkDestroyPipelineLayout(machine_->handle, layout_, nullptr);
}

std::shared_ptr<const Pipeline> Pipelines::get(std::span<const std::byte> code,
                                               const std::shared_ptr<PipelineCache>& cache,
                                               std::string_view where) {
  ShaderHeader header;
  const auto broken = [&] {
    throw UserError(where, ": its Vulkan code is broken; compile it again");
  };
  if (code.size() < sizeof header) broken();
  std::memcpy(&header, code.data(), sizeof header);
  if (header.magic != ShaderHeader::expected_magic ||
      std::uint64_t{header.code_words} + header.plain_words >
          (code.size() - sizeof header) / sizeof(std::uint32_t) ||
      header.arguments() > 4096 || header.threads == 0 || header.alignment == 0)
    broken();
  if (header.threads > machine_->adapter.limits.maxComputeWorkGroupInvocations)
    throw UserError(where, ": has work groups of ", header.threads, " threads; Vulkan device '",
                    machine_->adapter.name, "' allows at most ",
                    machine_->adapter.limits.maxComputeWorkGroupInvocations);
  if (header.subgroup > 0 && (header.subgroup < machine_->adapter.least_subgroup ||
                              header.subgroup > machine_->adapter.most_subgroup))
    throw UserError(where, ": needs subgroups of ", header.subgroup, " threads; Vulkan device '",
                    machine_->adapter.name, "' does not allow them");
  const bool is_plain = header.plain_words > 0 && !machine_->adapter.joins_in_subgroups;
  Words spirv(is_plain ? header.plain_words : header.code_words);
  const std::size_t first = is_plain ? header.code_words : 0;
  std::memcpy(spirv.data(), code.data() + sizeof header + first * sizeof(std::uint32_t),
              spirv.size() * sizeof(std::uint32_t));
  return make(header, spirv, cache, where);
}

std::shared_ptr<const Pipeline> Pipelines::make(const ShaderHeader& header,
                                                std::span<const std::uint32_t> spirv,
                                                const std::shared_ptr<PipelineCache>& cache,
                                                std::string_view where) {
  const Words words = prepared(spirv, machine_->adapter, where);
  Words all = words;
  all.resize(words.size() + sizeof header / sizeof(std::uint32_t));
  std::memcpy(all.data() + words.size(), &header, sizeof header);
  const Hash128 hash = hash128(std::as_bytes(std::span(all)));
  {
    const std::scoped_lock lock(mutex_);
    if (std::shared_ptr<const Pipeline> it = known_[hash].lock()) return it;
  }
  std::shared_ptr<Pipeline> made = compiled(header, words, true, cache);
  if (header.alignment > 1) made->words = words;
  const std::scoped_lock lock(mutex_);
  constexpr std::size_t many = 1024;
  if (known_.size() % many == 0)
    std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<const Pipeline>& known = known_[hash];
  if (std::shared_ptr<const Pipeline> it = known.lock()) return it;  // made by another thread
  known = made;
  return made;
}

const Pipeline& Pipelines::unaligned(const Pipeline& p) {
  const std::scoped_lock lock(mutex_);
  if (!p.unaligned) {
    p.unaligned = compiled(p.header, p.words, false, p.cache);
  }
  return *p.unaligned;
}

std::shared_ptr<Pipeline> Pipelines::compiled(const ShaderHeader& header,
                                              std::span<const std::uint32_t> words, bool is_aligned,
                                              const std::shared_ptr<PipelineCache>& cache) {
  const DeviceApi& api = machine_->api;
  auto made = std::make_shared<Pipeline>(cache);
  made->header = header;
  // Constants that a shader does not declare are ignored.
  const VkBool32 values[] = {is_aligned, machine_->adapter.converts_halves,
                             machine_->adapter.raises_two};
  constexpr std::uint32_t size = sizeof values[0];
  const VkSpecializationMapEntry entries[] = {{0, 0, size}, {1, size, size}, {2, 2 * size, size}};
  const VkSpecializationInfo constants{std::size(entries), entries, sizeof values, values};
  VkShaderModuleCreateInfo module{};
  module.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  module.codeSize = words.size() * sizeof(std::uint32_t);
  module.pCode = words.data();
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &constants;
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup{};
  subgroup.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO;
  subgroup.requiredSubgroupSize = header.subgroup;
  if (header.subgroup > 0) {
    info.stage.pNext = &subgroup;
    info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
  }
  info.layout = layout_;
  require(api.vkCreateShaderModule(machine_->handle, &module, nullptr, &info.stage.module),
          "loading a kernel");
  const VkResult r = api.vkCreateComputePipelines(machine_->handle, cache->handle(), 1, &info,
                                                  nullptr, &made->handle);
  api.vkDestroyShaderModule(machine_->handle, info.stage.module, nullptr);
  require(r, "compiling a kernel for the device");
  cache->grow();
  return made;
}

int rank_of(const Adapter& a, std::string_view target) {
  if (target == "any") return 0;
  const auto* form = std::ranges::find(forms, target, &Form::name);
  return form == std::end(forms) || !form->fits(a) ? -1 : static_cast<int>(form - forms) + 1;
}

VulkanProgram::VulkanProgram(Pipelines& pipelines, std::span<const Binary* const> binaries,
                             std::string_view where) {
  const Adapter& adapter = pipelines.machine()->adapter;
  // Drivers take longest for long code, so it goes first.
  std::vector<const Binary*> longest_first(binaries.begin(), binaries.end());
  std::ranges::stable_sort(longest_first, std::greater(),
                           [](const Binary* b) { return b->code.size(); });
  std::vector<std::span<const std::byte>> codes;
  std::vector<std::string> names;
  std::string hashes;
  for (const Binary* b : longest_first) {
    check(*b, where);
    if (rank_of(adapter, b->target) <= 0)
      throw UserError(where, ": is compiled for '", b->target, "', expected ",
                      form_of(adapter).name, " for '", adapter.name,
                      "'; compile it for this machine");
    hashes += to_hex(hash128(b->code));
    for (const Binary::Entry& e : b->entries) {
      codes.push_back(std::span(b->code).subspan(e.offset));
      names.push_back(e.name);
    }
  }
  // Drivers take milliseconds per pipeline.
  const auto cache = std::make_shared<PipelineCache>(pipelines.machine(), hash128(hashes));
  constexpr std::size_t few = 4;
  std::vector<std::shared_ptr<const Pipeline>> made(names.size());
  const auto pool = make_thread_pool({.threads = names.size() <= few ? 1 : 0});
  parallel_for(*pool, std::ssize(names), [&](std::int64_t i) {
    made[static_cast<std::size_t>(i)] =
        pipelines.get(codes[static_cast<std::size_t>(i)], cache, where);
  });
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::shared_ptr<const Pipeline>& p = made[i];
    bytes_ += sizeof(ShaderHeader) +
              (p->header.code_words + p->header.plain_words) * sizeof(std::uint32_t);
    if (!entries_.emplace(names[i], p).second)
      throw UserError(where, ": two kernels have the name '", names[i], "'; compile it again");
  }
}

KernelHandle VulkanProgram::entry(std::string_view name) const {
  const auto it = entries_.find(name);
  if (it == entries_.end())
    throw UserError("vulkan: has no kernel '", name, "' among its ", entries_.size(),
                    "; is the plan from another version?");
  return KernelHandle{reinterpret_cast<std::uintptr_t>(&it->second)};
}

}  // namespace hone::vulkan
