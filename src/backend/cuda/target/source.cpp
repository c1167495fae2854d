#include "backend/cuda/target/source.h"

#include "backend/cuda/target/dialect.h"
#include "codegen/c/module.h"

namespace hone::cuda {

Source source_of(const Kernel& kernel) {
  const c::GroupText group = c::group_text(kernel, cuda_cpp);
  Source out;
  out.header.params = static_cast<std::uint32_t>(kernel.params.size());
  out.header.sizes = static_cast<std::uint32_t>(kernel.sizes.size());
  out.header.threads = static_cast<std::uint32_t>(group_threads(kernel));
  out.header.has_scratch = group.uses_scratch;
  c::Text text;
  text.paste(cat(cuda_cpp.preamble, group.helpers, "/* ", c::in_comment(kernel.name), " */\n"));
  std::string parameters, arguments;
  const auto add = [&](std::string_view type, const std::string& name) {
    const std::string_view comma = parameters.empty() ? "" : ", ";
    parameters += cat(comma, type, name);
    arguments += cat(comma, name);
  };
  for (std::size_t i = 0; i < kernel.params.size(); ++i)
    add(cat(kernel.params[i].written ? "" : "const ", c::memory_type(kernel.params[i].dtype), " *"),
        cat("p", i));
  if (group.uses_scratch) {
    add("unsigned char *", "scratch_of_all");
    add("int64_t ", "scratch_bytes");
  }
  for (std::size_t i = 0; i < kernel.sizes.size(); ++i) add("int64_t ", cat("n", i));
  text.open("template <bool is_aligned>\nHONE_INLINE void hone_body(", parameters, ")");
  for (const std::string& array : group.shared) text.line("__shared__ ", array, ";");
  if (group.uses_scratch)
    text.line(
        "unsigned char *const scratch = scratch_of_all + "
        "scratch_bytes * ((int64_t)blockIdx.x * blockDim.x + threadIdx.x);");
  text.paste(group.body);
  text.close();
  const auto entry = [&](const char* name, bool is_aligned) {
    text.open("extern \"C\" __global__ void __launch_bounds__(", out.header.threads, ") ", name,
              "(", parameters, ")");
    text.line("hone_body<", is_aligned ? "true" : "false", ">(", arguments, ");");
    text.close();
  };
  entry(kernel_symbol, true);
  if (!group.vectors.empty()) {
    out.header.alignment = 16;
    entry(unaligned_symbol, false);
  }
  out.text = text.str();
  return out;
}

}  // namespace hone::cuda
