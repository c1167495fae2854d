// Reports faults of generated code as messages. A kernel that is not trusted yet may access invalid
// memory; the caller that tries it reports the fault and continues.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <string>

namespace hone {

// While a scope is open, a processor fault (a bad address, an illegal instruction, an integer
// division) in the code that this thread passes to run() ends that call, and what() gives the
// reason. Signals of other threads and other code keep their previous handlers.
class FaultScope {
 public:
  FaultScope();
  ~FaultScope();
  FaultScope(const FaultScope&) = delete;

  static FaultScope* current();  // of this thread; null when none is open
  // `code` must not own anything: a fault skips destructors. After a fault, does nothing.
  void run(void (*code)(void*), void* context);
  const std::string& what() const { return what_; }  // empty: no fault occurred

  // Returns when the fault is not in code that a scope of this thread runs.
  static void fault(int signal, const void* address);

 private:
  FaultScope* outer_;
  bool is_running_ = false;
  int signal_ = 0;
  const void* address_ = nullptr;
  std::jmp_buf back_;
  std::string what_;
};

// Guard pages: accesses fault until they are opened again. They must lie in the caller's memory, at
// a multiple of the size of one.
inline constexpr std::size_t fence_page_bytes = 4096;
void close_pages(std::byte* page, std::size_t bytes = fence_page_bytes);
void open_pages(std::byte* page, std::size_t bytes = fence_page_bytes);

}  // namespace hone
