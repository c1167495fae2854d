// A lock that several readers or one writer hold, granted in the order in which it was asked for,
// so that neither readers nor writers starve. A waiting caller may give up.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
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
  bool can_enter(std::uint64_t ticket, Mode) const;
  void give_up(std::uint64_t ticket);
  void advance();

  std::mutex mutex_;
  std::condition_variable_any turn_;
  std::uint64_t next_ = 0, serving_ = 0;  // tickets: the next to hand out, the next to enter
  std::set<std::uint64_t> left_;          // tickets of waiters that gave up
  int readers_ = 0;
  bool has_writer_ = false;
};

}  // namespace hone
