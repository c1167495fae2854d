#include "test/onnx/workers.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <optional>

#include "base/error.h"

namespace hone::conformance {

namespace {

using Clock = std::chrono::steady_clock;

bool read_all(int fd, void* to, std::size_t n) {
  for (auto* at = static_cast<char*>(to); n > 0;) {
    const ssize_t got = ::read(fd, at, n);
    if (got <= 0) return false;
    at += got;
    n -= static_cast<std::size_t>(got);
  }
  return true;
}

bool write_all(int fd, const void* from, std::size_t n) {
  for (auto* at = static_cast<const char*>(from); n > 0;) {
    const ssize_t put = ::send(fd, at, n, MSG_NOSIGNAL);
    if (put <= 0) return false;
    at += put;
    n -= static_cast<std::size_t>(put);
  }
  return true;
}

// A forked process that receives job numbers and returns outcomes, until its socket closes.
class Worker {
 public:
  explicit Worker(const std::function<Outcome(std::size_t)>& work) {
    int pair[2];
    HONE_ASSERT(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0,
                "socketpair: ", std::strerror(errno));
    pid_ = ::fork();
    HONE_ASSERT(pid_ >= 0, "fork: ", std::strerror(errno));
    if (pid_ == 0) {
      ::close(pair[0]);
      serve(pair[1], work);
      ::_exit(0);
    }
    ::close(pair[1]);
    fd_ = pair[0];
  }
  // Processes forked later hold copies of the socket, so closing it would not end this one.
  ~Worker() {
    ::shutdown(fd_, SHUT_RDWR);
    ::close(fd_);
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  }
  Worker(const Worker&) = delete;

  int fd() const { return fd_; }
  std::optional<std::size_t> job() const { return job_; }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  // False if the process has ended.
  bool start(std::size_t job) {
    start_ = Clock::now();
    job_ = job;
    return write_all(fd_, &job, sizeof job);
  }
  // The outcome that it sent; empty if it died.
  std::optional<Outcome> take() {
    std::uint32_t size = 0;
    if (!read_all(fd_, &size, sizeof size)) return std::nullopt;
    std::string text(size, '\0');
    if (!read_all(fd_, text.data(), size)) return std::nullopt;
    job_.reset();
    return outcome_from(Json::parse(text, "worker"));
  }
  // Ends the process and returns how it ended.
  Outcome bury(bool too_long) {
    if (too_long) ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    if (too_long)
      return {Verdict::timeout, cat("no end after ", static_cast<int>(seconds()), " s")};
    if (WIFSIGNALED(status)) return {Verdict::crash, cat("signal ", ::strsignal(WTERMSIG(status)))};
    return {Verdict::crash, cat("the process exited with ", WEXITSTATUS(status))};
  }

 private:
  static void serve(int fd, const std::function<Outcome(std::size_t)>& work) {
    for (std::size_t job; read_all(fd, &job, sizeof job);) {
      const std::string text = to_json(work(job)).text();
      const auto size = static_cast<std::uint32_t>(text.size());
      if (!write_all(fd, &size, sizeof size) || !write_all(fd, text.data(), size)) return;
    }
  }

  pid_t pid_ = -1;
  int fd_ = -1;
  std::optional<std::size_t> job_;
  Clock::time_point start_;
};

}  // namespace

std::vector<Outcome> run_forked(std::size_t jobs, const std::function<Outcome(std::size_t)>& work,
                                const WorkerOptions& options,
                                const std::function<void(std::size_t, const Outcome&)>& done) {
  std::vector<Outcome> out(jobs);
  std::size_t next = 0, finished = 0;
  std::vector<std::unique_ptr<Worker>> workers;
  for (int i = 0; i < options.workers; ++i) workers.push_back(std::make_unique<Worker>(work));
  auto finish = [&](std::size_t job, Outcome o) {
    ++finished;
    done(job, o);
    out[job] = std::move(o);
  };
  while (finished < jobs) {
    std::vector<pollfd> polls;
    for (std::unique_ptr<Worker>& w : workers) {
      while (!w->job() && next < jobs)
        if (!w->start(next++)) w = std::make_unique<Worker>(work), --next;
      polls.push_back({w->fd(), POLLIN, 0});
    }
    ::poll(polls.data(), polls.size(), 100);
    for (std::size_t i = 0; i < workers.size(); ++i) {
      std::unique_ptr<Worker>& w = workers[i];
      if (!w->job()) continue;
      const std::size_t job = *w->job();
      const bool speaks = polls[i].revents != 0, too_long = w->seconds() > options.most_seconds;
      if (!speaks && !too_long) continue;
      std::optional<Outcome> o = speaks ? w->take() : std::nullopt;
      if (!o) {
        o = w->bury(!speaks);
        w = std::make_unique<Worker>(work);
      }
      finish(job, std::move(*o));
    }
  }
  return out;
}

}  // namespace hone::conformance
