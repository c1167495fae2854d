#include "plan/check.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/checked.h"
#include "base/error.h"

namespace hone {

namespace {

constexpr int most_nesting = 64;
constexpr std::size_t most_measured = 4096, most_devices = 64;
constexpr std::uint32_t most_streams = 64, most_events = 1 << 20;

class PlanChecker {
 public:
  PlanChecker(const Plan& plan, std::string_view where) : plan_(plan), where_(where) {}

  void run() {
    check_kernels();
    check_states();
    require(!plan_.entries.empty(), "plan", "it has no entry");
    std::set<std::string_view> names;
    for (const PlanEntry& e : plan_.entries) {
      require(names.insert(e.name).second, "entries", "two have the name '", e.name, "'");
      check_entry(e);
    }
  }

 private:
  template <class... Parts>
  void require(bool holds, std::string_view part, const Parts&... why) const {
    if (!holds) throw UserError(where_, ": ", part, ": ", why..., "; compile the plan again");
  }

  void check_entry(const PlanEntry& entry) {
    entry_ = &entry;
    check_params();
    check_results();
    check_states_of_entry();
    require(!entry.variants.empty(), "plan", "it has no variant");
    for (const Variant& v : entry.variants) check_variant(v);
    for (const SelfTest& t : entry.self_tests) check_self_test(t);
  }

  // States of a group lie one after another, none in the bytes of another.
  void check_states() const {
    std::set<std::string_view> names;
    std::map<std::string_view, std::int64_t> ends;
    for (const PlanState& s : plan_.states) {
      require(!s.name.empty() && names.insert(s.name).second, "states", "the name '", s.name,
              "' is empty or another state's");
      const auto bytes = s.type.is_tensor() ? byte_count(s.type).as_number() : std::nullopt;
      require(bytes && *bytes >= 0, "state", "'", s.name, "' is ", s.type,
              ", which has no fixed size");
      std::int64_t& end = ends[s.group];
      require(s.offset >= end && s.offset % PlanState::alignment == 0, "state", "'", s.name,
              "' is at ", s.offset, ", but the states before it end at ", end);
      end = checked_add(s.offset, *bytes);
      const auto rank = static_cast<std::uint32_t>(s.type.rank());
      require(!s.open_axis || *s.open_axis < rank, "state", "'", s.name, "' is open along axis ",
              s.open_axis.value_or(0), " of ", rank);
      require(!s.start || may_hold(s, s.start->type()), "state", "'", s.name, "' is ", s.type,
              " and starts with a value of another type");
    }
  }

  static bool may_hold(const PlanState& s, const Type& t) {
    const std::optional<Capacity> c = s.capacity();
    if (!c) return t == s.type;
    return same_but_for(*c, t, s.type);
  }

  void check_states_of_entry() const {
    const PlanEntry& e = *entry_;
    require(e.states.empty() || e.states.size() == e.params.size(), "entry", "'", e.name, "' has ",
            e.states.size(), " states for ", e.params.size(), " parameters");
    std::set<std::int32_t> used;
    for (std::size_t i = 0; i < e.params.size(); ++i) {
      const std::int32_t s = e.state_of(i);
      if (s == PlanEntry::no_state) continue;
      require(s >= 0 && static_cast<std::size_t>(s) < plan_.states.size(), "entry", "'", e.name,
              "' uses state ", s, " of ", plan_.states.size());
      const PlanState& state = plan_.states[static_cast<std::size_t>(s)];
      require(used.insert(s).second, "entry", "'", e.name, "' has two parameters for state '",
              state.name, "'");
      require(whole_type(e.params[i].type, e.params[i].capacity) == state.type &&
                  e.params[i].capacity == state.capacity(),
              "entry", "'", e.name, "' uses state '", state.name, "' as ", e.params[i].type,
              ", but it is ", state.type);
    }
    std::set<std::int32_t> updated;
    for (std::size_t r = 0; r < e.results.size(); ++r)
      if (const std::int32_t s = e.updated_by(r); s != PlanEntry::no_state)
        require(updated.insert(s).second, "entry", "'", e.name, "' stores two results to state '",
                plan_.states[static_cast<std::size_t>(s)].name, "'");
  }

  void check_params() const {
    for (const PlanParam& p : entry_->params)
      require(!p.required || p.required->type() == p.type, "param", "'", p.name, "' is ", p.type,
              " and requires contents of another type");
    for (const PlanParam& p : entry_->params)
      require(!p.capacity || fits(*p.capacity, p.type), "param", "'", p.name, "' is ", p.type,
              ", which does not fit its capacity");
  }

  void check_results() const {
    require(entry_->result_alias.size() == entry_->results.size(), "result_alias", "it has ",
            entry_->result_alias.size(), " entries for ", entry_->results.size(), " results");
    for (std::int32_t p : entry_->result_alias) {
      if (p == -1) continue;
      require(p >= 0 && static_cast<std::size_t>(p) < entry_->params.size() &&
                  entry_->params[static_cast<std::size_t>(p)].donated,
              "result_alias", "parameter ", p, " is not donated");
    }
    for (std::size_t r = 0; r < entry_->results.size(); ++r)
      if (const PlanParam* p = entry_->stored_to(r); p && p->capacity)
        require(same_but_for(*p->capacity, p->type, entry_->results[r].type), "result_alias",
                "result ", r, " has a type that does not fit '", p->name, "'");
  }

  void check_kernels() const {
    for (const Binary& b : plan_.binaries) check(b, where_);
    for (const PlanKernel& k : plan_.kernels) {
      require(k.binary < plan_.binaries.size(), "kernel", "'", k.entry, "' is in binary ", k.binary,
              " of ", plan_.binaries.size());
      const auto& entries = plan_.binaries[k.binary].entries;
      require(std::any_of(entries.begin(), entries.end(),
                          [&](const Binary::Entry& e) { return e.name == k.entry; }),
              "kernel", "'", k.entry, "' is not in its binary");
    }
  }

  void check_self_test(const SelfTest& t) const {
    require(t.variant < entry_->variants.size(), "self-test", "variant ", t.variant, " of ",
            entry_->variants.size());
    if (!t.missing.empty()) return;
    require(t.inputs.size() == entry_->params.size() && t.results.size() == entry_->results.size(),
            "self-test", "it has ", t.inputs.size(), " inputs and ", t.results.size(), " results");
    for (const SelfTestResult& r : t.results) {
      require(r.places.size() == r.values.size(), "self-test", r.places.size(), " places and ",
              r.values.size(), " values");
      require(r.allowed >= 0, "self-test", "an allowed difference of ", r.allowed);
    }
  }

  void check_variant(const Variant& v) {
    variant_ = &v;
    require(v.results.size() == entry_->results.size(), "variant", "it has ", v.results.size(),
            " results, the plan ", entry_->results.size());
    require(v.result_bytes.empty() || v.result_bytes.size() == v.results.size(), "variant",
            "it has ", v.results.size(), " results and memory of ", v.result_bytes.size());
    check_devices();
    check_measured();
    for (const PlanBuffer& b : v.buffers) check_buffer(b);
    check_ports();
    event_devices_.assign(v.events, -1);
    for (const Step& s : v.steps) check_step(s, 0);
    for (const Step& s : v.prepare) check_step(s, 0);
  }

  void check_devices() const {
    const std::size_t count = variant_->devices.size();
    require(count > 0 && count <= most_devices, "variant", "it has ", count, " devices");
    for (const PlanDevice& d : variant_->devices)
      require(d.streams > 0 && d.streams <= most_streams, "device", d.streams, " streams");
    require(variant_->events <= most_events, "variant", variant_->events, " events");
  }

  // Checks the places of results and of the parameters that they overwrite.
  void check_ports() const {
    std::vector<int> device_of(entry_->results.size(), -1);
    for (const PlanBuffer& b : variant_->buffers) {
      if (b.kind != PlanBuffer::Kind::result) continue;
      int& device = device_of[b.index];
      require(device < 0 || device == b.device, "buffer", "result ", b.index, " is on two devices");
      device = b.device;
    }
    std::vector<std::vector<std::size_t>> overwritten_by(entry_->params.size());
    for (std::size_t r = 0; r < device_of.size(); ++r)
      if (const std::int32_t p = entry_->result_alias[r]; p >= 0)
        overwritten_by[static_cast<std::size_t>(p)].push_back(r);
    for (const PlanBuffer& b : variant_->buffers) {
      if (b.kind != PlanBuffer::Kind::param) continue;
      for (const std::size_t r : overwritten_by[b.index])
        require(device_of[r] < 0 || device_of[r] == b.device, "buffer", "result ", r,
                " overwrites a parameter on another device");
    }
  }

  bool is_measured(const Dim& d) const {
    return d.is_number() ||
           (d.is_symbol() &&
            std::any_of(variant_->measured.begin(), variant_->measured.end(),
                        [&](const DimBound& b) { return b.symbol.name() == d.name(); }));
  }

  // Each must be a unique symbol that no input has, with a bound over earlier symbols.
  void check_measured() const {
    std::vector<std::string> known;
    for (const PlanParam& p : entry_->params)
      for (const Dim& d : p.type.shape.dims)
        if (d.is_symbol()) known.push_back(d.name());
    require(variant_->measured.size() <= most_measured, "measured", "more than ", most_measured,
            " sizes that depend on data");
    for (const DimBound& b : variant_->measured) {
      require(b.symbol.is_symbol() && !std::count(known.begin(), known.end(), b.symbol.name()),
              "measured", b.symbol, " is not a new symbol");
      for (const Dim& s : b.most.is_number() ? Dims() : b.most.symbols())
        require(std::count(known.begin(), known.end(), s.name()) > 0, "measured", "the bound of ",
                b.symbol, " contains ", s, ", which is not known at that point");
      known.push_back(b.symbol.name());
    }
  }

  void check_buffer(const PlanBuffer& b) const {
    using Kind = PlanBuffer::Kind;
    const auto limit = [&]() -> std::size_t {
      switch (b.kind) {
        case Kind::param:
          return entry_->params.size();
        case Kind::result:
          return entry_->results.size();
        case Kind::weight:
          return plan_.weights.size();
        case Kind::prepared:
          return plan_.prepared.size();
        case Kind::arena:
          return ~std::size_t{0};
      }
      return 0;
    }();
    require(b.index < limit, "buffer", "index ", b.index, " of ", limit);
    require(b.device < variant_->devices.size(), "buffer", "device ", b.device, " of ",
            variant_->devices.size());
  }

  void check_step(const Step& s, int depth) {
    require(depth < most_nesting, "step", "nested more than ", most_nesting, " levels deep");
    require(s.written.size() == s.operands.size(), "step", "'", s.name, "' marks ",
            s.written.size(), " operands as read or written, but has ", s.operands.size());
    require(s.group == Step::no_group || s.group < variant_->groups.size(), "step", "group ",
            s.group, " of ", variant_->groups.size());
    for (const View& view : s.operands) {
      require(view.buffer < variant_->buffers.size(), "view", "buffer ", view.buffer, " of ",
              variant_->buffers.size());
      require(view.dims.size() == view.strides.size(), "view", view.dims.size(), " dims and ",
              view.strides.size(), " strides");
    }
    check_place(s);
    check_kind(s);
    for (const Step& inner : s.body) check_step(inner, depth + 1);
    for (const Step& inner : s.otherwise) check_step(inner, depth + 1);
  }

  bool is_dense(const View& v) const { return v.strides == dense_strides(Shape(v.dims)); }

  // A step uses memory of its own device; a copy may reach one other.
  void check_place(const Step& s) const {
    require(s.device < variant_->devices.size(), "step", "'", s.name, "' is for device ", s.device,
            " of ", variant_->devices.size());
    const std::uint32_t streams = variant_->devices[s.device].streams;
    require(s.stream < streams, "step", "'", s.name, "' is for stream ", s.stream, " of ", streams);
    std::size_t elsewhere = 0;
    for (const View& view : s.operands)
      elsewhere += variant_->buffers[view.buffer].device != s.device;
    require(elsewhere == 0 || (s.kind == Step::Kind::copy && elsewhere == 1 &&
                               std::all_of(s.operands.begin(), s.operands.end(),
                                           [&](const View& v) { return is_dense(v); })),
            "step", "'", s.name, "' uses memory of another device than its own");
  }

  void check_kind(const Step& s) {
    using Kind = Step::Kind;
    const bool is_test = s.kind == Kind::branch || s.kind == Kind::loop;
    if (s.kind == Kind::launch)
      require(s.index < plan_.kernels.size(), "launch", "kernel ", s.index, " of ",
              plan_.kernels.size());
    if (s.kind == Kind::record || s.kind == Kind::wait)
      require(s.index < variant_->events, "step", "event ", s.index, " of ", variant_->events);
    if (s.kind == Kind::record) {
      int& device = event_devices_[s.index];
      require(device < 0 || device == s.device, "step", "event ", s.index,
              " is recorded on two devices");
      device = s.device;
    }
    if (s.kind == Kind::library || s.kind == Kind::host)
      require(!s.name.empty(), "step", "a call without a name");
    if (s.kind == Kind::copy)
      require(s.operands.size() == 2 && s.operands[0].dims.size() == s.operands[1].dims.size() &&
                  s.operands[0].dtype == s.operands[1].dtype,
              "copy", "needs two operands of one type");
    if (is_test)
      require(s.operands.size() == 1 && s.operands[0].dtype == DType::b1, "step",
              "a test needs one bool operand");
    if (s.kind == Kind::refuse)
      require(s.scalars.empty() || s.scalars.size() == 2, "refuse", s.scalars.size(), " sizes");
    if (s.kind == Kind::require)
      require(s.operands.size() == 1 && s.operands[0].dtype == DType::i64 && s.scalars.size() == 2,
              "require", "needs one i64 operand and two sizes");
    if (s.kind == Kind::measure)
      require(s.operands.size() == 1 && s.operands[0].dtype == DType::i64 &&
                  s.operands[0].dims.empty() && s.scalars.size() == 2 && is_measured(s.scalars[0]),
              "measure", "needs one i64 scalar, a symbol of the variant or a number, and a bound");
    require(is_test || s.kind == Kind::call || (s.body.empty() && s.otherwise.empty()), "step",
            "it has a body, but steps of its kind have none");
  }

  const Plan& plan_;
  std::string_view where_;
  const PlanEntry* entry_ = nullptr;
  const Variant* variant_ = nullptr;
  std::vector<int> event_devices_;  // per event: device that records it; -1: none yet
};

}  // namespace

void check(const Plan& plan, std::string_view where) { PlanChecker(plan, where).run(); }

}  // namespace hone
