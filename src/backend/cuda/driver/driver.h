// libcuda, opened when first needed. Both halves of the backend use it to identify the machine; the
// device half runs on it.
#pragma once

#include <cuda.h>

#include <string>
#include <vector>

#include "base/error.h"

// The version that CUDA 12.1 drivers also have.
#undef cuEventElapsedTime
extern "C" CUresult cuEventElapsedTime(float*, CUevent, CUevent);

namespace hone::cuda {

// Every driver function in use. `cuda.h` renames some of them with macros.
// clang-format off
#define HONE_CUDA_FUNCTIONS(X) \
  X(cuInit) X(cuDriverGetVersion) X(cuGetErrorName) X(cuGetErrorString) X(cuDeviceGetCount) \
  X(cuDeviceGet) X(cuDeviceGetName) X(cuDeviceGetAttribute) \
  X(cuDeviceGetDefaultMemPool) X(cuDevicePrimaryCtxRetain) \
  X(cuDevicePrimaryCtxRelease) X(cuDevicePrimaryCtxReset) X(cuCtxPushCurrent) \
  X(cuCtxPopCurrent) X(cuMemAllocAsync) X(cuMemFreeAsync) \
  X(cuMemGetInfo) X(cuMemPoolSetAttribute) \
  X(cuMemPoolTrimTo) X(cuMemcpyHtoDAsync) X(cuMemcpyDtoHAsync) X(cuMemcpyDtoDAsync) \
  X(cuMemsetD8Async) X(cuStreamCreate) X(cuStreamDestroy) X(cuStreamSynchronize) \
  X(cuStreamWaitEvent) X(cuStreamBeginCapture) X(cuStreamEndCapture) X(cuGraphInstantiate) \
  X(cuGraphLaunch) X(cuGraphDestroy) X(cuGraphExecDestroy) X(cuEventCreate) X(cuEventDestroy) \
  X(cuEventRecord) X(cuEventSynchronize) X(cuEventElapsedTime) X(cuModuleLoadData) X(cuModuleUnload) \
  X(cuModuleGetFunction) X(cuFuncGetAttribute) X(cuFuncSetAttribute) \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor) X(cuOccupancyMaxActiveClusters) X(cuLaunchKernel) \
  X(cuLaunchKernelEx) X(cuPointerGetAttributes) X(cuStreamGetCtx)
// clang-format on

struct Driver {
#define HONE_CUDA_MEMBER(name) decltype(&::name) name = nullptr;
  HONE_CUDA_FUNCTIONS(HONE_CUDA_MEMBER)
#undef HONE_CUDA_MEMBER
  std::string failure;  // why it cannot be used; empty: it can, and cuInit succeeded
  int version = 0;      // 13000
  int devices = 0;
};

// Opens the driver at the first call.
const Driver& driver();
// The same, but throws UserError with the failure if the driver cannot be used.
const Driver& working_driver();

// "CUDA_ERROR_OUT_OF_MEMORY (2): out of memory".
std::string describe(CUresult);
// Throws UserError that names the call and the error.
void check(CUresult, const char* call);
// check(driver().f(...), "f")
#define HONE_CUDA(function, ...) \
  ::hone::cuda::check(::hone::cuda::driver().function(__VA_ARGS__), #function)

// Compute capability 9.0 is 90. Throws UserError if there is no such device.
int capability(int ordinal);

}  // namespace hone::cuda
