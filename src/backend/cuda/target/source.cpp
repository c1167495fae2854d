#include "backend/cuda/target/source.h"

#include <algorithm>

#include "backend/cuda/target/dialect.h"
#include "codegen/c/module.h"
#include "kernel/groups/read_weights.h"
#include "kernel/walk.h"

namespace hone::cuda {

namespace {

constexpr std::uint32_t subgroup = 32;

// A multiprocessor runs few blocks at once, however small they are. So groups of one subgroup,
// which need no shared memory and no block barrier, are put into blocks of four.
constexpr std::uint32_t groups_together = 4;

// The shared memory that the launch gives a block.
constexpr std::string_view shared_memory = "extern __shared__ __align__(16) unsigned char shared[]";

// A kernel does not access memory before this, see CodeHeader::waits; but it may prefetch.
constexpr std::string_view wait_for_previous = "hone_wait_for_previous();";

// Groups of more threads than a block allows are clusters of blocks. Blocks are small, so that
// several fit a multiprocessor. More blocks help only if their memory holds the row.
constexpr std::uint32_t most_block_threads = 1024, usual_block_threads = 256,
                        usual_cluster_blocks = 8;

std::uint32_t blocks_of(const Kernel& kernel, std::uint32_t threads) {
  if (spreads(kernel)) return static_cast<std::uint32_t>(blocks_of_spread(threads));
  if (threads <= most_block_threads) return 1;
  return std::min(threads / usual_block_threads, usual_cluster_blocks);
}

c::Dialect of_clusters(std::uint32_t blocks) {
  c::Dialect out = cuda_cpp;
  out.group = "(blockIdx.x / HONE_BLOCKS)";
  out.groups = "(gridDim.x / HONE_BLOCKS)";
  out.thread = "(blockIdx.x % HONE_BLOCKS * blockDim.x + threadIdx.x)";
  out.barrier = "hone_meet();";
  out.blocks = static_cast<int>(blocks);
  out.reductions_meet = true;
  out.reduce_group =
      "$R = hone_reduce_cluster<$N>($X, [](const $T a, const $T b) -> $T { return $E; });";
  out.join_exponentials =
      "hone_join_exponentials<$N>($M, $S, [](const float a, const float b) { return $E; }, "
      "[](const float a) { return $X; });";
  return out;
}

// True if groups begin with statements that need no other launch; the kernel waits after these.
bool begins_with_weights(const Kernel& kernel) {
  if (!has_grid(kernel)) return false;
  const Block& group = kernel.body.at(0).body;
  return group.size() == 1 && is_loop(group[0]) &&
         independent_statements(kernel, group[0].body) > 0;
}

// Copies of tiles go through the L1 cache (`hone_copy_async`).
CacheCopies copies_of(const Kernel& kernel) {
  CacheCopies out = CacheCopies::none;
  for_each_statement(kernel.body, [&](const Stmt& s) {
    const KernelMemory* memory = memory_named(kernel, s.param);
    if (s.kind != Stmt::Kind::copy_async || !memory || memory->scope != MemoryScope::group) return;
    // With tiles along several axes, the place of a copy has quotients and remainders of the
    // group's number; the place of a window is in a register.
    Dependences place;
    add_dependences(s.a.offset, place);
    const bool is_once = has_grid(kernel) && place.registers.empty() &&
                         stride_of(s.a.offset, symbol_of(kernel.body[0]));
    out = is_once && out != CacheCopies::again ? CacheCopies::once : CacheCopies::again;
  });
  return out;
}

c::Dialect of_subgroups() {
  c::Dialect out = cuda_cpp;
  out.group = "(blockIdx.x * 4 + threadIdx.x / 32)";
  out.groups = "(gridDim.x * 4)";
  out.thread = "(threadIdx.x % 32)";
  out.barrier = "__syncwarp();";
  return out;
}

}  // namespace

Source source_of(const Kernel& kernel) {
  const auto threads = static_cast<std::uint32_t>(group_threads(kernel));
  const std::uint32_t blocks = blocks_of(kernel, threads);
  const bool is_subgroup = threads == subgroup, is_cluster = blocks > 1;
  const bool waits_later = begins_with_weights(kernel);
  const auto with_wait = [&](c::Dialect d) {
    if (waits_later) d.behind_weights = wait_for_previous;
    return d;
  };
  c::GroupText group = c::group_text(kernel, with_wait(is_cluster    ? of_clusters(blocks)
                                                       : is_subgroup ? of_subgroups()
                                                                     : cuda_cpp));
  Source out;
  out.header.blocks = blocks;
  const bool shares_memory = std::ranges::any_of(
      kernel.memory, [](const KernelMemory& m) { return m.scope == MemoryScope::group; });
  if (is_cluster && (!group.shared.empty() || shares_memory || group.uses_scratch ||
                     threads % (blocks * subgroup) != 0 || threads / blocks > most_block_threads))
    throw UserError("cuda: a group of ", threads, " threads is more than ", blocks, " blocks of ",
                    most_block_threads, ", or has memory beside registers");
  if (is_subgroup && group.shared.empty() && group.shared_bytes == 0)
    out.header.groups = groups_together;
  else if (is_subgroup)
    group = c::group_text(kernel, with_wait(cuda_cpp));
  out.header.params = static_cast<std::uint32_t>(kernel.params.size());
  out.header.sizes = static_cast<std::uint32_t>(kernel.sizes.size());
  out.header.threads = threads / blocks * out.header.groups;
  out.header.has_scratch = group.uses_scratch;
  out.header.shared_bytes = static_cast<std::uint32_t>(group.shared_bytes);
  out.header.copies = copies_of(kernel);
  c::Text text;
  text.paste(cat(cuda_cpp.preamble, is_cluster ? cluster_preamble(blocks) : "", group.helpers,
                 "/* ", c::in_comment(kernel.name), " */\n"));
  if (group.shared_bytes > 0) text.line(shared_memory, ";");
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
  for (const std::string& array : group.shared) text.line("__shared__ __align__(16) ", array, ";");
  if (group.uses_scratch)
    text.line(
        "unsigned char *const scratch = scratch_of_all + "
        "scratch_bytes * ((int64_t)blockIdx.x * blockDim.x + threadIdx.x);");
  text.paste(group.body);
  text.close();
  const auto entry = [&](const char* name, bool is_aligned) {
    const std::string cluster = is_cluster ? cat("__cluster_dims__(", blocks, ", 1, 1) ") : "";
    text.open("extern \"C\" __global__ void ", cluster, "__launch_bounds__(", out.header.threads,
              ") ", name, "(", parameters, ")");
    if (is_cluster) text.line("hone_arrive();");
    if (!waits_later) text.line(wait_for_previous);
    text.line("hone_body<", is_aligned ? "true" : "false", ">(", arguments, ");");
    // A block must not end while another one writes to its memory.
    if (is_cluster) text.line("hone_wait_for_blocks();");
    text.close();
  };
  entry(kernel_symbol, true);
  if (!group.vectors.empty()) {
    out.header.alignment = vector_alignment;
    out.header.has_unaligned = !kernel.is_aligned;
    if (!kernel.is_aligned) entry(unaligned_symbol, false);
  }
  out.text = text.str();
  return out;
}

}  // namespace hone::cuda
