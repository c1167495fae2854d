#include "compile/suspects.h"

#include <utility>

namespace hone {

namespace {

Hash128 entry_of(const Hash128& key) { return hash128("breaks a device " + to_hex(key)); }

}  // namespace

void Suspects::watch(const Hash128& key, const std::string& candidate,
                     const std::function<void()>& f) {
  const State before = state(key);
  if (before == State::guilty)
    throw UserError("it made the device fail in an earlier run, which ends all use of the device");
  std::shared_lock shared(device_, std::defer_lock);
  std::unique_lock alone(device_, std::defer_lock);
  if (before == State::suspect)
    alone.lock();
  else
    shared.lock();
  {
    const std::scoped_lock lock(mutex_);
    if (is_lost_)
      throw DeviceBroken("the device failed while another candidate ran", store_.is_on_disk());
    running_.insert(key);
  }
  const auto end = [&] {
    const std::scoped_lock lock(mutex_);
    running_.erase(running_.find(key));
  };
  try {
    f();
  } catch (const DeviceLost& e) {
    blame(key, candidate, e);
  } catch (...) {
    end();
    throw;
  }
  end();
  if (before == State::suspect) note(key, State::innocent);
}

void Suspects::blame(const Hash128& key, const std::string& candidate, const DeviceLost& error) {
  const std::scoped_lock lock(mutex_);
  // Later errors follow from the first.
  if (!std::exchange(is_lost_, true)) {
    running_.insert(key);
    const std::set<Hash128> all(running_.begin(), running_.end());
    for (const Hash128& k : all) note(k, all.size() == 1 ? State::guilty : State::suspect);
  }
  throw DeviceBroken(cat("candidate ", candidate, ": ", error.what()), store_.is_on_disk());
}

Suspects::State Suspects::state(const Hash128& key) {
  const std::optional<std::vector<std::byte>> known = store_.find(entry_of(key));
  if (!known || known->size() != 1) return State::innocent;
  return static_cast<State>(std::to_integer<char>((*known)[0]));
}

void Suspects::note(const Hash128& key, State s) {
  store_.store(entry_of(key), std::as_bytes(std::span(&s, 1)));
}

}  // namespace hone
