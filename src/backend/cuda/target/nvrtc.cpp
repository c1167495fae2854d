#include "backend/cuda/target/nvrtc.h"

#include <nvrtc.h>

#include <algorithm>
#include <filesystem>

#include "backend/cuda/driver/open.h"
#include "base/error.h"
#include "base/library.h"

namespace hone::cuda {

namespace {

// clang-format off
#define HONE_NVRTC_FUNCTIONS(X) \
  X(nvrtcVersion) X(nvrtcGetErrorString) X(nvrtcCreateProgram) X(nvrtcDestroyProgram) \
  X(nvrtcCompileProgram) X(nvrtcGetProgramLogSize) X(nvrtcGetProgramLog) X(nvrtcGetCUBINSize) \
  X(nvrtcGetCUBIN) X(nvrtcGetPTXSize) X(nvrtcGetPTX) X(nvrtcGetNumSupportedArchs) \
  X(nvrtcGetSupportedArchs)
// clang-format on

struct Nvrtc {
#define HONE_NVRTC_MEMBER(name) decltype(&::name) name = nullptr;
  HONE_NVRTC_FUNCTIONS(HONE_NVRTC_MEMBER)
#undef HONE_NVRTC_MEMBER
  NvrtcStatus status;
  std::vector<int> architectures;
};

constexpr const char* soname = "libnvrtc.so.13";

// NVRTC opens this library by name only, which finds an already opened one.
void open_builtins(const std::filesystem::path& directory) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("libnvrtc-builtins.so.")) open_library(entry.path().c_str());
  }
}

void* open_somewhere(NvrtcStatus& status) {
  std::vector<std::string> more;
#ifdef HONE_NVRTC_DIR
  more.push_back(HONE_NVRTC_DIR);  // from this build's configuration
#endif
  OpenedLibrary opened = open_nvidia_library(soname, more);
  status.file = std::move(opened.file);
  status.failure = std::move(opened.failure);
  if (const auto directory = std::filesystem::path(status.file).parent_path(); !directory.empty())
    open_builtins(directory);
  return opened.handle;
}

Nvrtc open_nvrtc() {
  Nvrtc n;
  void* library = open_somewhere(n.status);
  if (!library) return n;
#define HONE_NVRTC_FIND(name)                                                    \
  n.name = reinterpret_cast<decltype(&::name)>(find_in_library(library, #name)); \
  if (!n.name && n.status.failure.empty())                                       \
    n.status.failure = cat(n.status.file, " lacks ", #name, "; install a newer one");
  HONE_NVRTC_FUNCTIONS(HONE_NVRTC_FIND)
#undef HONE_NVRTC_FIND
  if (!n.status.failure.empty()) return n;
  int major = 0, minor = 0, count = 0;
  if (n.nvrtcVersion(&major, &minor) != NVRTC_SUCCESS ||
      n.nvrtcGetNumSupportedArchs(&count) != NVRTC_SUCCESS) {
    n.status.failure = cat(n.status.file, " does not say its version");
    return n;
  }
  n.status.version = cat(major, ".", minor);
  n.architectures.resize(static_cast<std::size_t>(count));
  n.nvrtcGetSupportedArchs(n.architectures.data());
  return n;
}

const Nvrtc& nvrtc() {
  static const Nvrtc it = open_nvrtc();
  return it;
}

class NvrtcProgram {
 public:
  NvrtcProgram(const std::string& source, const std::string& name) {
    check(nvrtc().nvrtcCreateProgram(&handle_, source.c_str(), name.c_str(), 0, nullptr, nullptr),
          "nvrtcCreateProgram");
  }
  ~NvrtcProgram() { nvrtc().nvrtcDestroyProgram(&handle_); }
  NvrtcProgram(const NvrtcProgram&) = delete;
  NvrtcProgram& operator=(const NvrtcProgram&) = delete;

  static void check(nvrtcResult r, const char* call) {
    if (r != NVRTC_SUCCESS) throw InternalError(cat(call, ": ", nvrtc().nvrtcGetErrorString(r)));
  }
  std::string log() const {
    std::size_t bytes = 0;
    nvrtc().nvrtcGetProgramLogSize(handle_, &bytes);
    std::string out(bytes, '\0');
    if (bytes > 0) nvrtc().nvrtcGetProgramLog(handle_, out.data());
    return out;
  }
  nvrtcProgram handle() const { return handle_; }

 private:
  nvrtcProgram handle_ = nullptr;
};

void check_architecture(std::string_view architecture) {
  const std::string number(architecture.substr(architecture.find('_') + 1));
  const int wanted = std::atoi(number.c_str());
  const std::vector<int>& known = nvrtc().architectures;
  if (std::ranges::find(known, wanted) != known.end()) return;
  std::string all;
  for (int a : known) all += cat(all.empty() ? "" : ", ", "sm_", a);
  throw UserError("cuda: NVRTC ", nvrtc().status.version, " does not compile for ", architecture,
                  "; it knows ", all);
}

}  // namespace

const NvrtcStatus& nvrtc_status() { return nvrtc().status; }

std::vector<std::byte> nvrtc_compile(const std::string& source, std::string_view name,
                                     std::string_view architecture) {
  const Nvrtc& n = nvrtc();
  if (!n.status.failure.empty())
    throw UserError("cuda: cannot compile kernels: ", n.status.failure);
  check_architecture(architecture);
  const NvrtcProgram program(source, std::string(name) + ".cu");
  const std::string arch = cat("--gpu-architecture=", architecture);
  // Fused operations are explicit in the source; toolkit headers are not needed.
  const char* options[] = {arch.c_str(), "--std=c++17", "--fmad=false", "--minimal"};
  if (n.nvrtcCompileProgram(program.handle(), static_cast<int>(std::size(options)), options) !=
      NVRTC_SUCCESS)
    throw InternalError(cat("NVRTC refuses kernel ", name, ":\n", program.log(), "\n", source));
  const bool is_ptx = architecture.starts_with("compute");
  std::size_t bytes = 0;
  NvrtcProgram::check(is_ptx ? n.nvrtcGetPTXSize(program.handle(), &bytes)
                             : n.nvrtcGetCUBINSize(program.handle(), &bytes),
                      "nvrtcGetCUBINSize");
  std::vector<std::byte> out(bytes);
  auto* to = reinterpret_cast<char*>(out.data());
  NvrtcProgram::check(
      is_ptx ? n.nvrtcGetPTX(program.handle(), to) : n.nvrtcGetCUBIN(program.handle(), to),
      "nvrtcGetCUBIN");
  return out;
}

}  // namespace hone::cuda
