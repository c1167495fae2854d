// Runs one job at a time in its own thread, which starts with the first job. Not a queue.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace hone {

class BackgroundJob {
 public:
  // `run` is the job; `finished` is called after it, before wait() can return.
  BackgroundJob(std::function<void()> run, std::function<void()> finished);
  // Waits for the running job.
  ~BackgroundJob();
  BackgroundJob(const BackgroundJob&) = delete;
  BackgroundJob& operator=(const BackgroundJob&) = delete;

  // Must not be called while a job is running.
  void start();
  bool is_finished() const;  // also when none was started
  // Rethrows what the job threw, once.
  void wait();

 private:
  enum class State : std::uint8_t { none, waiting, running, finished };
  void work();

  std::function<void()> run_, finished_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::none;
  std::exception_ptr error_;
  bool is_closing_ = false;
  std::thread worker_;
};

}  // namespace hone
