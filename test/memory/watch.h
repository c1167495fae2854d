// Counts and weighs what malloc and mmap give out, in every library of the process.
#pragma once

#include "base/sanitizer.h"

// Sanitizers have allocators of their own, so tests that watch are not in those builds.
#if !defined(HONE_ADDRESS_SANITIZER) && !defined(HONE_THREAD_SANITIZER)
#define HONE_WATCHES_MEMORY 1
#endif

namespace hone::test {

// From its making on, all threads together or the one that makes it. One at a time.
class Watch {
 public:
  enum class Of : bool { all_threads, this_thread };
  explicit Watch(Of = Of::all_threads);
  ~Watch();
  Watch(const Watch&) = delete;

  long allocations() const;  // calls that gave memory
  long held() const;         // bytes taken less bytes given back
  long peak() const;         // the most that were held

  // While it lives, what this thread does is not watched: calls of a driver.
  class Pause {
   public:
    Pause();
    ~Pause();
    Pause(const Pause&) = delete;
  };
};

}  // namespace hone::test
