// Memory with an inaccessible page directly behind its end, or directly before its start: a kernel
// that leaves its buffers crashes.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>

namespace hone::test {

enum class Guard { before, behind };

class GuardedBuffer {
 public:
  GuardedBuffer(std::size_t bytes, Guard guard) : bytes_(bytes) {
    mapped_ = (bytes + page - 1) / page * page + 2 * page;
    base_ = static_cast<std::byte*>(
        mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED) throw std::bad_alloc();
    mprotect(base_, page, PROT_NONE);
    mprotect(base_ + mapped_ - page, page, PROT_NONE);
    data_ = guard == Guard::before ? base_ + page : base_ + mapped_ - page - bytes;
  }
  ~GuardedBuffer() { munmap(base_, mapped_); }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  void* data() const { return data_; }
  template <class T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(data_), bytes_ / sizeof(T)};
  }

 private:
  static constexpr std::size_t page = 4096;
  std::size_t bytes_, mapped_;
  std::byte *base_, *data_;
};

}  // namespace hone::test
