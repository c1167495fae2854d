#include "base/large_memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/error.h"

namespace hone {

namespace {

constexpr std::size_t page = 4096, large_page = std::size_t{2} << 20;

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

struct Mapping {
  void* at = MAP_FAILED;
  std::size_t bytes = 0;
  ~Mapping() {
    if (at != MAP_FAILED) ::munmap(at, bytes);
  }
};

}  // namespace

void prefer_large_pages(std::byte* at, std::size_t bytes) {
  if (bytes < 2 * large_page) return;
  const auto start = reinterpret_cast<std::uintptr_t>(at);
  const std::size_t before = (page - start % page) % page;
  // If this fails, normal pages are used.
  static_cast<void>(::madvise(at + before, (bytes - before) / page * page, MADV_HUGEPAGE));
}

void keep_freed_memory() {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 256 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 512 << 20);
#endif
}

std::shared_ptr<std::byte> repeated_memory(std::span<const std::byte> content, std::size_t bytes) {
  HONE_ASSERT(!content.empty() && content.size() % page == 0, "a period of ", content.size(),
              " bytes");
  // A process may have about 65,000 mappings. For large memory the file itself repeats the content,
  // so that a few hundred mappings are enough.
  constexpr std::size_t most_mappings = 512;
  const std::size_t times = 1 + bytes / (content.size() * most_mappings),
                    period = times * content.size();
  const Descriptor file{::memfd_create("hone", MFD_CLOEXEC)};
  if (file.number < 0 || ::ftruncate(file.number, static_cast<off_t>(period)) != 0) return nullptr;
  // The last element ends at a page boundary, so the content begins somewhere in the first page.
  const std::size_t used = (bytes + page - 1) / page * page, first = used - bytes;
  {
    Mapping whole{::mmap(nullptr, period, PROT_READ | PROT_WRITE, MAP_SHARED, file.number, 0),
                  period};
    if (whole.at == MAP_FAILED) return nullptr;
    auto* to = static_cast<std::byte*>(whole.at);
    const std::size_t last = content.size() - first;
    for (std::size_t at = 0; at < period; at += content.size()) {
      std::memcpy(to + at + first, content.data(), last);
      std::memcpy(to + at, content.data() + last, first);
    }
  }
  const auto all = std::make_shared<Mapping>();
  all->bytes = used + page;
  all->at =
      ::mmap(nullptr, all->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all->at == MAP_FAILED) return nullptr;
  auto* start = static_cast<std::byte*>(all->at);
  for (std::size_t at = 0; at < used; at += period)
    if (::mmap(start + at, std::min(period, used - at), PROT_READ, MAP_SHARED | MAP_FIXED,
               file.number, 0) == MAP_FAILED)
      return nullptr;
  return {all, start + first};
}

}  // namespace hone
