#include "runtime/fair_lock.h"

namespace hone {

bool FairLock::lock(Mode mode, const std::stop_token& stop, const Deadline& deadline) {
  std::unique_lock guard(mutex_);
  const std::uint64_t ticket = next_++;
  const auto enters = [&] { return can_enter(ticket, mode); };
  const bool entered =
      deadline ? turn_.wait_until(guard, stop, *deadline, enters) : turn_.wait(guard, stop, enters);
  if (!entered) {
    give_up(ticket);
    return false;
  }
  if (mode == Mode::shared)
    ++readers_;
  else
    has_writer_ = true;
  advance();
  return true;
}

void FairLock::unlock(Mode mode) noexcept {
  const std::lock_guard guard(mutex_);
  if (mode == Mode::shared)
    --readers_;
  else
    has_writer_ = false;
  turn_.notify_all();
}

bool FairLock::can_enter(std::uint64_t ticket, Mode mode) const {
  return serving_ == ticket && !has_writer_ && (mode == Mode::shared || readers_ == 0);
}

void FairLock::give_up(std::uint64_t ticket) {
  if (ticket == serving_)
    advance();
  else
    left_.insert(ticket);
}

void FairLock::advance() {
  for (++serving_; left_.erase(serving_) > 0;) ++serving_;
  turn_.notify_all();
}

}  // namespace hone
