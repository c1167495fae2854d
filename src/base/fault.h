// Faults of generated code as messages. A kernel that is not trusted yet may read where nothing is;
// whoever tries it wants to know, and to go on.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <string>

namespace hone {

// While one is open, a fault of the processor (a bad address, an illegal instruction, an integer
// division) in what this thread gives to run() ends that call, and what() tells why. Signals of
// other threads and other code go where they went before.
class FaultScope {
 public:
  FaultScope();
  ~FaultScope();
  FaultScope(const FaultScope&) = delete;

  static FaultScope* current();  // of this thread; null when none is open
  // Not for code that owns anything: no destructor runs after a fault. Does nothing from then on.
  void run(void (*code)(void*), void* context);
  const std::string& what() const { return what_; }  // empty: there was no fault

  // Returns when the fault is not one of code that a scope of this thread runs.
  static void fault(int signal, const void* address);

 private:
  FaultScope* outer_;
  bool is_running_ = false;
  int signal_ = 0;
  const void* address_ = nullptr;
  std::jmp_buf back_;
  std::string what_;
};

// A fence that faults: nothing of the page can be read or written until it is opened again. It must
// lie in memory of the caller's, at a multiple of its size.
inline constexpr std::size_t fence_page_bytes = 4096;
void close_page(std::byte* page);
void open_page(std::byte* page);

}  // namespace hone
