#include "runtime/pending_work.h"

#include <algorithm>

namespace hone {

void PendingWork::order(Stream& stream, FairLock::Mode mode, const void* user) {
  const std::lock_guard lock(mutex_);
  const auto follow = [&](const Use& u) {
    if (u.end && (!user || u.user != user)) stream.wait(*u.end);
  };
  follow(write_);
  if (mode == FairLock::Mode::exclusive) std::ranges::for_each(reads_, follow);
}

void PendingWork::add(const void* user, const std::shared_ptr<Event>& end, FairLock::Mode mode) {
  const std::lock_guard lock(mutex_);
  if (mode == FairLock::Mode::exclusive) {
    reads_.clear();
    write_ = {user, end};
    return;
  }
  const auto own = std::ranges::find(reads_, user, &Use::user);
  if (own == reads_.end())
    reads_.push_back({user, end});
  else
    own->end = end;
}

void PendingWork::forget(const void* user) {
  const std::lock_guard lock(mutex_);
  if (write_.user == user) write_ = {};
  std::erase_if(reads_, [&](const Use& u) { return u.user == user; });
}

void PendingWork::clear() {
  const std::lock_guard lock(mutex_);
  write_ = {};
  reads_.clear();
}

}  // namespace hone
