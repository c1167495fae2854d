#include "backend/cuda/device/program.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace hone::cuda {

int rank_of(std::string_view target, int capability) {
  if (target == "any") return 0;
  constexpr std::string_view prefix = "sm_";
  if (!target.starts_with(prefix)) return -1;
  const std::string_view number = target.substr(prefix.size());
  int wanted = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), wanted);
  if (error != std::errc() || end != number.data() + number.size()) return -1;
  return wanted / 10 == capability / 10 && wanted <= capability ? 1 + wanted : -1;
}

CudaProgram::CudaProgram(std::shared_ptr<Context> context, std::span<const Binary* const> binaries,
                         std::string_view where)
    : context_(std::move(context)) {
  context_->refuse_if_lost();
  const Scope scope(*context_);
  try {
    for (const Binary* b : binaries) load(*b, where);
  } catch (...) {
    for (CUmodule m : modules_) driver().cuModuleUnload(m);
    throw;
  }
}

CudaProgram::~CudaProgram() {
  if (context_->is_lost()) return;
  CUcontext old = nullptr;
  if (driver().cuCtxPushCurrent(context_->handle()) != CUDA_SUCCESS) return;
  for (CUmodule m : modules_) driver().cuModuleUnload(m);
  driver().cuCtxPopCurrent(&old);
}

// Some devices, and partitions of shared devices, cannot run clusters of that many blocks.
void CudaProgram::require_clusters(CUfunction f, const CodeHeader& header, std::string_view where) {
  CUlaunchAttribute size{};
  size.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  size.value.clusterDim = {header.blocks, 1, 1};
  CUlaunchConfig config{};
  config.gridDimX = header.blocks;
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = header.threads;
  config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = header.shared_bytes;
  config.attrs = &size;
  config.numAttrs = 1;
  int clusters = 0;
  if (driver().cuOccupancyMaxActiveClusters(&clusters, f, &config) != CUDA_SUCCESS || clusters == 0)
    throw UserError(where, ": needs clusters of ", header.blocks, " blocks, which device ",
                    context_->ordinal(), " does not run; optimize the model on this device");
}

void CudaProgram::load(const Binary& b, std::string_view where) {
  hone::check(b, where);
  if (rank_of(b.target, context_->capability()) <= 0)
    throw UserError(where, ": is compiled for ", b.target, ", and device ", context_->ordinal(),
                    " is sm_", context_->capability(), "; compile it for that target");
  CodeHeader header;
  const auto damaged = [&] {
    return UserError(where, ": code for ", b.target, " is damaged; compile it again");
  };
  if (b.code.size() < sizeof header) throw damaged();
  std::memcpy(&header, b.code.data(), sizeof header);
  if (header.magic != code_magic || header.groups == 0 || header.blocks == 0 ||
      (header.blocks > 1 && header.has_scratch) || header.copies > CacheCopies::once ||
      header.cubin_bytes != b.code.size() - sizeof header)
    throw damaged();
  CUmodule module = nullptr;
  context_->check(driver().cuModuleLoadData(&module, b.code.data() + sizeof header),
                  "cuModuleLoadData", std::string(where));
  modules_.push_back(module);
  bytes_ += header.cubin_bytes;
  for (const Binary::Entry& e : b.entries) {
    auto kernel = std::make_unique<LoadedKernel>();
    kernel->header = header;
    kernel->name = e.name;
    // Entries may be renamed; the cubin knows one kernel.
    prepare(kernel->aligned, module, kernel_symbol, *kernel, where);
    if (header.has_unaligned) prepare(kernel->unaligned, module, unaligned_symbol, *kernel, where);
    kernels_.emplace(e.name, std::move(kernel));
  }
}

void CudaProgram::prepare(LoadedFunction& f, CUmodule module, const char* symbol,
                          const LoadedKernel& kernel, std::string_view where) {
  const auto check = [&](CUresult r, const char* call) { context_->check(r, call, kernel.name); };
  const CodeHeader& header = kernel.header;
  check(driver().cuModuleGetFunction(&f.handle, module, symbol), "cuModuleGetFunction");
  const auto set = [&](CUfunction_attribute attribute, std::uint32_t value) {
    check(driver().cuFuncSetAttribute(f.handle, attribute, static_cast<int>(value)),
          "cuFuncSetAttribute");
  };
  if (header.shared_bytes > default_shared_bytes - kept_shared_bytes)
    set(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, header.shared_bytes);
  if (header.blocks > portable_cluster_blocks) {
    set(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    require_clusters(f.handle, header, where);
  }
  int own_bytes = 0, most = 0;
  check(driver().cuFuncGetAttribute(&own_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f.handle),
        "cuFuncGetAttribute");
  check(driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &most, f.handle, static_cast<int>(header.threads), header.shared_bytes),
        "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  const std::int64_t bytes = header.shared_bytes + own_bytes;
  f.memory = {bytes > 0 ? bytes + context_->multiprocessors().kept_bytes : 0, std::max(most, 1),
              header.copies};
}

KernelHandle CudaProgram::entry(std::string_view name) const {
  const auto it = kernels_.find(name);
  if (it == kernels_.end()) throw UserError("cuda: has no kernel '", name, "'");
  return KernelHandle{reinterpret_cast<std::uintptr_t>(it->second.get())};
}

}  // namespace hone::cuda
