#include "base/fault.h"

#include <signal.h>
#include <sys/mman.h>

#include <array>
#include <iterator>
#include <mutex>

#include "base/error.h"

namespace hone {

namespace {

struct Kind {
  int signal;
  const char* means;
};
constexpr Kind kinds[] = {{SIGSEGV, "used memory that is not its own"},
                          {SIGBUS, "used memory that is not there"},
                          {SIGILL, "has an instruction that this processor lacks"},
                          {SIGFPE, "divided by zero"}};

thread_local FaultScope* innermost = nullptr;

// The handlers are installed while any thread has an open scope.
std::mutex handlers_mutex;
int open_scopes = 0;
std::array<struct sigaction, std::size(kinds)> before;

void pass_on(int signal, siginfo_t* info, void* context) {
  std::size_t i = 0;
  while (kinds[i].signal != signal) ++i;
  const struct sigaction& old = before[i];
  if (old.sa_flags & SA_SIGINFO) return old.sa_sigaction(signal, info, context);
  if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) return old.sa_handler(signal);
  ::sigaction(signal, &old, nullptr);  // the instruction faults again, now with the old handler
}

void on_signal(int signal, siginfo_t* info, void* context) {
  FaultScope::fault(signal, info->si_addr);
  pass_on(signal, info, context);
}

}  // namespace

void FaultScope::fault(int signal, const void* address) {
  FaultScope* scope = innermost;
  if (!scope || !scope->is_running_) return;
  scope->is_running_ = false;
  scope->signal_ = signal;
  scope->address_ = address;
  std::longjmp(scope->back_, 1);  // NOLINT: the frames in between are the kernel's
}

FaultScope::FaultScope() : outer_(innermost) {
  const std::scoped_lock lock(handlers_mutex);
  if (open_scopes++ == 0) {
    struct sigaction ours = {};
    ours.sa_sigaction = on_signal;
    ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    for (std::size_t i = 0; i < std::size(kinds); ++i)
      ::sigaction(kinds[i].signal, &ours, &before[i]);
  }
  innermost = this;
}

FaultScope::~FaultScope() {
  const std::scoped_lock lock(handlers_mutex);
  innermost = outer_;
  if (--open_scopes == 0)
    for (std::size_t i = 0; i < std::size(kinds); ++i)
      ::sigaction(kinds[i].signal, &before[i], nullptr);
}

void close_pages(std::byte* page, std::size_t bytes) {
  HONE_ASSERT(::mprotect(page, bytes, PROT_NONE) == 0, "a page cannot be closed");
}
void open_pages(std::byte* page, std::size_t bytes) {
  HONE_ASSERT(::mprotect(page, bytes, PROT_READ | PROT_WRITE) == 0, "a page cannot be opened");
}

FaultScope* FaultScope::current() { return innermost; }

void FaultScope::run(void (*code)(void*), void* context) {
  if (!what_.empty()) return;
  if (_setjmp(back_) == 0) {
    is_running_ = true;
    code(context);
    is_running_ = false;
    return;
  }
  const char* means = "";
  for (const Kind& k : kinds)
    if (k.signal == signal_) means = k.means;
  what_ = cat("it ", means, " (signal ", signal_, ", address ", address_, ")");
}

}  // namespace hone
