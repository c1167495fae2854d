#include "backend/cuda/driver/driver.h"

#include "base/library.h"

namespace hone::cuda {

namespace {

// The name of a function in cuda.h, which may be a macro for a later version's name.
#define HONE_CUDA_TEXT(name) #name
#define HONE_CUDA_SYMBOL(name) HONE_CUDA_TEXT(name)

constexpr const char* soname = "libcuda.so.1";
// For stream-ordered pools and kernels with more than 4 KiB of arguments.
constexpr int least_version = 12010;

std::string version_text(int v) { return cat(v / 1000, ".", v % 1000 / 10); }

Driver open_driver() {
  Driver d;
  void* library = open_library(soname);
  if (!library) {
    d.failure = cat("no NVIDIA driver: looked for ", soname, " in the library path");
    return d;
  }
#define HONE_CUDA_FIND(name)                                                                      \
  d.name = reinterpret_cast<decltype(&::name)>(find_in_library(library, HONE_CUDA_SYMBOL(name))); \
  if (!d.name && d.failure.empty())                                                               \
    d.failure = cat(soname, " lacks ", HONE_CUDA_SYMBOL(name), "; install a newer driver (CUDA ", \
                    version_text(least_version), " or later)");
  HONE_CUDA_FUNCTIONS(HONE_CUDA_FIND)
#undef HONE_CUDA_FIND
  if (!d.failure.empty()) return d;
  const auto fails = [&](CUresult r, const char* call) {
    if (r == CUDA_SUCCESS) return false;
    const char* name = nullptr;
    d.cuGetErrorName(r, &name);
    d.failure =
        cat(call, " says ", name ? name : "an unknown error", " (", static_cast<int>(r), ")");
    return true;
  };
  if (fails(d.cuInit(0), "cuInit") || fails(d.cuDriverGetVersion(&d.version), "cuDriverGetVersion"))
    return d;
  if (d.version < least_version)
    d.failure = cat("the driver is for CUDA ", version_text(d.version), ", needed is ",
                    version_text(least_version), " or later");
  else if (!fails(d.cuDeviceGetCount(&d.devices), "cuDeviceGetCount") && d.devices == 0)
    d.failure = "the driver finds no device";
  return d;
}

}  // namespace

const Driver& driver() {
  static const Driver it = open_driver();
  return it;
}

const Driver& working_driver() {
  const Driver& d = driver();
  if (!d.failure.empty()) throw UserError("cuda: ", d.failure);
  return d;
}

std::string describe(CUresult r) {
  const char *name = nullptr, *meaning = nullptr;
  if (driver().cuGetErrorName) driver().cuGetErrorName(r, &name);
  if (driver().cuGetErrorString) driver().cuGetErrorString(r, &meaning);
  return cat(name ? name : "unknown error", " (", static_cast<int>(r), ")", meaning ? ": " : "",
             meaning ? meaning : "");
}

void check(CUresult r, const char* call) {
  if (r != CUDA_SUCCESS) throw UserError("cuda: ", call, ": ", describe(r));
}

int capability(int ordinal) {
  const Driver& d = working_driver();
  if (ordinal >= d.devices)
    throw UserError("cuda: device ", ordinal, " of ", d.devices, " does not exist");
  CUdevice device = 0;
  HONE_CUDA(cuDeviceGet, &device, ordinal);
  int major = 0, minor = 0;
  HONE_CUDA(cuDeviceGetAttribute, &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  HONE_CUDA(cuDeviceGetAttribute, &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  return 10 * major + minor;
}

}  // namespace hone::cuda
