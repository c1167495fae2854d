// The values of a plan's states: memory that outlives runs and that sessions share. Knows no steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "runtime/executable.h"
#include "runtime/fair_lock.h"
#include "runtime/pending_work.h"
#include "type/array.h"

namespace hone {

// The states of one group in one allocation on a device. Its address never changes.
struct StateGroup {
  std::string name;
  std::vector<PlanState> states;  // of this group, in the plan's order
  std::shared_ptr<Device> device;
  OwnedMemory memory;
  // Held by runs from before their first step until the device has finished or, on a stream of the
  // caller's, until all is submitted: then `pending` has the end.
  FairLock lock;
  mutable PendingWork pending;
  std::vector<std::int64_t> open_sizes;  // per state: along its open axis now; under the lock
  std::uint64_t version = 0;             // grows with every update; under the lock
  std::uint64_t replaced = 0;            // the version when all was last replaced; under the lock
  bool is_torn = false;                  // an update ended after its first write; under the lock

  DeviceMemory at(const PlanState& s) const { return memory.at() + s.offset; }
  std::size_t number_of(std::string_view state) const;
  // The sizes of a state now. Under the lock.
  std::vector<std::int64_t> dims(std::size_t state) const;
  void set_dims(std::size_t state, std::span<const std::int64_t> dims);
};

// Several groups, and how a run or call uses them.
class GroupUses {
 public:
  struct Use {
    StateGroup* group;
    FairLock::Mode mode;
  };
  // Sorted by address: groups are locked in that order, so that two callers cannot wait for each
  // other.
  explicit GroupUses(std::vector<Use> = {});
  const std::vector<Use>& all() const { return all_; }
  bool empty() const { return all_.empty(); }

 private:
  std::vector<Use> all_;
};

// Locks of groups, held until the end of the scope.
class HeldGroups {
 public:
  // The uses must live as long. Throws Cancelled (runtime/cancelled.h) when it is stopped or the
  // deadline passes first. Allocates nothing unless it has to wait.
  explicit HeldGroups(const GroupUses&, const std::stop_token& = {},
                      const FairLock::Deadline& = {});
  ~HeldGroups() { release(); }
  HeldGroups(const HeldGroups&) = delete;
  HeldGroups& operator=(const HeldGroups&) = delete;

 private:
  void release() noexcept;
  const std::vector<GroupUses::Use>& uses_;
  std::size_t held_ = 0;  // the first so many
};

// Throws UserError when an update of the group ended after its first write.
void refuse_torn(const StateGroup&);

struct StateOptions {
  std::vector<std::string> groups = {};  // empty: all groups of the plan
};

struct StateLoading {
  std::map<std::string, std::string> renamed = {};  // name in the file: name of the state
  bool ignores_others = false;  // tensors of the file that are no state of this object
};

// A handle: copies refer to the same memory. May be used by several threads: each call, and each
// run of a session that binds it, waits for those that were asked for before it. Calls must not be
// made with a lock of a group held.
class State {
 public:
  // Allocates memory for the groups and gives every state its start value. Throws UserError when
  // the plan has no states or no such group.
  explicit State(std::shared_ptr<const Executable>, const StateOptions& = {});

  // Names of its groups, and of its states, in the plan's order.
  std::vector<std::string> groups() const;
  std::vector<std::string> names() const;
  std::size_t bytes() const;

  // Of one state: throw UserError for an unknown name, another type, or torn memory. A state with
  // an open axis has there any size up to its capacity.
  Array read(std::string_view name) const;
  void write(std::string_view name, const Array&);
  std::vector<std::int64_t> dims(std::string_view name) const;
  // Keeps the first `size` elements along the open axis of a state.
  void shorten(std::string_view name, std::int64_t size);
  // Its name, group, and type with the most along an open axis.
  const PlanState& state(std::string_view name) const;

  // All states get their start values.
  void reset();
  // Copies every state of `from`, which must have the same groups with equal states.
  void assign(const State& from);
  // A safetensors file of all states under their names; replaces it atomically.
  void save(const std::filesystem::path&) const;
  // Nothing changes if the file lacks a state, or has one of another type or, unless ignored, a
  // tensor that is no state.
  void load(const std::filesystem::path&, const StateLoading& = {});

  // Number of updates of a group so far: runs that wrote it, and calls of the above.
  std::uint64_t version(std::string_view group) const;
  // Whether an update of a group ended after it began to write. Runs and reads are refused until
  // reset(), assign() or load().
  bool is_torn(std::string_view group) const;

  const std::shared_ptr<StateGroup>& group(std::string_view name) const;
  const std::vector<std::shared_ptr<StateGroup>>& all_groups() const { return groups_; }

 private:
  std::vector<std::shared_ptr<StateGroup>> groups_;
};

// Whether two groups have equal states at equal places.
bool have_equal_layout(const std::vector<PlanState>& a, const std::vector<PlanState>& b);
// The states of a plan's group.
std::vector<PlanState> states_of(const Plan&, std::string_view group);

}  // namespace hone
