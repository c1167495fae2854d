#include "runtime/state.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "base/error.h"
#include "runtime/cancelled.h"
#include "runtime/rows.h"
#include "type/safetensors.h"

namespace hone {

namespace {

using Mode = FairLock::Mode;

GroupUses all_of(const State& s, Mode mode) {
  std::vector<GroupUses::Use> out;
  for (const auto& g : s.all_groups()) out.push_back({g.get(), mode});
  return GroupUses(std::move(out));
}

std::size_t bytes_of(const Type& t) {
  return static_cast<std::size_t>(byte_count(t).as_number().value_or(0));
}

std::vector<std::int64_t> dims_of(const Type& t) {
  std::vector<std::int64_t> out;
  for (const Dim& d : t.shape.dims) out.push_back(d.number());
  return out;
}

// Of the start value.
std::int64_t open_size(const PlanState& s) {
  return s.open_axis && s.start ? s.start->dims()[*s.open_axis] : 0;
}

bool may_hold(const PlanState& s, DType dtype, const std::vector<std::int64_t>& dims) {
  std::vector<std::int64_t> most = dims_of(s.type);
  if (dtype != s.type.dtype || dims.size() != most.size()) return false;
  if (s.open_axis && dims[*s.open_axis] <= most[*s.open_axis])
    most[*s.open_axis] = dims[*s.open_axis];
  return dims == most;
}

// "f32[1,12,1024,64] with any size up to that along axis 2"
std::string type_text(const PlanState& s) {
  if (!s.open_axis) return cat(s.type);
  return cat(s.type, " with any size up to that along axis ", *s.open_axis);
}

// What f gives to the stream follows the runs that use the group, and is finished afterwards.
void with_stream(const StateGroup& g, Mode mode, const std::function<void(Stream&)>& f) {
  const std::unique_ptr<Stream> stream = g.device->open_stream();
  g.pending.order(*stream, mode);
  f(*stream);
  stream->synchronize();
  if (mode == Mode::exclusive) g.pending.clear();
}

void put(Stream& stream, const StateGroup& g, std::size_t number, const Array& value) {
  const PlanState& s = g.states[number];
  upload(stream, g.at(s), value.bytes(), Rows(s.type.dtype, value.dims(), s.capacity()));
}

void set_start(StateGroup& g) {
  with_stream(g, Mode::exclusive, [&](Stream& stream) {
    stream.fill(g.memory.at(), std::byte{0}, g.memory.size());
    for (std::size_t i = 0; i < g.states.size(); ++i)
      if (const PlanState& s = g.states[i]; s.start) put(stream, g, i, *s.start);
  });
  g.open_sizes.clear();
  for (const PlanState& s : g.states) g.open_sizes.push_back(open_size(s));
}

Array downloaded(const StateGroup& g, std::size_t number) {
  const PlanState& s = g.states[number];
  Array out = Array::zeros(s.type.dtype, g.dims(number));
  with_stream(g, Mode::shared, [&](Stream& stream) {
    download(stream, out.writable_bytes(), g.at(s), Rows(out.dtype(), out.dims(), s.capacity()));
  });
  return out;
}

// Files have no name for most coded dtypes: their codes are stored.
DType stored_dtype(DType t) { return is_coded(t) ? code_dtype(t) : t; }

// Changes the memory of a group by f. Torn until that is done; then, if all of it was replaced,
// whole again.
template <class F>
void update(StateGroup& g, bool replaces_all, const F& f) {
  const bool was_torn = std::exchange(g.is_torn, true);
  f();
  g.is_torn = was_torn && !replaces_all;
  ++g.version;
  if (replaces_all) g.replaced = g.version;
}

std::string names_text(const std::vector<std::string>& all) {
  std::string out;
  for (const std::string& name : all) out += cat(out.empty() ? "'" : ", '", name, "'");
  return out;
}

}  // namespace

std::size_t StateGroup::number_of(std::string_view state) const {
  const auto at = std::ranges::find(states, state, &PlanState::name);
  HONE_ASSERT(at != states.end(), "group '", name, "' has no state '", state, "'");
  return static_cast<std::size_t>(at - states.begin());
}

std::vector<std::int64_t> StateGroup::dims(std::size_t state) const {
  std::vector<std::int64_t> out = dims_of(states[state].type);
  if (const auto axis = states[state].open_axis) out[*axis] = open_sizes[state];
  return out;
}

void StateGroup::set_dims(std::size_t state, std::span<const std::int64_t> dims) {
  if (const auto axis = states[state].open_axis) open_sizes[state] = dims[*axis];
}

GroupUses::GroupUses(std::vector<Use> all) : all_(std::move(all)) {
  std::ranges::sort(all_, std::less<>(), &Use::group);
}

HeldGroups::HeldGroups(const GroupUses& uses, const std::stop_token& stop,
                       const FairLock::Deadline& deadline)
    : uses_(uses.all()) {
  for (const GroupUses::Use& use : uses_) {
    if (use.group->lock.lock(use.mode, stop, deadline)) {
      ++held_;
      continue;
    }
    release();
    const bool is_stopped = stop.stop_requested();
    throw Cancelled(is_stopped ? Cancelled::Why::stopped : Cancelled::Why::deadline,
                    cat("run: ", is_stopped ? "was stopped by its caller" : "its deadline passed",
                        " while it waited for states '", use.group->name, "'"));
  }
}

void HeldGroups::release() noexcept {
  for (; held_ > 0; --held_) uses_[held_ - 1].group->lock.unlock(uses_[held_ - 1].mode);
}

void refuse_torn(const StateGroup& g) {
  if (g.is_torn)
    throw UserError(
        "states '", g.name,
        "' are torn: an update ended after its first write; load, assign or reset them");
}

std::vector<PlanState> states_of(const Plan& plan, std::string_view group) {
  std::vector<PlanState> out;
  std::ranges::copy_if(plan.states, std::back_inserter(out),
                       [&](const PlanState& s) { return s.group == group; });
  return out;
}

bool have_equal_layout(const std::vector<PlanState>& a, const std::vector<PlanState>& b) {
  return std::ranges::equal(a, b, [](const PlanState& x, const PlanState& y) {
    return x.name == y.name && x.type == y.type && x.offset == y.offset &&
           x.open_axis == y.open_axis;
  });
}

State::State(std::shared_ptr<const Executable> executable, const StateOptions& options) {
  const Plan& plan = executable->plan();
  if (plan.states.empty())
    throw UserError(plan.name, ": has no states, so none can be made; its sessions need none");
  std::vector<std::string> known;
  for (const PlanState& s : plan.states)
    if (std::ranges::count(known, s.group) == 0) known.push_back(s.group);
  for (const std::string& name : options.groups)
    if (std::ranges::count(known, name) == 0)
      throw UserError(plan.name, ": has no group of states '", name, "'; it has ",
                      names_text(known));
  for (const std::string& name : options.groups.empty() ? known : options.groups) {
    const auto g = std::make_shared<StateGroup>();
    g->name = name;
    g->states = states_of(plan, name);
    g->device = executable->device();
    const PlanState& last = g->states.back();
    const std::size_t end = static_cast<std::size_t>(last.offset) + bytes_of(last.type);
    // Kernels may be given the address of a state without bytes.
    g->memory = OwnedMemory(g->device, std::max<std::size_t>(end, PlanState::alignment));
    set_start(*g);
    groups_.push_back(g);
  }
}

std::vector<std::string> State::groups() const {
  std::vector<std::string> out;
  for (const auto& g : groups_) out.push_back(g->name);
  return out;
}

std::vector<std::string> State::names() const {
  std::vector<std::string> out;
  for (const auto& g : groups_)
    for (const PlanState& s : g->states) out.push_back(s.name);
  return out;
}

std::size_t State::bytes() const {
  std::size_t sum = 0;
  for (const auto& g : groups_) sum += g->memory.size();
  return sum;
}

const std::shared_ptr<StateGroup>& State::group(std::string_view name) const {
  const auto at = std::ranges::find(groups_, name, [](const auto& g) { return g->name; });
  if (at == groups_.end())
    throw UserError("state: has no group '", name, "'; it has ", names_text(groups()));
  return *at;
}

namespace {

struct Found {
  StateGroup& group;
  std::size_t number;
  const PlanState& state() const { return group.states[number]; }
};

Found find_state(const State& all, std::string_view name) {
  for (const auto& g : all.all_groups())
    for (std::size_t i = 0; i < g->states.size(); ++i)
      if (g->states[i].name == name) return {*g, i};
  throw UserError("state: has no '", name, "'; it has ", names_text(all.names()));
}

}  // namespace

const PlanState& State::state(std::string_view name) const {
  return find_state(*this, name).state();
}

Array State::read(std::string_view name) const {
  const Found found = find_state(*this, name);
  const GroupUses use({{&found.group, Mode::shared}});
  const HeldGroups held(use);
  refuse_torn(found.group);
  return downloaded(found.group, found.number);
}

std::vector<std::int64_t> State::dims(std::string_view name) const {
  const Found found = find_state(*this, name);
  const GroupUses use({{&found.group, Mode::shared}});
  const HeldGroups held(use);
  return found.group.dims(found.number);
}

void State::write(std::string_view name, const Array& value) {
  const Found found = find_state(*this, name);
  if (!may_hold(found.state(), value.dtype(), value.dims()))
    throw UserError("state '", name, "' is ", type_text(found.state()), ", but the value is ",
                    value.type(), "; convert it");
  const GroupUses use({{&found.group, Mode::exclusive}});
  const HeldGroups held(use);
  update(found.group, false, [&] {
    with_stream(found.group, Mode::exclusive,
                [&](Stream& stream) { put(stream, found.group, found.number, value); });
    found.group.set_dims(found.number, value.dims());
  });
}

void State::shorten(std::string_view name, std::int64_t size) {
  const Found found = find_state(*this, name);
  const std::optional<std::uint32_t> axis = found.state().open_axis;
  if (!axis)
    throw UserError("state '", name, "' is ", found.state().type, ", whose sizes are fixed");
  const GroupUses use({{&found.group, Mode::exclusive}});
  const HeldGroups held(use);
  std::int64_t& now = found.group.open_sizes[found.number];
  if (size < 0 || size > now)
    throw UserError("state '", name, "' holds ", now, " along axis ", *axis,
                    " and cannot be shortened to ", size);
  now = size;
  ++found.group.version;
}

void State::reset() {
  const GroupUses use = all_of(*this, Mode::exclusive);
  const HeldGroups held(use);
  for (const auto& g : groups_) update(*g, true, [&] { set_start(*g); });
}

namespace {

void copy_group(const StateGroup& from, StateGroup& to) {
  if (from.device == to.device) {
    with_stream(to, Mode::exclusive, [&](Stream& stream) {
      from.pending.order(stream, Mode::shared);
      stream.copy(to.memory.at(), from.memory.at(), to.memory.size());
    });
    return;
  }
  std::vector<std::byte> bytes(from.memory.size());
  with_stream(from, Mode::shared,
              [&](Stream& stream) { stream.download(bytes, from.memory.at()); });
  with_stream(to, Mode::exclusive, [&](Stream& stream) { stream.upload(to.memory.at(), bytes); });
}

}  // namespace

void State::assign(const State& from) {
  std::vector<GroupUses::Use> wanted;
  std::vector<std::pair<StateGroup*, StateGroup*>> pairs;
  for (const auto& g : groups_) {
    const auto& source = from.group(g->name);
    if (!have_equal_layout(source->states, g->states))
      throw UserError("state: group '", g->name,
                      "' has other states than the one to be copied; save and load it by name");
    if (source == g) continue;
    wanted.push_back({source.get(), Mode::shared});
    wanted.push_back({g.get(), Mode::exclusive});
    pairs.emplace_back(source.get(), g.get());
  }
  const GroupUses use(std::move(wanted));
  const HeldGroups held(use);
  for (const auto& [source, to] : pairs) refuse_torn(*source);
  for (const auto& [source, to] : pairs)
    update(*to, true, [&] {
      copy_group(*source, *to);
      to->open_sizes = source->open_sizes;
    });
}

void State::save(const std::filesystem::path& path) const {
  std::vector<SafetensorsEntry> tensors;
  {
    const GroupUses use = all_of(*this, Mode::shared);
    const HeldGroups held(use);
    for (const auto& g : groups_) refuse_torn(*g);
    for (const auto& g : groups_)
      for (std::size_t i = 0; i < g->states.size(); ++i) {
        const Array value = downloaded(*g, i);
        tensors.push_back(
            {g->states[i].name, Array(stored_dtype(value.dtype()), value.dims(), value.storage())});
      }
  }
  write_safetensors(path, {{"format", "hone state"}}, tensors);
}

namespace {

// The file's tensor for each state of the group, checked.
std::map<std::string, Array> tensors_for(const State& all, const Safetensors& file,
                                         const StateLoading& options, const std::string& path) {
  std::map<std::string, Array> out;
  std::vector<std::string> others;
  const std::vector<std::string> names = all.names();
  for (const SafetensorsEntry& t : file.tensors) {
    const auto renamed = options.renamed.find(t.name);
    const std::string& name = renamed == options.renamed.end() ? t.name : renamed->second;
    if (std::ranges::count(names, name) == 0) {
      others.push_back(t.name);
      continue;
    }
    if (!out.emplace(name, t.data).second)
      throw UserError(path, ": two of its tensors are for state '", name, "'");
    const PlanState& s = all.state(name);
    if (t.data.dtype() != stored_dtype(s.type.dtype) || !may_hold(s, s.type.dtype, t.data.dims()))
      throw UserError(path, ": tensor '", t.name, "' is ", t.data.type(), ", but state '", name,
                      "' is ", type_text(s));
  }
  std::vector<std::string> missing;
  for (const std::string& name : names)
    if (!out.contains(name)) missing.push_back(name);
  if (!missing.empty())
    throw UserError(path, ": lacks ", names_text(missing),
                    "; rename its tensors, or load a file that was saved from this program");
  if (!others.empty() && !options.ignores_others)
    throw UserError(path, ": has ", names_text(others),
                    ", which are no states of this program; rename or ignore them");
  return out;
}

}  // namespace

void State::load(const std::filesystem::path& path, const StateLoading& options) {
  const Safetensors file = read_safetensors(path);
  const std::map<std::string, Array> tensors = tensors_for(*this, file, options, path.string());
  const GroupUses use = all_of(*this, Mode::exclusive);
  const HeldGroups held(use);
  for (const auto& g : groups_)
    update(*g, true, [&] {
      with_stream(*g, Mode::exclusive, [&](Stream& stream) {
        for (std::size_t i = 0; i < g->states.size(); ++i)
          put(stream, *g, i, tensors.at(g->states[i].name));
      });
      for (std::size_t i = 0; i < g->states.size(); ++i)
        g->set_dims(i, tensors.at(g->states[i].name).dims());
    });
}

std::uint64_t State::version(std::string_view name) const {
  const GroupUses use({{group(name).get(), Mode::shared}});
  const HeldGroups held(use);
  return group(name)->version;
}

bool State::is_torn(std::string_view name) const {
  const GroupUses use({{group(name).get(), Mode::shared}});
  const HeldGroups held(use);
  return group(name)->is_torn;
}

}  // namespace hone
