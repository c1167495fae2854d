#include "runtime/fair_lock.h"

namespace hone {

bool FairLock::lock(Mode mode, const std::stop_token& stop, const Deadline& deadline) {
  std::unique_lock guard(mutex_);
  if (queue_.empty() && is_free_for(mode)) {
    take(mode);
    return true;
  }
  Waiter self{mode};
  const auto place = queue_.insert(queue_.end(), &self);
  const auto has_lock = [&] { return self.has_lock; };
  const bool entered = deadline ? self.woken.wait_until(guard, stop, *deadline, has_lock)
                                : self.woken.wait(guard, stop, has_lock);
  if (entered) return true;
  queue_.erase(place);
  admit();  // those behind it may now be the first
  return false;
}

void FairLock::unlock(Mode mode) noexcept {
  const std::lock_guard guard(mutex_);
  if (mode == Mode::shared)
    --readers_;
  else
    has_writer_ = false;
  admit();
}

bool FairLock::is_free_for(Mode mode) const {
  return !has_writer_ && (mode == Mode::shared || readers_ == 0);
}

void FairLock::take(Mode mode) {
  if (mode == Mode::shared)
    ++readers_;
  else
    has_writer_ = true;
}

void FairLock::admit() {
  while (!queue_.empty() && is_free_for(queue_.front()->mode)) {
    Waiter& first = *queue_.front();
    queue_.pop_front();
    take(first.mode);
    first.has_lock = true;
    first.woken.notify_one();
  }
}

}  // namespace hone
