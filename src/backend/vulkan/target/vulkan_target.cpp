#include "backend/vulkan/target/vulkan_target.h"

#include <algorithm>
#include <cstring>

#include "backend/vulkan/target/glsl.h"
#include "backend/vulkan/target/matrices.h"
#include "backend/vulkan/target/spirv.h"
#include "base/error.h"
#include "base/thread_pool.h"

namespace hone::vulkan {

namespace {

static_assert(most_pushed == c::Shader::most_pushed);

std::vector<std::uint32_t> code_of(const std::string& glsl) {
  return with_khronos_matrices(spirv_of(glsl));
}

Binary compile_one(const CompileJob& job, const Form& form) {
  const Kernel& kernel = *job.kernel;
  const c::Shader shader = c::shader(kernel, static_cast<int>(form.subgroup));
  std::vector<std::uint32_t> spirv = code_of(shader.text);
  ShaderHeader header;
  header.code_words = static_cast<std::uint32_t>(spirv.size());
  if (!shader.plain_text.empty()) {
    const std::vector<std::uint32_t> plain = code_of(shader.plain_text);
    header.plain_words = static_cast<std::uint32_t>(plain.size());
    spirv.insert(spirv.end(), plain.begin(), plain.end());
  }
  header.alignment = shader.uses_vectors ? 16 : 1;
  header.operands = static_cast<std::uint32_t>(kernel.params.size());
  header.sizes = static_cast<std::uint32_t>(kernel.sizes.size());
  header.uses_scratch = shader.uses_scratch;
  header.subgroup = static_cast<std::uint32_t>(shader.subgroup);
  header.threads = static_cast<std::uint32_t>(group_threads(kernel));
  Binary b;
  b.target = form.name;
  b.code.resize(sizeof header + spirv.size() * sizeof(std::uint32_t));
  std::memcpy(b.code.data(), &header, sizeof header);
  std::memcpy(b.code.data() + sizeof header, spirv.data(), spirv.size() * sizeof(std::uint32_t));
  b.entries.push_back({job.entry, 0});
  return b;
}

const Form& native_form() {
  static const Form& form = []() -> const Form& {
    try {
      return form_of(choose_adapter(*open_instance()));
    } catch (const UserError&) {
      return forms[0];
    }
  }();
  return form;
}

class VulkanTarget final : public Target {
 public:
  explicit VulkanTarget(const Form& form) : form_(form) {}

  const TargetInfo& info() const override { return info_; }
  std::string_view version() const override { return "glsl 5"; }

  std::vector<Binary> compile(std::span<const CompileJob> jobs, ThreadPool& pool) const override {
    std::vector<Binary> out(jobs.size());
    parallel_for(pool, std::ssize(jobs), [&](std::int64_t i) {
      out[static_cast<std::size_t>(i)] = compile_one(jobs[static_cast<std::size_t>(i)], form_);
    });
    return out;
  }

  Listing list(const CompileJob& job) const override {
    const c::Shader shader = c::shader(*job.kernel, static_cast<int>(form_.subgroup));
    return {shader.text, disassembly(code_of(shader.text))};
  }

 private:
  const Form& form_;
  // Typical rates of the threads of one group.
  TargetInfo info_ = {.name = std::string(form_.name),
                      .group_threads = static_cast<int>(form_.threads),
                      .group_bytes = form_.group_bytes - form_.kept_bytes,
                      .row_thread_bytes = 192,
                      .multiplies_halves = form_.has_matrices,
                      .has_opaque_tiles = form_.has_matrices,
                      .fma_gflops = 1000,
                      .cache_gbytes = 500,
                      .memory_gbytes = 200,
                      .launch_us = 8};
};

}  // namespace

std::unique_ptr<Target> make_target(const Form& form) {
  return std::make_unique<VulkanTarget>(form);
}

std::unique_ptr<Target> make_target(std::string_view name) {
  if (name.empty() || name == target_names[0]) return make_target(native_form());
  const auto* form = std::ranges::find(forms, name, &Form::name);
  if (form != std::end(forms)) return make_target(*form);
  std::string known;
  for (std::string_view each : target_names) known += cat(known.empty() ? "" : ", ", each);
  throw UserError("target '", name, "' is unknown; Vulkan has ", known);
}

}  // namespace hone::vulkan
