#include "schedule/plan_builder.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "plan/prepared.h"
#include "schedule/place.h"
#include "schedule/sharing.h"
#include "schedule/slots.h"
#include "schedule/views.h"

namespace hone {

namespace {

// Bytes of group memory that a kernel uses.
std::uint32_t group_bytes(const Kernel& k) {
  std::int64_t end = 0;
  for (const KernelMemory& m : k.memory)
    if (m.scope == MemoryScope::group)
      end = std::max(end, m.offset.number() + m.elements.number() * byte_size(m.dtype));
  return static_cast<std::uint32_t>(end);
}

}  // namespace

// One variant under construction. Buffers are the schedule's slots, followed by the temporaries of
// the candidates.
class VariantBuilder {
 public:
  VariantBuilder(PlanBuilder& plan, Schedule schedule, std::span<const Candidate> chosen)
      : plan_(plan), schedule_(std::move(schedule)), chosen_(chosen) {}

  Variant run() {
    HONE_ASSERT(chosen_.size() == schedule_.specs.size(), "one candidate for each spec");
    add_slots();
    add_groups();
    // Preparation runs before everything else; its arena memory is free afterwards.
    for (const Item& item : schedule_.prepare) add_item(item, out_.prepare, 0);
    prepare_steps_of_run(schedule_.items);
    uses_.loops.assign(schedule_.loop_parents.size(), {});
    uses_.loop_parents = schedule_.loop_parents;
    out_.steps.reserve(schedule_.items.size());
    for (const Item& item : schedule_.items) add_item(item, out_.steps, 0);
    stretch_over_loops();
    Sharing sharing(out_.buffers, std::move(uses_));
    plan_.join_alias(find_aliases(sharing));
    sharing.share_arena();
    place_arena(sharing);
    out_.results = std::move(schedule_.results);
    if (!schedule_.measured.empty())
      for (const Type& t : out_.results) out_.result_bytes.push_back(most(byte_count(t)));
    out_.measured = std::move(schedule_.measured);
    return std::move(out_);
  }

 private:
  // The maximum over data-dependent sizes.
  Dim most(const Dim& bytes) const {
    return bytes.is_number() ? bytes : largest(bytes, schedule_.measured, schedule_.limits);
  }

  void add_slots() {
    const std::size_t count = schedule_.slots.size();
    out_.buffers.reserve(count);
    uses_.made_in.reserve(count);
    uses_.live.reserve(count);
    for (const Slot& slot : schedule_.slots) {
      PlanBuffer buffer{slot.kind, slot.index, 0, most(slot.bytes)};
      if (slot.kind == PlanBuffer::Kind::weight)
        buffer.index = plan_.weight_index(schedule_.weights[slot.index]);
      if (slot.kind == PlanBuffer::Kind::prepared)
        buffer.index = add_prepared(schedule_.prepared[slot.index]);
      add_buffer(std::move(buffer), slot.loop);
    }
  }

  std::uint32_t add_buffer(PlanBuffer buffer, std::uint32_t loop) {
    out_.buffers.push_back(std::move(buffer));
    uses_.made_in.push_back(loop);
    uses_.live.push_back({});
    return static_cast<std::uint32_t>(out_.buffers.size() - 1);
  }

  std::uint32_t add_prepared(PreparedBuffer buffer) {
    auto index = static_cast<std::uint32_t>(plan_.plan_.prepared.size());
    buffer.name = cat("prepared", index);
    plan_.plan_.prepared.push_back(std::move(buffer));
    return index;
  }

  void add_groups() {
    kernels_.resize(chosen_.size());
    out_.groups.reserve(schedule_.groups.size());
    for (ScheduledGroup& g : schedule_.groups) {
      const ScheduledSpec& spec = schedule_.specs[g.spec];
      GroupRecord& record = out_.groups.emplace_back();
      record.name = spec.name;
      record.origins = std::move(g.origins);
      record.chosen = chosen_[g.spec].name;
      record.bytes = spec.bytes;
      record.flops = spec.flops;
      first_temporary_.push_back(static_cast<std::uint32_t>(temporaries_.size()));
      temporaries_.resize(temporaries_.size() + chosen_[g.spec].temporaries.size(), none);
    }
  }

  // Steps of the run's groups that depend on weights alone, such as packing.
  void prepare_steps_of_run(const std::vector<Item>& items) {
    for (const Item& item : items) {
      if (item.kind == Item::Kind::group) add_group(item.group, out_.prepare, 0, true);
      prepare_steps_of_run(item.body);
      prepare_steps_of_run(item.otherwise);
    }
  }

  void add_item(const Item& item, std::vector<Step>& to, std::uint32_t loop) {
    switch (item.kind) {
      case Item::Kind::group:
        return add_group(item.group, to, loop, false);
      case Item::Kind::copy:
        return add_copy(item, to, loop);
      case Item::Kind::branch:
        return add_branch(item, to, loop);
      case Item::Kind::loop:
        return add_loop(item, to);
      case Item::Kind::refuse:
        return add_refusal(item, to);
      case Item::Kind::require:
        return add_requirement(item, to, loop);
      case Item::Kind::measure:
        return add_measure(item, to, loop);
      case Item::Kind::host:
        return add_host(item, to, loop);
    }
  }

  const Candidate& chosen(std::uint32_t group) const {
    return chosen_[schedule_.groups[group].spec];
  }

  void add_group(std::uint32_t group, std::vector<Step>& to, std::uint32_t loop, bool preparing) {
    const bool prepare = schedule_.specs[schedule_.groups[group].spec].prepare;
    const std::vector<Candidate::Step>& steps = chosen(group).steps;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Candidate::Step& from = steps[i];
      if (!prepare && from.prepare != preparing) continue;
      note_in_place(from, group);
      Step& step = to.emplace_back();
      step.group = group;
      add_operands(group, from, loop, step.operands);
      if (const Kernel* kernel = std::get_if<Kernel>(&from.what)) {
        fill_launch(*kernel, kernel_of(group, i), step);
        check_weights(*kernel, step, prepare || preparing);
      } else
        fill_library(from, step, group);
      touch(step, loop);
    }
  }

  // Groups of one spec launch the same kernels, so these are hashed once.
  std::uint32_t kernel_of(std::uint32_t group, std::size_t step) {
    const std::uint32_t spec = schedule_.groups[group].spec;
    std::vector<std::uint32_t>& known = kernels_[spec];
    if (known.empty()) known.assign(chosen_[spec].steps.size(), none);
    if (known[step] == none)
      known[step] = plan_.kernel_index(std::get<Kernel>(chosen_[spec].steps[step].what));
    return known[step];
  }

  // A kernel reads an element before it writes the same one, and writes it once.
  void note_in_place(const Candidate::Step& step, std::uint32_t group) {
    if (!std::holds_alternative<Kernel>(step.what)) return;
    const ScheduledGroup& g = schedule_.groups[group];
    auto has = [&](Candidate::Operand::Kind kind, int index) {
      return std::any_of(step.operands.begin(), step.operands.end(),
                         [&](const auto& o) { return o.kind == kind && o.index == index; });
    };
    for (auto [result, param] : schedule_.specs[g.spec].in_place) {
      const View& from = g.params()[static_cast<std::size_t>(param)];
      const View& to = g.results()[static_cast<std::size_t>(result)];
      if (may_share(from.buffer, to.buffer) && has(Candidate::Operand::Kind::param, param) &&
          has(Candidate::Operand::Kind::result, result) && count_views_of(from.buffer, g) == 1 &&
          is_whole(from) && is_whole(to))
        uses_.overwrites.push_back({next_step_, from.buffer, to.buffer});
    }
  }

  // True for buffers that Sharing handles.
  bool may_share(std::uint32_t from, std::uint32_t to) const {
    using Kind = PlanBuffer::Kind;
    const Kind a = out_.buffers[from].kind, b = out_.buffers[to].kind;
    if (b != Kind::arena && b != Kind::result) return false;
    return a == Kind::arena || a == Kind::result ||
           (a == Kind::param && !schedule_.donated.empty());
  }

  static std::size_t count_views_of(std::uint32_t buffer, const ScheduledGroup& g) {
    const std::span<const View> params = g.params();
    return static_cast<std::size_t>(std::count_if(
        params.begin(), params.end(), [&](const View& v) { return v.buffer == buffer; }));
  }

  // If both buffers share memory, so do these windows.
  static bool is_same_window(const View& a, const View& b) {
    return a.offset == b.offset && a.dims == b.dims && normal_strides(a) == normal_strides(b);
  }

  bool is_whole(const View& v) const {
    if (v.offset != Dim(0)) return false;
    Dim stride = 1;
    for (std::size_t i = v.dims.size(); i-- > 0; stride = stride * v.dims[i])
      if (v.strides[i] != stride) return false;
    return stride * Dim(byte_size(v.dtype)) == out_.buffers[v.buffer].bytes;
  }

  // The only step of a group moves the group's views: they are not needed again.
  void add_operands(std::uint32_t group, const Candidate::Step& from, std::uint32_t loop,
                    std::vector<View>& to) {
    using Operand = Candidate::Operand;
    ScheduledGroup& g = schedule_.groups[group];
    const bool is_only = chosen(group).steps.size() == 1;
    if (is_only && are_all_views(from.operands, g)) {
      to = std::move(g.views);
      return;
    }
    to.reserve(from.operands.size());
    for (const Operand& o : from.operands) {
      const auto i = static_cast<std::size_t>(o.index);
      if (o.kind == Operand::Kind::temporary)
        to.push_back(temporary_view(group, i, loop));
      else
        to.push_back(g.views.at(o.kind == Operand::Kind::param ? i : g.param_count + i));
    }
  }

  // True for all parameters in order, then all results.
  static bool are_all_views(std::span<const Candidate::Operand> operands, const ScheduledGroup& g) {
    using Kind = Candidate::Operand::Kind;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const bool is_param = i < g.param_count;
      if (operands[i].kind != (is_param ? Kind::param : Kind::result) ||
          static_cast<std::size_t>(operands[i].index) != (is_param ? i : i - g.param_count))
        return false;
    }
    return operands.size() == g.views.size();
  }

  View temporary_view(std::uint32_t group, std::size_t i, std::uint32_t loop) {
    const Candidate::Temporary& t = chosen(group).temporaries.at(i);
    std::uint32_t& buffer = temporaries_[first_temporary_[group] + i];
    if (buffer == none) buffer = add_temporary(t, loop);
    return dense_view(buffer, t.type);
  }

  std::uint32_t add_temporary(const Candidate::Temporary& t, std::uint32_t loop) {
    if (!t.prepared)
      return add_buffer({PlanBuffer::Kind::arena, 0, 0, most(byte_count(t.type))}, loop);
    return add_buffer(
        {PlanBuffer::Kind::prepared, add_prepared({"", t.type, {}}), 0, byte_count(t.type)}, 0);
  }

  void fill_launch(const Kernel& kernel, std::uint32_t index, Step& step) {
    step.kind = Step::Kind::launch;
    step.index = index;
    step.name = kernel.name;
    step.written.reserve(kernel.params.size());
    for (const KernelParam& p : kernel.params) step.written.push_back(p.written);
    step.scalars = kernel.sizes;
    step.chunks = kernel.chunks;
    step.scratch_bytes = most(kernel.scratch_bytes);
  }

  // A launch may read weights before the previous one has finished.
  void check_weights(const Kernel& kernel, const Step& step, bool preparing) const {
    for (std::size_t i = 0; i < kernel.params.size(); ++i) {
      const PlanBuffer::Kind kind = out_.buffers[step.operands[i].buffer].kind;
      const bool is_constant =
          kind == PlanBuffer::Kind::weight || (kind == PlanBuffer::Kind::prepared && !preparing);
      HONE_ASSERT(!kernel.params[i].is_weight || is_constant, kernel.name, ": parameter ", i,
                  " is not a weight");
    }
  }

  void fill_library(const Candidate::Step& from, Step& step, std::uint32_t group) {
    step.kind = Step::Kind::library;
    step.name = std::get<std::string>(from.what);
    step.settings = from.settings;
    for (const Candidate::Operand& operand : from.operands)
      step.written.push_back(is_written(operand, group));
  }

  // A library call writes results, and temporaries that no earlier step wrote.
  bool is_written(const Candidate::Operand& operand, std::uint32_t group) const {
    if (operand.kind != Candidate::Operand::Kind::temporary)
      return operand.kind == Candidate::Operand::Kind::result;
    std::uint32_t buffer =
        temporaries_[first_temporary_[group] + static_cast<std::size_t>(operand.index)];
    return uses_.live[buffer].first < 0;
  }

  void add_copy(const Item& item, std::vector<Step>& to, std::uint32_t loop) {
    Step step;
    step.kind = Step::Kind::copy;
    step.group = Step::no_group;
    const View &from = item.reads.at(0), &into = item.writes.at(0);
    step.operands = {from, into};
    step.written = {false, true};
    const bool is_all = is_whole(from) && is_whole(into);
    if (may_share(from.buffer, into.buffer) && (is_all || is_same_window(from, into)))
      uses_.overwrites.push_back({next_step_, from.buffer, into.buffer, is_all, true});
    touch(step, loop);
    to.push_back(std::move(step));
  }

  void add_branch(const Item& item, std::vector<Step>& to, std::uint32_t loop) {
    Step step;
    step.kind = Step::Kind::branch;
    step.group = Step::no_group;
    step.name = item.text;
    step.operands = item.reads;
    step.written = {false};
    touch(step, loop);
    for (const Item& inner : item.body) add_item(inner, step.body, loop);
    for (const Item& inner : item.otherwise) add_item(inner, step.otherwise, loop);
    to.push_back(std::move(step));
  }

  void add_loop(const Item& item, std::vector<Step>& to) {
    Step step;
    step.kind = Step::Kind::loop;
    step.group = Step::no_group;
    step.name = item.text;
    step.operands = item.reads;
    step.written = {false};
    uses_.loops[item.loop].take(next_step_);
    for (const Item& inner : item.otherwise) add_item(inner, step.otherwise, item.loop);
    touch(step, item.loop);
    for (const Item& inner : item.body) add_item(inner, step.body, item.loop);
    uses_.loops[item.loop].take(next_step_ - 1);
    for (std::size_t i = item.body.size() - item.carried; i < item.body.size(); ++i) {
      const View &next = item.body[i].reads.at(0), &state = item.body[i].writes.at(0);
      if (is_whole(next) && is_whole(state) && may_share(next.buffer, state.buffer))
        uses_.carries.push_back({item.loop, next.buffer, state.buffer});
    }
    to.push_back(std::move(step));
  }

  void add_refusal(const Item& item, std::vector<Step>& to) {
    Step step;
    step.kind = Step::Kind::refuse;
    step.group = Step::no_group;
    step.name = item.text;
    step.scalars = item.sizes;
    to.push_back(std::move(step));
  }

  void add_requirement(const Item& item, std::vector<Step>& to, std::uint32_t loop) {
    Step step;
    step.kind = Step::Kind::require;
    step.group = Step::no_group;
    step.name = item.text;
    step.operands = item.reads;
    step.written = {false};
    step.scalars = item.sizes;
    touch(step, loop);
    to.push_back(std::move(step));
  }

  void add_measure(const Item& item, std::vector<Step>& to, std::uint32_t loop) {
    Step step;
    step.kind = Step::Kind::measure;
    step.name = item.text;
    step.operands = item.reads;
    step.written = {false};
    step.scalars = item.sizes;
    touch(step, loop);
    to.push_back(std::move(step));
  }

  void add_host(const Item& item, std::vector<Step>& to, std::uint32_t loop) {
    Step step;
    step.kind = Step::Kind::host;
    step.name = item.text;
    step.operands = item.reads;
    step.operands.insert(step.operands.end(), item.writes.begin(), item.writes.end());
    step.written.assign(item.reads.size(), false);
    step.written.resize(step.operands.size(), true);
    step.settings = item.settings;
    touch(step, loop);
    to.push_back(std::move(step));
  }

  // Numbers the step and records which buffers it uses, and in which loop.
  void touch(const Step& step, std::uint32_t loop) {
    for (std::size_t i = 0; i < step.operands.size(); ++i) {
      const View& v = step.operands[i];
      uses_.live[v.buffer].take(next_step_);
      if (loop != 0 || !schedule_.donated.empty())
        uses_.accesses.push_back({next_step_, loop, step.written[i], v});
      for (std::uint32_t at = loop; at != uses_.made_in[v.buffer];
           at = schedule_.loop_parents[at]) {
        HONE_ASSERT(at != 0, "buffer is used outside the loop that makes it");
        crossings_.push_back({v.buffer, at});
      }
    }
    ++next_step_;
  }

  // Buffers used inside a loop but made outside it live as long as the loop runs.
  void stretch_over_loops() {
    for (auto [buffer, loop] : crossings_) {
      BufferUses::Range& r = uses_.live[buffer];
      r.first = std::min(r.first, uses_.loops[loop].first);
      r.last = std::max(r.last, uses_.loops[loop].last);
    }
  }

  // Results that may share memory with a donated parameter: everything is read from it before the
  // result is written, or at the same position.
  std::vector<std::int32_t> find_aliases(Sharing& sharing) const {
    std::vector<std::int32_t> alias(schedule_.results.size(), -1);
    if (schedule_.donated.empty()) return alias;
    const std::vector<std::uint32_t> slots = result_slots();
    std::vector<bool> is_stored(schedule_.params.size(), false);
    for (const auto& [result, param, is_appended] : schedule_.stores) {
      // Slots of parameters have their numbers. A result that is copied there last can always be.
      is_stored[param] = true;
      is_appended ? sharing.alias(slots[result], param) : sharing.try_alias(slots[result], param);
      HONE_ASSERT(sharing.is_aliased(slots[result]), "result ", result,
                  " cannot be stored to parameter ", param);
      alias[result] = static_cast<std::int32_t>(param);
    }
    for (std::uint32_t i = 0; i < slots.size(); ++i) {
      const std::uint32_t b = slots[i];
      if (sharing.is_aliased(b)) continue;
      for (std::uint32_t p : schedule_.donated) {
        if (is_stored[schedule_.slots[p].index] || sharing.is_aliased(p) ||
            !(param_type(p) == schedule_.results[i]))
          continue;
        sharing.try_alias(b, p);
        if (!sharing.is_aliased(b)) continue;
        alias[i] = static_cast<std::int32_t>(schedule_.slots[p].index);
        break;
      }
    }
    return alias;
  }

  std::vector<std::uint32_t> result_slots() const {
    std::vector<std::uint32_t> out(schedule_.results.size());
    for (std::uint32_t b = 0; b < schedule_.slots.size(); ++b)
      if (schedule_.slots[b].kind == PlanBuffer::Kind::result) out[schedule_.slots[b].index] = b;
    return out;
  }

  const Type& param_type(std::uint32_t slot) const {
    return schedule_.params[schedule_.slots[slot].index];
  }

  void place_arena(const Sharing& sharing) {
    std::vector<std::uint32_t> placed;
    std::vector<Lifetime> lifetimes;
    for (std::uint32_t i = 0; i < out_.buffers.size(); ++i) {
      const BufferUses::Range& live = sharing.live(i);
      if (out_.buffers[i].kind != PlanBuffer::Kind::arena || live.first < 0 || sharing.home(i) != i)
        continue;
      placed.push_back(i);
      lifetimes.push_back({out_.buffers[i].bytes, live.first, live.last});
    }
    Placement placement = place(lifetimes);
    for (std::size_t i = 0; i < placed.size(); ++i)
      out_.buffers[placed[i]].offset = placement.offsets[i];
    for (std::uint32_t i = 0; i < out_.buffers.size(); ++i)
      if (const PlanBuffer& home = out_.buffers[sharing.home(i)]; sharing.home(i) != i) {
        const Dim bytes = out_.buffers[i].bytes;
        out_.buffers[i] = home;
        out_.buffers[i].bytes = bytes;
      }
    out_.devices[0].arena_bytes = placement.bytes;
    out_.devices[0].arena_lower_bound = placement.lower_bound;
  }

  static constexpr std::uint32_t none = ~0u;
  PlanBuilder& plan_;
  Schedule schedule_;
  std::span<const Candidate> chosen_;
  Variant out_;
  std::vector<std::vector<std::uint32_t>> kernels_;  // per spec: of each step, once known
  std::vector<std::uint32_t> first_temporary_;       // per group: in temporaries_
  std::vector<std::uint32_t> temporaries_;           // buffers
  std::vector<std::pair<std::uint32_t, std::uint32_t>> crossings_;  // pairs of buffer and loop
  BufferUses uses_;
  std::int64_t next_step_ = 0;
};

Variant PlanBuilder::add(Schedule schedule, std::span<const Candidate> chosen) {
  return VariantBuilder(*this, std::move(schedule), chosen).run();
}

void PlanBuilder::join_alias(const std::vector<std::int32_t>& alias) {
  if (!std::exchange(has_variant_, true)) {
    plan_.main().result_alias = alias;
    return;
  }
  for (std::size_t i = 0; i < alias.size(); ++i)
    if (plan_.main().result_alias.at(i) != alias[i]) plan_.main().result_alias[i] = -1;
}

std::uint32_t PlanBuilder::kernel_index(const Kernel& kernel) {
  auto [it, fresh] = kernel_index_.try_emplace(hash(kernel), kernels_.size());
  if (fresh) {
    kernels_.push_back(kernel);
    plan_.kernels.push_back({0, kernel.name, it->first,
                             static_cast<std::uint32_t>(group_threads(kernel)),
                             group_bytes(kernel)});
  }
  return it->second;
}

std::uint32_t PlanBuilder::weight_index(const PlanWeight& weight) {
  std::vector<std::uint32_t>& known = weights_[weight.data.storage().hash()];
  for (std::uint32_t i : known)
    if (equal(Attr(plan_.weights[i].data), Attr(weight.data))) return i;
  known.push_back(static_cast<std::uint32_t>(plan_.weights.size()));
  plan_.weights.push_back(weight);
  plan_.weights.back().name = cat("weight", known.back());
  return known.back();
}

namespace {

// Renumbers a list of which only some entries are kept.
template <class T>
std::vector<std::uint32_t> keep(std::vector<T>& list, const std::vector<bool>& kept) {
  std::vector<std::uint32_t> where(list.size(), 0);
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    where[i] = next;
    if (!kept[i]) continue;
    if (i != next) list[next] = std::move(list[i]);
    ++next;
  }
  list.resize(next);
  return where;
}

}  // namespace

void drop_unread(Plan& plan) {
  std::vector<bool> weights(plan.weights.size(), false), prepared(plan.prepared.size(), false);
  for (Variant& variant : plan.main().variants) {
    if (is_prepared(plan, variant)) variant.prepare.clear();
    const auto note = [&](const Step& s) {
      for (const View& v : s.operands) {
        const PlanBuffer& b = variant.buffers[v.buffer];
        if (b.kind == PlanBuffer::Kind::weight) weights[b.index] = true;
        if (b.kind == PlanBuffer::Kind::prepared) prepared[b.index] = true;
      }
    };
    for_each_step(variant.steps, note);
    for_each_step(variant.prepare, note);
  }
  std::vector<bool> kept_weights = weights, kept_prepared = prepared;
  std::vector<std::uint32_t> weight_at = keep(plan.weights, weights);
  std::vector<std::uint32_t> prepared_at = keep(plan.prepared, prepared);
  for (Variant& variant : plan.main().variants)
    for (PlanBuffer& b : variant.buffers) {
      bool weight = b.kind == PlanBuffer::Kind::weight;
      if (!weight && b.kind != PlanBuffer::Kind::prepared) continue;
      bool kept = weight ? kept_weights[b.index] : kept_prepared[b.index];
      // The buffer is unused: an empty piece of the arena keeps the numbering.
      if (!kept)
        b = {};
      else
        b.index = weight ? weight_at[b.index] : prepared_at[b.index];
    }
}

}  // namespace hone
