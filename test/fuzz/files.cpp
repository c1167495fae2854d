// Functions that all targets share.
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "test/fuzz/targets.h"

namespace hone::fuzz {

void with_file(Bytes bytes, const std::function<void(const std::filesystem::path&)>& use) {
  struct Descriptor {
    int fd = ::memfd_create("input", MFD_CLOEXEC);
    ~Descriptor() { ::close(fd); }
  } file;
  HONE_ASSERT(file.fd >= 0, "a file in memory can be made");
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t n = ::write(file.fd, bytes.data() + at, bytes.size() - at);
    HONE_ASSERT(n > 0, "a file in memory can be written");
    at += static_cast<std::size_t>(n);
  }
  use(cat("/proc/self/fd/", file.fd));
}

void answer(const std::function<void()>& f) {
  try {
    f();
  } catch (const UserError&) {
  }
}

}  // namespace hone::fuzz
