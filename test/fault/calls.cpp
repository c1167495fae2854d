#include "test/fault/calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace hone::test {

namespace {

std::string_view failing;
long first_failure = 0;
int error_to_give = 0;
std::atomic<long> calls{0};

bool fails(std::string_view name) {
  if (failing != name || ++calls < first_failure) return false;
  errno = error_to_give;
  return true;
}

template <class F>
F* next(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

void fail_call(std::string_view name, long n, int error_number) {
  calls = 0;
  first_failure = n;
  error_to_give = error_number;
  failing = name;
}

long calls_made() { return calls; }

}  // namespace hone::test

using hone::test::fails;
using hone::test::next;

extern "C" {

ssize_t write(int fd, const void* from, size_t n) {
  static auto* real = next<ssize_t(int, const void*, size_t)>("write");
  return fd > 2 && fails("write") ? -1 : real(fd, from, n);
}

int fsync(int fd) {
  static auto* real = next<int(int)>("fsync");
  return fails("fsync") ? -1 : real(fd);
}

int rename(const char* from, const char* to) noexcept {
  static auto* real = next<int(const char*, const char*)>("rename");
  return fails("rename") ? -1 : real(from, to);
}

int open(const char* path, int flags, ...) {
  static auto* real = next<int(const char*, int, ...)>("open");
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return fails("open") ? -1 : real(path, flags, mode);
}

void* mmap(void* at, size_t n, int protection, int flags, int fd, off_t offset) noexcept {
  static auto* real = next<void*(void*, size_t, int, int, int, off_t)>("mmap");
  return fails("mmap") ? MAP_FAILED : real(at, n, protection, flags, fd, offset);
}

int mprotect(void* at, size_t n, int protection) noexcept {
  static auto* real = next<int(void*, size_t, int)>("mprotect");
  return fails("mprotect") ? -1 : real(at, n, protection);
}

void* aligned_alloc(size_t alignment, size_t n) noexcept {
  static auto* real = next<void*(size_t, size_t)>("aligned_alloc");
  return fails("alloc") ? nullptr : real(alignment, n);
}

void* dlopen(const char* name, int flags) noexcept {
  static auto* real = next<void*(const char*, int)>("dlopen");
  return name && std::string_view(name).starts_with("libdnnl") && fails("dlopen")
             ? real("libhidden-dnnl.so", flags)
             : real(name, flags);
}

}  // extern "C"

void* operator new(std::size_t n) {
  if (fails("new")) throw std::bad_alloc();
  if (void* p = std::malloc(n ? n : 1)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
