// Counts the calls of malloc and mmap and their bytes, in every library of the process.
#pragma once

#include "base/sanitizer.h"

// Sanitizers have allocators of their own, so tests that watch are not in those builds.
#if !defined(HONE_ADDRESS_SANITIZER) && !defined(HONE_THREAD_SANITIZER)
#define HONE_WATCHES_MEMORY 1
#endif

namespace hone::test {

// Counts from its construction on, for all threads or for the constructing one. Only one may exist
// at a time.
class Watch {
 public:
  enum class Of : bool { all_threads, this_thread };
  explicit Watch(Of = Of::all_threads);
  ~Watch();
  Watch(const Watch&) = delete;

  long allocations() const;  // calls that returned memory
  long held() const;         // bytes allocated minus bytes freed
  long peak() const;         // maximum of held()

  // While it lives, allocations of this thread are not counted. For calls of a driver.
  class Pause {
   public:
    Pause();
    ~Pause();
    Pause(const Pause&) = delete;
  };
};

}  // namespace hone::test
