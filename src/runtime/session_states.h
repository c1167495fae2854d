// The states that the entry of a session uses: their memory and sizes, which runs may use them
// when, and runs on the caller's stream that have not ended. Knows no steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <utility>
#include <vector>

#include "runtime/execute.h"
#include "runtime/ports.h"
#include "runtime/state.h"

namespace hone {

class SessionStates {
 public:
  // Finds the group of each parameter that is a state. Throws UserError when one is missing, given
  // twice, of another plan's layout, or on another device.
  SessionStates(const Executable&, const PlanEntry&, const std::vector<State>&);
  SessionStates(const SessionStates&) = delete;
  SessionStates& operator=(const SessionStates&) = delete;

  std::size_t bytes() const;

  // As long as it lives, one run uses the states: groups that it updates alone, others shared.
  class Use {
   public:
    // Throws as HeldGroups does, and UserError for torn groups.
    Use(SessionStates&, const std::stop_token&, const FairLock::Deadline&);
    ~Use() { states_.is_held_ = false; }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    SessionStates& states_;
    HeldGroups held_;
  };
  // Gives the ports their memory and sizes; true when a size changed. Within a Use, or, as long as
  // no run uses them, with locks of its own.
  bool bind(Ports&);
  bool look(Ports&, const std::stop_token&, const FairLock::Deadline&);

  // Within a Use. Work that is given to the streams from now on follows the runs before it.
  void order(StreamSet&);
  // The run has ended or, on the caller's stream, is submitted: `stream` is where its end is noted.
  // Sizes of the results are those of this run.
  void note_update(const std::vector<std::vector<std::int64_t>>& result_dims, Stream* callers);
  // The run failed: after it began to update, and with the error of an earlier run or not.
  void note_failure(bool has_updated, bool is_of_earlier_run);

  // Runs on the caller's stream have ended, well or not.
  void note_end() { forget_pending(); }
  void note_late_failure();

 private:
  // A parameter that is a state.
  struct Bound {
    static constexpr std::size_t none = ~std::size_t{0};
    StateGroup* group;
    std::size_t number;  // in the group
    std::size_t param;
    std::size_t result = none;  // that updates it

    const PlanState& state() const { return group->states[number]; }
  };
  template <class F>
  void for_each_updated(const F& f) const {
    for (const GroupUses::Use& g : groups_.all())
      if (g.mode == FairLock::Mode::exclusive) f(*g.group);
  }
  void note_pending(Stream&);
  void forget_pending();
  void tear_written_before();

  std::vector<std::shared_ptr<StateGroup>> kept_;
  std::vector<Bound> all_;
  bool has_open_ = false, is_bound_ = false;
  GroupUses groups_, readers_;  // as a run uses them, and only to look at them
  bool is_held_ = false;        // by a Use
  // Of runs on the caller's stream that nobody waited for yet: events at their ends, reused when
  // nobody else refers to one; groups that they wrote, and the version of the first write.
  std::vector<std::shared_ptr<Event>> ends_;
  std::vector<std::pair<StateGroup*, std::uint64_t>> writes_;
};

}  // namespace hone
