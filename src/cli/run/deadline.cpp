#include "cli/run/deadline.h"

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "cli/run/exit.h"

namespace hone::cli {

namespace {

// Time for a run to stop by itself, with a message that says where it was.
constexpr std::chrono::milliseconds grace{500};

}  // namespace

// Ends the process at a time, unless it is destroyed before.
class Deadline::Watch {
 public:
  Watch(Clock::time_point at, double seconds)
      : at_(at), seconds_(seconds), thread_([this] { wait(); }) {}
  ~Watch() {
    {
      std::lock_guard lock(mutex_);
      is_done_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  void wait() {
    std::unique_lock lock(mutex_);
    if (changed_.wait_until(lock, at_, [&] { return is_done_; })) return;
    std::fprintf(stderr,
                 "hone: the deadline of %g s passed and the command was ended; allow more "
                 "(--deadline), or use smaller sizes\n",
                 seconds_);
    std::fflush(stdout);
    std::_Exit(exit_user);
  }

  Clock::time_point at_;
  double seconds_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_done_ = false;
  std::thread thread_;
};

Deadline::Deadline() = default;
Deadline::~Deadline() = default;

void Deadline::start(double seconds) {
  constexpr double longest = 1e9;  // a clock's count does not overflow
  at_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                           std::chrono::duration<double>(std::min(seconds, longest)));
  watch_ = std::make_unique<Watch>(*at_ + grace, seconds);
}

void add_deadline(Arguments& a, Deadline& d) {
  a.real("--deadline", "SECONDS", "end the command after this time",
         [&d](double seconds) { d.start(seconds); });
}

}  // namespace hone::cli
