// One job at a time in a thread of its own, started at the first job. Not a queue.
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
  // What a job does, and what is called when it is finished, before wait() can return.
  BackgroundJob(std::function<void()> run, std::function<void()> finished);
  // Waits for the job that is under way.
  ~BackgroundJob();
  BackgroundJob(const BackgroundJob&) = delete;
  BackgroundJob& operator=(const BackgroundJob&) = delete;

  // Not while a job is under way.
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
