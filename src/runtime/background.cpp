#include "runtime/background.h"

#include <utility>

namespace hone {

BackgroundJob::BackgroundJob(std::function<void()> run, std::function<void()> finished)
    : run_(std::move(run)), finished_(std::move(finished)) {}

BackgroundJob::~BackgroundJob() {
  if (!worker_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    is_closing_ = true;
  }
  changed_.notify_all();
  worker_.join();
}

void BackgroundJob::start() {
  {
    std::lock_guard lock(mutex_);
    state_ = State::waiting;
    error_ = nullptr;
  }
  if (!worker_.joinable()) worker_ = std::thread([this] { work(); });
  changed_.notify_all();
}

bool BackgroundJob::is_finished() const {
  std::lock_guard lock(mutex_);
  return state_ == State::none || state_ == State::finished;
}

void BackgroundJob::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return state_ == State::none || state_ == State::finished; });
  state_ = State::none;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void BackgroundJob::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return is_closing_ || state_ == State::waiting; });
    if (state_ != State::waiting) return;
    state_ = State::running;
    lock.unlock();
    std::exception_ptr error;
    try {
      run_();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    error_ = error;
    state_ = State::finished;
    finished_();
    changed_.notify_all();
  }
}

}  // namespace hone
