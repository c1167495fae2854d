#include "compile/spread.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "compile/joined_tables.h"
#include "compile/stream_events.h"
#include "runtime/executable.h"
#include "schedule/place.h"

namespace hone {

namespace {

using Kind = PlanBuffer::Kind;

// Per plan, the variant with the guards of the first plan's variant. A plan may have a second one,
// for machines without a library.
std::vector<const Variant*> variants_of(std::span<const Plan* const> plans, std::size_t v) {
  std::vector<const Variant*> out = {&plans[0]->main().variants.at(v)};
  for (const Plan* p : plans.subspan(1)) {
    const auto found = std::ranges::find_if(
        p->main().variants, [&](const Variant& other) { return out[0]->guards == other.guards; });
    if (found == p->main().variants.end())
      throw UserError(p->name, ": has no variant for the sizes of another plan's");
    out.push_back(&*found);
  }
  return out;
}

// The steps of each group outside of bodies; empty for groups that also have steps in bodies or use
// other kinds of steps.
std::vector<std::vector<const Step*>> steps_of_groups(const Variant& v) {
  std::vector<std::vector<const Step*>> out(v.groups.size());
  for (const Step& s : v.steps) {
    const bool is_plain = s.kind == Step::Kind::launch || s.kind == Step::Kind::library;
    if (is_plain && s.group != Step::no_group) out[s.group].push_back(&s);
  }
  return out;
}

// Calls f(view, is_written) for a step and its bodies.
template <class F>
void for_each_operand(const Step& s, const F& f) {
  for (std::size_t i = 0; i < s.operands.size(); ++i)
    if (!s.written[i]) f(s.operands[i], false);
  for (const std::vector<Step>* body : {&s.otherwise, &s.body})
    for (const Step& inner : *body) for_each_operand(inner, f);
  for (std::size_t i = 0; i < s.operands.size(); ++i)
    if (s.written[i]) f(s.operands[i], true);
}

// One variant of the joined plan. A value is a buffer of the first plan, or of one plan alone; it
// may lie in the memory of several devices at once.
class VariantJoiner {
 public:
  VariantJoiner(std::span<const Plan* const> plans, std::size_t variant, const Assignment& wanted,
                JoinedTables& tables)
      : plans_(plans),
        variants_(variants_of(plans, variant)),
        first_(*variants_[0]),
        tables_(tables) {
    const std::vector<bool> movable = movable_groups(plans, variant);
    assigned_.assign(first_.groups.size(), 0);
    for (std::size_t g = 0; g < assigned_.size(); ++g)
      if (movable[g] && g < wanted.size()) assigned_[g] = wanted[g];
    for (const Variant* v : variants_) of_groups_.push_back(steps_of_groups(*v));
  }

  Variant run() {
    out_.guards = first_.guards;
    out_.results = first_.results;
    out_.measured = first_.measured;
    out_.result_bytes = first_.result_bytes;
    out_.groups = first_.groups;
    take_devices();
    for (const Step& s : first_.steps) add_unit(s);
    for (std::size_t v = 0; v < values_.size(); ++v)
      if (values_[v].kind == Kind::result) bring(v, 0);
    place_arenas();
    add_stream_events(out_);
    return std::move(out_);
  }

 private:
  struct Value {
    Kind kind;
    std::uint32_t index;
    Dim bytes;
    std::vector<std::int64_t> buffers;  // per device: of out_; -1: none yet
    std::vector<bool> is_there;         // per device: whether it has the bytes
  };

  void take_devices() {
    devices_.assign(plans_.size(), 0);
    for (std::size_t k = 0; k < plans_.size(); ++k)
      if (k == 0 || std::ranges::count(assigned_, k) > 0) devices_[k] = count_++;
    out_.devices.clear();
    for (std::size_t k = 0; k < plans_.size(); ++k)
      if (k == 0 || devices_[k] > 0) {
        out_.devices.push_back(variants_[k]->devices.at(0));
        out_.devices.back().arena_bytes = out_.devices.back().arena_lower_bound = 0;
      }
  }

  // Adds all steps of a group at its first step, or a step without a group.
  void add_unit(const Step& s) {
    const std::uint16_t k = s.group == Step::no_group ? 0 : assigned_[s.group];
    if (k == 0) return add(s, 0);
    if (&s != of_groups_[0][s.group].front()) return;
    for (const Step* moved : of_groups_[k][s.group]) add(*moved, k);
    out_.groups[s.group] = variants_[k]->groups[s.group];
  }

  void add(const Step& s, std::uint16_t k) {
    const std::uint16_t device = devices_[k];
    for_each_operand(s, [&](const View& v, bool is_written) {
      const std::optional<std::size_t> value = value_of(k, v.buffer);
      if (!value) return;
      if (!is_written || !is_whole(v, values_[*value].bytes)) bring(*value, device);
    });
    for_each_operand(s, [&](const View& v, bool is_written) {
      const std::optional<std::size_t> value = value_of(k, v.buffer);
      if (!value || !is_written) return;
      std::vector<bool>& there = values_[*value].is_there;
      std::fill(there.begin(), there.end(), false);
      there[device] = true;
    });
    Step moved = s;
    rewrite(moved, k);
    out_.steps.push_back(std::move(moved));
  }

  void rewrite(Step& s, std::uint16_t k) {
    s.device = devices_[k];
    if (s.kind == Step::Kind::launch) s.index = tables_.kernel(*plans_[k], s.index);
    for (View& v : s.operands) v.buffer = buffer_of(k, v.buffer);
    for (std::vector<Step>* body : {&s.body, &s.otherwise})
      for (Step& inner : *body) rewrite(inner, k);
  }

  static bool is_whole(const View& v, const Dim& bytes) {
    return v.offset == Dim(0) && v.strides == dense_strides(Shape(v.dims)) &&
           byte_count(Type(v.dtype, Shape(v.dims))) == bytes;
  }

  // Empty for read-only data, which is on every device that reads it.
  std::optional<std::size_t> value_of(std::uint16_t k, std::uint32_t buffer) {
    const PlanBuffer& b = variants_[k]->buffers[buffer];
    if (b.kind != Kind::arena && b.kind != Kind::result) return std::nullopt;
    const bool is_shared =
        buffer < first_.buffers.size() && first_.buffers[buffer].kind == b.kind &&
        first_.buffers[buffer].bytes == b.bytes && first_.buffers[buffer].index == b.index;
    const auto [it, is_new] =
        numbers_.try_emplace(std::pair(is_shared ? std::uint16_t{0} : k, buffer), values_.size());
    if (is_new)
      values_.push_back({b.kind, b.index, b.bytes, std::vector<std::int64_t>(count_, -1),
                         std::vector<bool>(count_, false)});
    return it->second;
  }

  std::uint32_t buffer_of(std::uint16_t k, std::uint32_t buffer) {
    if (const std::optional<std::size_t> v = value_of(k, buffer)) return memory(*v, devices_[k]);
    const auto [it, is_new] = constants_.try_emplace(std::pair(k, buffer), 0);
    if (!is_new) return it->second;
    PlanBuffer b = variants_[k]->buffers[buffer];
    b.device = devices_[k];
    if (b.kind == Kind::weight) b.index = tables_.weight(*plans_[k], b.index);
    if (b.kind == Kind::prepared) b.index = tables_.prepared(*plans_[k], b.index);
    return it->second = new_buffer(b);
  }

  std::uint32_t new_buffer(const PlanBuffer& b) {
    out_.buffers.push_back(b);
    return static_cast<std::uint32_t>(out_.buffers.size() - 1);
  }

  std::uint32_t memory(std::size_t value, std::uint16_t device) {
    Value& v = values_[value];
    if (v.buffers[device] >= 0) return static_cast<std::uint32_t>(v.buffers[device]);
    PlanBuffer b{Kind::arena, 0, 0, v.bytes, device};
    if (v.kind == Kind::result && device == 0) b = {Kind::result, v.index, 0, v.bytes, 0};
    const std::uint32_t made = new_buffer(b);
    v.buffers[device] = made;
    return made;
  }

  // Copies a value to a device that does not have it, through the first device.
  void bring(std::size_t value, std::uint16_t device) {
    Value& v = values_[value];
    const auto from = std::ranges::find(v.is_there, true);
    if (v.is_there[device] || from == v.is_there.end()) return;
    if (device != 0 && !v.is_there[0]) bring(value, 0);
    const auto source =
        device == 0 ? static_cast<std::uint16_t>(from - v.is_there.begin()) : std::uint16_t{0};
    Step copy{.kind = Step::Kind::copy, .device = std::max(source, device)};
    for (std::uint16_t d : {source, device})
      copy.operands.push_back({memory(value, d), 0, DType::u8, {v.bytes}, {1}});
    copy.written = {false, true};
    v.is_there[device] = true;
    out_.steps.push_back(std::move(copy));
  }

  // For lifetimes of buffers, a step and its bodies count as one point in time.
  void place_arenas() {
    std::vector<std::optional<Lifetime>> lives(out_.buffers.size());
    for (std::size_t i = 0; i < out_.steps.size(); ++i)
      for_each_operand(out_.steps[i], [&](const View& v, bool) {
        const auto at = static_cast<std::int64_t>(i);
        std::optional<Lifetime>& life = lives[v.buffer];
        if (!life) life = {out_.buffers[v.buffer].bytes, at, at};
        life->last = at;
      });
    for (std::uint16_t d = 0; d < count_; ++d) {
      std::vector<std::uint32_t> placed;
      std::vector<Lifetime> lifetimes;
      for (std::uint32_t b = 0; b < out_.buffers.size(); ++b)
        if (out_.buffers[b].kind == Kind::arena && out_.buffers[b].device == d && lives[b]) {
          placed.push_back(b);
          lifetimes.push_back(*lives[b]);
        }
      const Placement placement = place(lifetimes);
      for (std::size_t i = 0; i < placed.size(); ++i)
        out_.buffers[placed[i]].offset = placement.offsets[i];
      out_.devices[d].arena_bytes = placement.bytes;
      out_.devices[d].arena_lower_bound = placement.lower_bound;
    }
  }

  std::span<const Plan* const> plans_;
  std::vector<const Variant*> variants_;  // per plan
  const Variant& first_;
  JoinedTables& tables_;
  Assignment assigned_;
  std::vector<std::vector<std::vector<const Step*>>> of_groups_;  // per plan
  std::vector<std::uint16_t> devices_;                            // per plan
  std::uint16_t count_ = 0;                                       // of devices
  std::vector<Value> values_;
  std::map<std::pair<std::uint16_t, std::uint32_t>, std::size_t> numbers_;
  std::map<std::pair<std::uint16_t, std::uint32_t>, std::uint32_t> constants_;
  Variant out_;
};

}  // namespace

std::vector<bool> movable_groups(std::span<const Plan* const> plans, std::size_t variant) {
  const std::vector<const Variant*> variants = variants_of(plans, variant);
  const std::vector<GroupRecord>& groups = variants[0]->groups;
  std::vector<bool> out(groups.size(), true);
  for (const Variant* v : variants) {
    if (v->devices.size() != 1 ||
        !std::ranges::equal(v->groups, groups, {}, &GroupRecord::name, &GroupRecord::name))
      throw UserError(plans[0]->name, ": plans to be joined do not have the same groups");
    const auto steps = steps_of_groups(*v);
    for (std::size_t g = 0; g < out.size(); ++g) out[g] = out[g] && !steps[g].empty();
  }
  return out;
}

Plan spread(std::span<const Plan* const> plans, std::span<const Assignment> of_variants) {
  Plan out = *plans[0];
  out.strategy = "multi";
  out.main().result_alias.assign(out.main().results.size(), -1);
  out.main().variants.clear();
  out.kernels.clear();
  out.binaries.clear();
  out.weights.clear();
  out.prepared.clear();
  JoinedTables tables(out);
  static const Assignment nowhere;
  for (std::size_t v = 0; v < plans[0]->main().variants.size(); ++v)
    out.main().variants.push_back(
        VariantJoiner(plans, v, v < of_variants.size() ? of_variants[v] : nowhere, tables).run());
  return out;
}

namespace {

// The time of each group on each device, and the values passed between groups.
class TimeModel {
 public:
  TimeModel(std::span<const Plan* const> plans, std::size_t variant,
            std::span<const CopyCost> copies, const Sizing& sizes)
      : copies_(copies), first_(plans[0]->main().variants.at(variant)), sizes_(sizes) {
    movable_ = movable_groups(plans, variant);
    for (const Variant* v : variants_of(plans, variant))
      for (const GroupRecord& g : v->groups) ms_.push_back(ms_of(g));
    for (const Step& s : first_.steps)
      if (s.group != Step::no_group) units_.push_back(&s);
  }

  std::size_t devices() const { return copies_.size(); }
  bool is_movable(std::size_t group) const { return movable_[group]; }
  std::size_t groups() const { return movable_.size(); }
  std::span<const Step* const> units() const { return units_; }

  // The time at which everything is finished.
  double makespan(const Assignment& of) const {
    State now(*this);
    for (const Step* s : units_) now.run(*s, of[s->group]);
    return now.end();
  }

  // Puts each group where it would finish first; copies count `weight` times.
  Assignment greedy(double weight, std::span<const std::uint16_t> devices) const {
    State now(*this);
    now.weight = weight;
    Assignment out(groups(), 0);
    std::vector<bool> is_decided(groups(), false);
    for (const Step* s : units_) {
      if (!is_decided[s->group] && movable_[s->group]) {
        out[s->group] = devices[0];
        for (std::uint16_t d : devices.subspan(1))
          if (now.finished(*s, d) < now.finished(*s, out[s->group])) out[s->group] = d;
      }
      is_decided[s->group] = true;
      now.run(*s, out[s->group]);
    }
    return out;
  }

  Assignment all_on(std::uint16_t device) const {
    Assignment out(groups(), 0);
    for (std::size_t g = 0; g < groups(); ++g)
      if (movable_[g]) out[g] = device;
    return out;
  }

  // Splits consecutive groups into one part per device, of about equal time or equal group count.
  Assignment stages(std::span<const std::uint16_t> devices, bool by_time) const {
    const auto size = [&](std::size_t g) { return !movable_[g] ? 0 : by_time ? ms(0, g) : 1; };
    double all = 0, so_far = 0;
    for (std::size_t g = 0; g < groups(); ++g) all += size(g);
    Assignment out(groups(), 0);
    for (std::size_t g = 0; g < groups(); ++g) {
      const double part = all > 0 ? so_far / all * static_cast<double>(devices.size()) : 0;
      if (movable_[g])
        out[g] = devices[std::min(static_cast<std::size_t>(part), devices.size() - 1)];
      so_far += size(g);
    }
    return out;
  }

 private:
  double ms(std::size_t device, std::size_t group) const { return ms_[device * groups() + group]; }
  double ms_of(const GroupRecord& g) const {
    for (const CandidateRecord& c : g.candidates()) {
      if (c.name != g.chosen) continue;
      if (c.ms >= 0) return c.ms;
      if (c.predicted_ms >= 0) return c.predicted_ms;
    }
    // Of a typical processor: unknown times have at least the right order of magnitude.
    constexpr double gflops = 20, gbytes = 10, launch_ms = 1e-3;
    return launch_ms + static_cast<double>(value(g.flops)) / gflops * 1e-6 +
           static_cast<double>(value(g.bytes)) / gbytes * 1e-6;
  }
  std::int64_t value(const Dim& d) const try {
    return size_of(d, sizes_);
  } catch (const UserError&) {
    return d.high();  // a body measures a size of its own
  }

  struct State {
    explicit State(const TimeModel& of)
        : model(of), free_at(of.devices(), 0), ready(of.first_.buffers.size() * of.devices(), -1) {}

    double& ready_at(std::uint32_t buffer, std::size_t device) {
      return ready[buffer * model.devices() + device];
    }
    // Time at which the buffer's bytes are on the device; copies go through the first device.
    double arrival(std::uint32_t buffer, std::size_t device) {
      if (ready_at(buffer, device) >= 0) return ready_at(buffer, device);
      const PlanBuffer& b = model.first_.buffers[buffer];
      if (b.kind == Kind::weight || b.kind == Kind::prepared) return 0;
      const std::int64_t bytes = model.value(b.bytes);
      if (b.kind == Kind::param) return device == 0 ? 0 : weight * model.copies_[device].of(bytes);
      double first = -1;
      for (std::size_t d = 0; d < model.devices(); ++d)
        if (const double at = ready_at(buffer, d); at >= 0) {
          const double here = at + (d == 0 ? 0 : weight * model.copies_[d].of(bytes)) +
                              (device == 0 ? 0 : weight * model.copies_[device].of(bytes));
          first = first < 0 ? here : std::min(first, here);
        }
      return std::max(first, 0.0);
    }
    double finished(const Step& s, std::size_t device) {
      double start = free_at[device];
      for (std::size_t i = 0; i < s.operands.size(); ++i)
        if (!s.written[i]) start = std::max(start, arrival(s.operands[i].buffer, device));
      return start + model.ms(device, s.group);
    }
    void run(const Step& s, std::size_t device) {
      const double done = finished(s, device);
      free_at[device] = done;
      for (std::size_t i = 0; i < s.operands.size(); ++i) {
        if (!s.written[i]) continue;
        for (std::size_t d = 0; d < model.devices(); ++d)
          ready_at(s.operands[i].buffer, d) = d == device ? done : -1;
      }
    }
    double end() const { return *std::ranges::max_element(free_at); }

    const TimeModel& model;
    double weight = 1;
    std::vector<double> free_at, ready;
  };

  std::span<const CopyCost> copies_;
  const Variant& first_;
  const Sizing& sizes_;
  std::vector<bool> movable_;
  std::vector<double> ms_;  // per plan and group
  std::vector<const Step*> units_;
};

}  // namespace

std::vector<Assignment> propose_assignments(std::span<const Plan* const> plans, std::size_t variant,
                                            std::span<const CopyCost> copies, const Sizing& sizes,
                                            std::span<const std::uint16_t> wanted) {
  constexpr std::size_t most = 3;
  const TimeModel model(plans, variant, copies, sizes);
  std::vector<std::uint16_t> first(plans.size());
  std::iota(first.begin(), first.end(), std::uint16_t{0});
  std::vector<Assignment> all;
  const auto propose = [&](std::span<const std::uint16_t> devices) {
    for (double weight : {1.0, 0.0}) all.push_back(model.greedy(weight, devices));
    for (const bool by_time : {true, false}) all.push_back(model.stages(devices, by_time));
  };
  if (!wanted.empty()) propose(wanted);
  for (std::size_t devices = 2; devices <= plans.size() && wanted.empty(); ++devices) {
    propose(std::span(first).first(devices));
    if (plans[devices - 1] != plans[devices - 2])
      all.push_back(model.all_on(static_cast<std::uint16_t>(devices - 1)));
  }
  std::erase_if(all, [&](const Assignment& a) {
    const auto has = [&](std::uint16_t d) { return std::ranges::count(a, d) > 0; };
    return wanted.empty() ? std::ranges::none_of(a, [](std::uint16_t d) { return d > 0; })
                          : !std::ranges::all_of(wanted, has);
  });
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::ranges::stable_sort(all, {}, [&](const Assignment& a) { return model.makespan(a); });
  if (all.size() > most) all.resize(most);
  return all;
}

}  // namespace hone
