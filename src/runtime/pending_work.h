// Work on shared memory that was submitted to streams and may be unfinished: the last write, and
// the reads since. Holds events, no locks of the memory.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "runtime/device.h"
#include "runtime/fair_lock.h"

namespace hone {

// May be used by several threads; calls with a mode need the memory's lock in that mode. A user is
// whoever submits to one stream, in order; its own work is not waited for.
class PendingWork {
 public:
  // Later work of the stream follows the last write and, if it writes, the reads since.
  void order(Stream&, FairLock::Mode, const void* user = nullptr);
  // The user's work ends at the event, which is not recorded again as long as this refers to it.
  void add(const void* user, const std::shared_ptr<Event>&, FairLock::Mode);
  // The user's work is finished.
  void forget(const void* user);
  // All work is finished: that of a writer that order() put behind the others.
  void clear();

 private:
  struct Use {
    const void* user;
    std::shared_ptr<Event> end;
  };
  std::mutex mutex_;
  Use write_{};
  std::vector<Use> reads_;  // at most one per user
};

}  // namespace hone
