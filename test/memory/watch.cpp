#include "test/memory/watch.h"

#ifdef HONE_WATCHES_MEMORY
#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace {

std::atomic<bool> watches{false}, watches_one{false};
thread_local bool is_the_one = false, is_paused = false;
std::atomic<long> allocations{0}, held{0}, peak{0};

bool is_watching() { return watches && !is_paused && (!watches_one || is_the_one); }

void hold(long bytes) {
  if (!is_watching()) return;
  const long now = held += bytes;
  for (long p = peak; now > p && !peak.compare_exchange_weak(p, now);) {
  }
}

void* taken(void* p) {
  if (!p || !is_watching()) return p;
  ++allocations;
  hold(static_cast<long>(malloc_usable_size(p)));
  return p;
}

void give_back(void* p) {
  if (p && is_watching()) hold(-static_cast<long>(malloc_usable_size(p)));
}

}  // namespace

// glibc's internal names. Its own calls of mmap do not pass through here, so nothing is counted
// twice.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);
}

#pragma GCC visibility push(default)
extern "C" {

void* malloc(std::size_t n) { return taken(__libc_malloc(n)); }
void* calloc(std::size_t n, std::size_t size) { return taken(__libc_calloc(n, size)); }
void* memalign(std::size_t align, std::size_t n) { return taken(__libc_memalign(align, n)); }
void* aligned_alloc(std::size_t align, std::size_t n) { return memalign(align, n); }
int posix_memalign(void** out, std::size_t align, std::size_t n) {
  *out = memalign(align, n);
  return *out ? 0 : ENOMEM;
}
void* realloc(void* p, std::size_t n) {
  give_back(p);
  return taken(__libc_realloc(p, n));
}
void free(void* p) {
  give_back(p);
  __libc_free(p);
}

void* mmap(void* at, std::size_t n, int protection, int flags, int fd, off_t offset) {
  const long r = ::syscall(SYS_mmap, at, n, protection, flags, fd, offset);
  if (r != -1 && is_watching()) ++allocations;
  if (r != -1) hold(static_cast<long>(n));
  return reinterpret_cast<void*>(r);
}
void* mmap64(void* at, std::size_t n, int protection, int flags, int fd, off_t offset) {
  return mmap(at, n, protection, flags, fd, offset);
}
int munmap(void* at, std::size_t n) {
  hold(-static_cast<long>(n));
  return static_cast<int>(::syscall(SYS_munmap, at, n));
}

}  // extern "C"
#pragma GCC visibility pop

namespace hone::test {

Watch::Watch(Of of) {
  ::allocations = ::held = ::peak = 0;
  watches_one = is_the_one = of == Of::this_thread;
  watches = true;
}
Watch::~Watch() { watches = is_the_one = false; }
Watch::Pause::Pause() { is_paused = true; }
Watch::Pause::~Pause() { is_paused = false; }
long Watch::allocations() const { return ::allocations; }
long Watch::held() const { return ::held; }
long Watch::peak() const { return ::peak; }

}  // namespace hone::test
#endif
