#include "codegen/c/module.h"

#include "codegen/c/expression.h"
#include "kernel/walk.h"

namespace hone::c {

namespace {

bool has_scratch(const Kernel& k) { return !(k.scratch_bytes == Dim(0)) || !k.memory.empty(); }

std::string pointer_to(const Kernel& k, std::size_t param) {
  const KernelParam& p = k.params[param];
  return cat(p.written ? "" : "const ", memory_type(p.dtype), " *");
}

// The parameters' types and names, in the order of Module::call.
std::string parameters(const Kernel& k) {
  std::string out;
  auto add = [&](const std::string& text) { out += cat(out.empty() ? "" : ", ", text); };
  for (std::size_t i = 0; i < k.params.size(); ++i) add(cat(pointer_to(k, i), "p", i));
  if (has_grid(k)) add("int64_t begin, int64_t end");
  if (has_scratch(k)) add("unsigned char *scratch");
  if (!k.sizes.empty()) add("const int64_t *sizes");
  return out.empty() ? "void" : out;
}

}  // namespace

void Module::add(const Kernel& kernel, std::string_view name) {
  const std::string head = cat(kernel.tiles.empty() ? "HONE_KERNEL" : "HONE_TILES", " void ", name,
                               "(", parameters(kernel), ")");
  Text body;
  body.indent();
  check(kernel);
  Renderer renderer(body, helpers_, kernel, vector_bytes_);
  renderer.block(kernel.body);
  body.close();

  Text prologue;
  prologue.paste(cat("/* ", in_comment(kernel.name), " */\n"));
  prologue.open(head);
  const auto& used = renderer.used_params();
  for (std::string_view name_of_size : {"scratch", "sizes"})
    if (head.find(name_of_size) != std::string::npos &&
        body.str().find(name_of_size) == std::string::npos)
      prologue.line("(void)", name_of_size, ";");
  for (std::size_t i = 0; i < kernel.params.size(); ++i)
    if (!used.contains(static_cast<int>(i))) prologue.line("(void)p", i, ";");
  renderer.declare_tiles(prologue);
  if (renderer.uses_zero()) prologue.line("const int64_t zero = ", helpers_.use("zero"), ";");
  for (std::size_t i = 0; i < kernel.memory.size(); ++i) {
    const std::size_t param = kernel.params.size() + i;
    if (!used.contains(static_cast<int>(param))) continue;
    const std::string_view type = memory_type(kernel.memory[i].dtype);
    prologue.line(type, " *const p", param, " = (", type, " *)(void *)(scratch + (",
                  renderer.position(kernel.memory[i].offset), "));");
  }
  kernels_ += prologue.str() + body.str() + "\n";
}

void Module::add_entry(const Kernel& kernel, std::string_view name) {
  add(kernel, cat(name, "_kernel"));
  Text text;
  const std::string head = cat(
      "void ", name,
      "(void *const *buffers, const int64_t *sizes, int64_t begin, int64_t end, void *scratch)");
  text.line(head, ";");
  text.open(head);
  std::vector<std::string> operands;
  for (std::size_t i = 0; i < kernel.params.size(); ++i)
    operands.push_back(cat("buffers[", i, "]"));
  text.line("(void)buffers, (void)sizes, (void)scratch;");
  text.line("if (begin < end) ",
            call(kernel, cat(name, "_kernel"), operands, "begin", "end", "(unsigned char *)scratch",
                 "sizes"),
            ";");
  text.close();
  kernels_ += text.str() + "\n";
}

std::string Module::call(const Kernel& kernel, std::string_view name,
                         std::span<const std::string> operands, const std::string& begin,
                         const std::string& end, const std::string& scratch,
                         const std::string& sizes) {
  std::string out = cat(name, "(");
  auto add = [&](const std::string& text) { out += cat(out.back() == '(' ? "" : ", ", text); };
  for (std::size_t i = 0; i < operands.size(); ++i)
    add(cat("(", pointer_to(kernel, i), ")(", kernel.params[i].written ? "" : "const ", "void *)(",
            operands[i], ")"));
  if (has_grid(kernel)) add(begin), add(end);
  if (has_scratch(kernel)) add(scratch);
  if (!kernel.sizes.empty()) add(sizes);
  return out + ")";
}

GroupText group_text(const Kernel& kernel, const Dialect& dialect) {
  HONE_ASSERT(dialect.has_groups, dialect.language, " has no groups of threads");
  for (const KernelMemory& m : kernel.memory)
    HONE_ASSERT(m.scope != MemoryScope::spread || !dialect.block_thread.empty(), kernel.name, ": ",
                dialect.language, " spreads no memory of threads");
  check(kernel);
  Helpers helpers(dialect);
  Text head, body;
  head.indent();
  body.indent();
  Renderer renderer(body, helpers, kernel, 0);
  renderer.block(kernel.body);
  renderer.declare_group(head);
  GroupText out{helpers.text(), renderer.shared(), renderer.shared_bytes(),
                head.str() + body.str()};
  for (std::size_t i = 0; i < kernel.memory.size(); ++i)
    out.uses_scratch =
        out.uses_scratch ||
        (!is_variable(kernel.memory[i]) && kernel.memory[i].scope != MemoryScope::spread &&
         renderer.used_params().contains(static_cast<int>(kernel.params.size() + i)));
  out.vectors = renderer.vectors();
  out.uses_subgroups = renderer.uses_subgroups();
  out.uses_matrices = renderer.uses_matrices();
  for_each_statement(kernel.body, [&](const Stmt& s) {
    out.meets = out.meets || s.kind == Stmt::Kind::barrier || s.kind == Stmt::Kind::reduce_group;
  });
  return out;
}

std::string Module::text() const { return cat(c11.preamble, helpers_.text(), kernels_); }

}  // namespace hone::c
