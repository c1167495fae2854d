// A lock that several readers or one writer hold, granted in the order in which it was asked for,
// so that neither readers nor writers starve. A waiting caller may give up.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <stop_token>

namespace hone {

class FairLock {
 public:
  enum class Mode : std::uint8_t { shared, exclusive };
  using Deadline = std::optional<std::chrono::steady_clock::time_point>;

  // False, without the lock, when stopped or at the deadline.
  bool lock(Mode, const std::stop_token& = {}, const Deadline& = {});
  void unlock(Mode) noexcept;

 private:
  struct Waiter {
    Mode mode;
    bool has_lock = false;
    std::condition_variable_any woken = {};
  };
  bool is_free_for(Mode) const;
  void take(Mode);
  void admit();  // from the front of the queue, as many as can have the lock

  std::mutex mutex_;
  std::list<Waiter*> queue_;
  int readers_ = 0;
  bool has_writer_ = false;
};

}  // namespace hone
