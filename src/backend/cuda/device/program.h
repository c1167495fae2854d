// Loaded cubins and the kernels in them.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/device/context.h"
#include "backend/cuda/device/memory_split.h"
#include "backend/cuda/driver/code.h"

namespace hone::cuda {

// A driver function and the memory that its blocks need.
struct LoadedFunction {
  CUfunction handle = nullptr;
  BlockMemory memory;
  std::atomic<int> percent = -1;  // requested by the last launch
};

struct LoadedKernel {
  CodeHeader header;
  std::string name;
  LoadedFunction aligned, unaligned;
};

class CudaProgram final : public LoadedCode {
 public:
  CudaProgram(std::shared_ptr<Context>, std::span<const Binary* const>, std::string_view where);
  ~CudaProgram() override;

  KernelHandle entry(std::string_view name) const override;
  std::size_t bytes() const override { return bytes_; }

 private:
  void load(const Binary&, std::string_view where);
  void prepare(LoadedFunction&, CUmodule, const char* symbol, const LoadedKernel&,
               std::string_view where);
  void require_clusters(CUfunction, const CodeHeader&, std::string_view where);

  std::shared_ptr<Context> context_;
  std::vector<CUmodule> modules_;
  std::map<std::string, std::unique_ptr<LoadedKernel>, std::less<>> kernels_;
  std::size_t bytes_ = 0;
};

// The Device::rank of cubins on a device of this compute capability: it runs those of its own
// generation up to its own capability.
int rank_of(std::string_view target, int capability);

}  // namespace hone::cuda
