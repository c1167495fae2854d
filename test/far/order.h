// Checks that accesses to far memory are ordered, with vector clocks of streams, events and the
// host. It judges operations in the order in which they are requested, independent of threads.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace hone::test {

// The number of operations of each stream that are known to be finished.
using Clock = std::map<int, std::int64_t>;

inline void join(Clock& to, const Clock& from) {
  for (const auto& [stream, step] : from) to[stream] = std::max(to[stream], step);
}

struct Access {
  std::int64_t begin, end;  // bytes of an allocation
  bool is_written;
  int stream = 0;
  std::int64_t step = 0;
};

// The state of the streams of all far devices and of the host that waits for them.
class Order {
 public:
  static Order& all() {
    static Order it;
    return it;
  }
  int new_stream() {
    const std::scoped_lock lock(mutex_);
    if (free_.empty()) return next_++;
    const int stream = free_.back();
    free_.pop_back();
    return stream;
  }
  // The host has waited for a stream that takes no more operations. Another takes its number and
  // goes on counting, so clocks do not grow with the streams that ever were.
  void end_stream(int stream, const Clock& c) {
    host_waited_for(c);
    const std::scoped_lock lock(mutex_);
    free_.push_back(stream);
  }
  void host_waited_for(const Clock& c) {
    const std::scoped_lock lock(mutex_);
    join(host_, c);
  }
  // Adds an operation to a stream; the operations counted in its clock are finished before it.
  void step(int stream, Clock& clock) {
    const std::scoped_lock lock(mutex_);
    join(clock, host_);
    ++clock[stream];
  }
  // Records an access. False if an earlier access that conflicts with it may be unfinished.
  bool note(std::vector<Access>& earlier, Access a, int stream, const Clock& clock) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(earlier, [&](const Access& e) { return is_finished(e, host_); });
    bool is_in_order = true;
    for (const Access& e : earlier)
      if (e.begin < a.end && a.begin < e.end && (e.is_written || a.is_written))
        is_in_order = is_in_order && is_finished(e, clock);
    a.stream = stream;
    a.step = clock.at(stream);
    earlier.push_back(a);
    return is_in_order;
  }
  // True if the host has waited for all of them.
  bool is_idle(const std::vector<Access>& earlier) {
    const std::scoped_lock lock(mutex_);
    for (const Access& e : earlier)
      if (!is_finished(e, host_)) return false;
    return true;
  }

 private:
  static bool is_finished(const Access& e, const Clock& c) {
    const auto it = c.find(e.stream);
    return it != c.end() && e.step <= it->second;
  }
  std::mutex mutex_;
  int next_ = 0;
  std::vector<int> free_;  // below next_, of no stream
  Clock host_;
};

}  // namespace hone::test
