// Finds the candidate that breaks a device. After some errors, such as a misaligned address, a
// process can use its GPU no more, so this is found across processes: candidates that ran at the
// time of an error become suspects, the next process runs each suspect alone, and the one that
// fails again is refused from then on.
#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <shared_mutex>

#include "base/device_lost.h"
#include "compile/store.h"

namespace hone {

// A candidate broke the device. Another process can compile what was to be compiled, and avoids the
// candidate. Not a UserError: other candidates cannot be tried in this process.
struct DeviceBroken : std::runtime_error {
  DeviceBroken(const std::string& what, bool remembered)
      : std::runtime_error(what), is_remembered(remembered) {}
  bool is_remembered;  // in the cache, so another process knows
};

// May be used by several threads.
class Suspects {
 public:
  explicit Suspects(Store& store) : store_(store) {}

  // Runs `f`, which uses the device for one candidate and waits for it. Throws UserError, before
  // running, if the candidate is known to break devices; DeviceBroken if the device fails.
  // `candidate` is for messages.
  void watch(const Hash128& key, const std::string& candidate, const std::function<void()>& f);
  // Throws DeviceBroken: the device failed while only this candidate ran.
  [[noreturn]] void blame(const Hash128& key, const std::string& candidate, const DeviceLost&);

 private:
  enum class State : char { innocent = 'i', suspect = 's', guilty = 'g' };
  State state(const Hash128& key);
  void note(const Hash128& key, State);

  Store& store_;
  std::shared_mutex device_;  // exclusive: a suspect runs
  std::mutex mutex_;
  std::multiset<Hash128> running_;
  bool is_lost_ = false;
};

}  // namespace hone
