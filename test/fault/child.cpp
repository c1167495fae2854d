#include "test/fault/child.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "base/error.h"

namespace hone::test {

namespace {

std::string read_all(int from, pid_t child, int seconds) {
  std::string out;
  char part[4096];
  for (pollfd p{from, POLLIN, 0};;) {
    if (::poll(&p, 1, seconds * 1000) <= 0) {
      ::kill(child, SIGKILL);
      return "timeout";
    }
    const ssize_t n = ::read(from, part, sizeof part);
    if (n <= 0) return out;
    out.append(part, static_cast<std::size_t>(n));
  }
}

[[noreturn]] void work(int to, const std::function<std::string()>& f) {
  std::string text;
  try {
    text = f();
  } catch (const std::exception& e) {
    text = cat("throws ", e.what());
  }
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t n = ::write(to, text.data() + at, text.size() - at);
    if (n <= 0) break;
    at += static_cast<std::size_t>(n);
  }
  std::fflush(nullptr);
  ::_exit(0);
}

}  // namespace

std::string in_child(const std::function<std::string()>& f, int seconds) {
  int ends[2];
  HONE_ASSERT(::pipe(ends) == 0, "no pipe");
  std::fflush(nullptr);
  const pid_t child = ::fork();
  HONE_ASSERT(child >= 0, "no process");
  if (child == 0) {
    ::close(ends[0]);
    work(ends[1], f);
  }
  ::close(ends[1]);
  std::string out = read_all(ends[0], child, seconds);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (out == "timeout") return out;
  if (WIFSIGNALED(status)) return cat("signal ", WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? out : cat("exit ", WEXITSTATUS(status));
}

}  // namespace hone::test
