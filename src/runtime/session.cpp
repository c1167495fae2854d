#include "runtime/session.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "runtime/background.h"
#include "runtime/host_memory.h"
#include "runtime/memory_limit.h"
#include "runtime/port_copies.h"
#include "runtime/ready.h"
#include "runtime/session_states.h"
#include "runtime/sizes.h"

namespace hone {

class Session::Impl {
 public:
  Impl(std::shared_ptr<const Executable> executable, SessionOptions options)
      : executable_(std::move(executable)),
        options_(std::move(options)),
        entry_(executable_->entry(options_.entry)),
        ports_(*executable_, *entry_.plan, options_.states_are_inputs),
        cache_(*executable_, entry_, options_.most_sizes),
        job_([this] { run(); }, [this] { is_busy_.store(false, std::memory_order_release); }) {
    if (!options_.pool)
      options_.pool =
          make_thread_pool({.threads = options_.threads, .affinity = std::move(options_.affinity)});
    allocators_.assign(executable_->devices().begin(), executable_->devices().end());
    if (options_.allocator) allocators_[0] = options_.allocator;
    streams_.emplace(*executable_, options_.pool, allocators_, options_.stream);
    runner_.emplace(*executable_, *streams_);
    copies_.emplace(*executable_, ports_, *streams_, runner_->counters);
    held_inputs_.resize(entry().params.size());
    held_outputs_.resize(entry().results.size());
    runner_->trace = std::move(options_.trace);
    arenas_.resize(executable_->devices().size());
    taken_scratch_.resize(arenas_.size());
    most_scratch_.resize(arenas_.size());
    memory_.address = [this](const BoundAddress& a) { return base(a) + a.offset; };
    if (options_.states_are_inputs) return;
    states_.emplace(*executable_, entry(), options_.states);
    look_at_states();
  }

  ~Impl() {
    try {
      job_.wait();
    } catch (...) {
      // There is no caller left to report to.
    }
    try {
      settle();
    } catch (...) {
      // As above; states are marked.
    }
  }

  const Executable& executable() const { return *executable_; }
  const PlanEntry& entry() const { return *entry_.plan; }
  const Ports& ports() const { return ports_; }
  const RunCounters& counters() const { return runner_->counters; }
  StepRunner& runner() { return *runner_; }

  // One call at a time; a second one is an error of the caller and is reported.
  class Exclusive {
   public:
    explicit Exclusive(Impl& s) : impl_(s) {
      if (impl_.is_busy_.exchange(true, std::memory_order_acquire))
        throw UserError(
            "session: is already running; a session runs one call at a time, so open one per "
            "thread");
    }
    ~Exclusive() { impl_.is_busy_.store(false, std::memory_order_release); }

   private:
    Impl& impl_;
  };

  // The last binding keeps its tensor, so that the memory lives as long as it.
  using Held = std::optional<DeviceTensor>;
  void bind_input(std::size_t i, const TensorRef& t, Held held = std::nullopt) {
    settle();
    if (held && held->is_read_only() && i < ports_.given_inputs().size() &&
        entry().params[ports_.given_inputs()[i]].donated)
      throw UserError("input '", entry().params[ports_.given_inputs()[i]].name,
                      "' is donated, so runs write it, but the tensor is read-only; copy it");
    if (ports_.bind_input(i, t)) current_ = computed_ = nullptr;
    held_inputs_[ports_.given_inputs()[i]] = std::move(held);
  }
  void bind_output(std::size_t i, const TensorRef& t, Held held = std::nullopt) {
    settle();
    if (held && held->is_read_only() && i < ports_.given_outputs().size())
      throw UserError("output '", entry().results[ports_.given_outputs()[i]].name,
                      "' is bound to a tensor that is read-only; give one that may be written");
    ports_.bind_output(i, t);
    held_outputs_[ports_.given_outputs()[i]] = std::move(held);
  }

  Ready& ready() {
    if (current_) return *current_;
    ports_.check_outputs_again();
    const std::int64_t binds = cache_.binds();
    current_ = &cache_.at(ports_);
    runner_->counters.binds += cache_.binds() - binds;
    return *current_;
  }

  MemoryReport memory() {
    const Ready& r = ready();
    MemoryReport m;
    m.shared = executable_->memory();
    if (states_) m.states = states_->bytes();
    for (std::size_t d = 0; d < arenas_.size(); ++d) {
      const DeviceNeeds& needs = r.program.needs[d];
      DeviceUse& use = m.devices.emplace_back();
      use.name = executable_->device(d)->name();
      use.arena = std::max(arenas_[d].size(), needs.arena_bytes);
      use.arena_lower_bound = needs.arena_lower_bound;
      most_scratch_[d] = std::max(most_scratch_[d], needs.scratch());
    }
    for (std::size_t i = 0; i < streams_->size(); ++i) {
      const std::uint32_t d = executable_->stream_device(i);
      m.devices[d].scratch += most_scratch_[d] * static_cast<std::size_t>((*streams_)[i].threads());
    }
    const std::vector<PortPlace>& places = ports_.places();
    for (std::size_t i = 0; i < places.size(); ++i)
      m.devices[ports_.device_of(i)].staging += places[i].bytes();
    for (std::size_t i : r.used)
      m.devices[ports_.device_of(i)].staging += ports_.staged_bytes(i) - places[i].bytes();
    for (const DeviceUse& use : m.devices) {
      m.arena += use.arena;
      m.arena_lower_bound += use.arena_lower_bound;
      m.scratch += use.scratch;
      m.staging += use.staging;
    }
    for (const std::unique_ptr<Ready>& kept : cache_.all()) {
      m.steps += kept->bytes();
      m.library += kept->program.library_bytes;
    }
    return m;
  }

  // Called before a run allocates memory, and `more` bytes for its results. A given limit applies
  // to peak().
  void check_memory(std::int64_t more = 0) {
    const bool is_given = options_.max_memory >= 0;
    const std::int64_t usual = default_memory_limit();
    const MemoryReport m = memory();
    if (is_given) check_given_limit(m);
    const std::size_t all = m.peak() + static_cast<std::size_t>(more);
    if (options_.max_memory <= usual && all > static_cast<std::size_t>(usual))
      refuse_memory(m, all, usual, " (80 % of what this process can have)");
  }
  void check_given_limit(const MemoryReport& m) const {
    if (!fits(m, options_.max_memory)) refuse_memory(m, m.peak(), options_.max_memory, "");
  }
  [[noreturn]] void refuse_memory(const MemoryReport& m, std::size_t need, std::int64_t limit,
                                  std::string_view meaning) const {
    throw UserError(
        plan().name, ": needs ", need, " bytes of memory, but the limit is ", limit, meaning,
        "; the parts are ", memory_text(m),
        "; raise the limit (max_memory, --max-memory), or use fewer threads or smaller sizes");
  }

  // Checks a given limit at new sizes, even if a run allocates nothing.
  void check_limit(Ready& r) {
    if (r.is_allowed || options_.max_memory < 0) return;
    check_given_limit(memory());
    r.is_allowed = true;
  }

  void run() {
    compute(true);
    fetch();
  }

  // Copies all inputs, or only those bound since their last copy.
  void compute(bool copies_all) {
    computed_ = nullptr;
    std::optional<SessionStates::Use> use;
    if (states_) {
      use.emplace(*states_, runner_->stop, runner_->deadline);
      if (states_->bind(ports_)) forget_sizes();
    }
    Ready& r = ready();
    check_limit(r);
    ports_.check_contents();
    ports_.check_outputs(r.outputs);
    if (has_pending_ && (r.program.waits_for_host || copies_->needs_host(r.used))) settle();
    take_memory(r);
    place(r);
    has_pending_ = is_on_callers_stream();
    if (has_pending_) streams_->fork();
    upload(r, copies_all);
    const Variant& v = entry().variants[r.variant];
    run_steps(v, r);
    computed_ = &r;
    ++runner_->counters.runs;
  }

  // Sizes of states that grow, as soon as no run uses them.
  void look_at_states() {
    if (states_ && states_->look(ports_, runner_->stop, runner_->deadline)) forget_sizes();
  }

  void fetch() {
    if (!computed_)
      throw UserError(
          "session: fetch() has no results to copy; after binding inputs of other sizes, call "
          "compute() first");
    ports_.check_outputs(computed_->outputs);
    if (has_pending_ && copies_->needs_host(computed_->used)) settle();
    download(*computed_);
  }

  bool is_on_callers_stream() const { return options_.stream != nullptr; }
  // Waits for runs on the caller's stream; throws their error, after states that they updated are
  // marked.
  void settle() {
    if (!std::exchange(has_pending_, false)) return;
    try {
      streams_->synchronize();
    } catch (...) {
      if (states_) states_->note_late_failure();
      throw;
    }
    if (states_) states_->note_end();
  }
  void wait_for(Event& e) {
    for (std::size_t i = 0; i < streams_->size(); ++i) (*streams_)[i].wait(e);
  }
  void record(Event& e) { (*streams_)[0].record(e); }

  // Of the last run.
  const std::vector<std::vector<std::int64_t>>& result_dims() const { return result_dims_; }
  std::size_t result_bytes(std::size_t i) const {
    std::int64_t bytes = byte_size(entry().results[i].type.dtype);
    for (std::int64_t d : result_dims_[i]) bytes *= d;
    return static_cast<std::size_t>(bytes);
  }

  void trim() {
    settle();
    current_ = computed_ = nullptr;
    cache_.clear();
    for (OwnedMemory& arena : arenas_) arena = {};
    for (PortPlace& p : ports_.places()) {
      p.staging = {};
      p.dense = {};
      p.host = {};
      p.is_stale = true;
      p.is_ready = false;
    }
  }

  void submit() {
    if (is_busy_.exchange(true, std::memory_order_acquire))
      throw UserError("session: is already running; call wait() before the next submit()");
    job_.start();
  }
  bool poll() const { return job_.is_finished(); }
  void wait() {
    job_.wait();
    if (!is_on_callers_stream()) return;
    const Exclusive exclusive(*this);
    settle();
  }

 private:
  const Plan& plan() const { return executable_->plan(); }

  // States have other sizes; what is kept for the old ones may be in use.
  void forget_sizes() {
    settle();
    current_ = computed_ = nullptr;
  }

  void run_steps(const Variant& v, Ready& r) {
    if (states_) states_->order(*streams_);
    try {
      execute(v, r);
    } catch (...) {
      if (states_) states_->note_failure(runner_->has_updated(), runner_->has_lost_error());
      throw;
    }
    note_results(v, r);
    if (states_)
      states_->note_update(result_dims_, is_on_callers_stream() ? &(*streams_)[0] : nullptr);
  }

  // All work is finished afterwards, or on the caller's stream, submitted to it.
  void execute(const Variant& v, Ready& r) {
    if (!is_on_callers_stream()) return runner_->run(v, r.program, memory_);
    runner_->submit(v, r.program, memory_);
    streams_->join();
  }

  void upload(const Ready& r, bool all) {
    for (std::size_t i : r.used) {
      const PortPlace& place = ports_.places()[i];
      if (ports_.is_input(i) && place.is_staged() && (all || place.is_stale)) copies_->upload(i);
    }
    // Other streams do not wait for the first one automatically.
    if (streams_->size() > arenas_.size()) streams_->synchronize();
  }

  void download(const Ready& r) {
    bool has_any = false;
    for (std::size_t i = 0; i < r.outputs.size(); ++i) {
      const std::size_t place = r.outputs[i].place;
      if (place == OutputNeed::none || !ports_.places()[place].is_staged()) continue;
      copies_->download(place, ports_.outputs()[i], result_bytes(i));
      has_any = true;
    }
    if (!has_any) return;
    if (!is_on_callers_stream()) return streams_->synchronize();
    has_pending_ = true;
    streams_->join();
  }

  // Measured sizes are known after the run.
  void note_results(const Variant& v, const Ready& r) {
    result_dims_.resize(v.results.size());
    for (std::size_t i = 0; i < v.results.size(); ++i) {
      result_dims_[i] = r.outputs[i].dims;
      if (v.measured.empty()) continue;
      for (std::size_t k = 0; k < result_dims_[i].size(); ++k)
        result_dims_[i][k] =
            evaluate(v.results[i].shape.dims[k], entry_.symbols, runner_->values());
    }
  }

  void take_memory(const Ready& r) {
    bool grows =
        std::ranges::any_of(r.used, [&](std::size_t i) { return ports_.needs_staging(i); });
    for (std::size_t d = 0; d < arenas_.size(); ++d)
      grows = grows || r.program.needs[d].arena_bytes > arenas_[d].size() ||
              r.program.needs[d].scratch() > taken_scratch_[d];
    if (!grows) return;
    settle();  // what is freed may be in use
    check_memory();
    for (std::size_t d = 0; d < arenas_.size(); ++d) {
      const std::size_t arena = r.program.needs[d].arena_bytes;
      if (arena > arenas_[d].size()) {
        arenas_[d] = {};  // free before allocating
        arenas_[d] = take("values between steps", allocators_[d], arena);
      }
      taken_scratch_[d] = std::max(taken_scratch_[d], r.program.needs[d].scratch());
    }
    streams_->reserve_scratch(r.program);
    for (std::size_t i : r.used)
      if (ports_.needs_staging(i))
        copies_->prepare(i, [&](const std::string& what, std::size_t device, std::size_t bytes) {
          return take(what, allocators_[device], bytes);
        });
  }

  // The error names what could not be allocated.
  OwnedMemory take(const std::string& what, const std::shared_ptr<Allocator>& from,
                   std::size_t bytes) const {
    try {
      return OwnedMemory(from, bytes);
    } catch (const OutOfMemory& e) {
      throw OutOfMemory(plan().name, ": memory for ", what, ": ", e.what());
    }
  }

  // Finds the operands' addresses among those of the last few runs with these sizes, or computes
  // them.
  void place(Ready& r) {
    const auto is_here = [&](const Ready::Placement& p) {
      for (std::size_t i = 0; i < r.used.size(); ++i)
        if (!(p.ports[i] == ports_.places()[r.used[i]].at())) return false;
      for (std::size_t d = 0; d < arenas_.size(); ++d)
        if (!(p.arenas[d] == arenas_[d].at())) return false;
      return p.number != 0;
    };
    auto at = std::ranges::find_if(r.placements, is_here);
    if (at == r.placements.end()) {
      at = std::ranges::min_element(r.placements, {}, &Ready::Placement::last_use);
      if (at->number != 0) settle();  // a recording that may be in use is forgotten
      for (std::size_t i = 0; i < r.used.size(); ++i)
        at->ports[i] = ports_.places()[r.used[i]].at();
      for (std::size_t d = 0; d < arenas_.size(); ++d) at->arenas[d] = arenas_[d].at();
      at->number = ++placements_;
    }
    at->last_use = ++r.uses;
    memory_.placement = at->number;
  }

  DeviceMemory base(const BoundAddress& a) const {
    switch (a.kind) {
      case PlanBuffer::Kind::param:
      case PlanBuffer::Kind::result:
        return ports_.places()[ports_.place_of(a.device, a.kind, a.index)].at();
      case PlanBuffer::Kind::weight:
        return executable_->weight(a.device, a.index).at;
      case PlanBuffer::Kind::prepared:
        return executable_->prepared(a.device, a.index).at;
      case PlanBuffer::Kind::arena:
        return arenas_[a.device].at();
    }
    return {};
  }

  std::shared_ptr<const Executable> executable_;
  SessionOptions options_;
  StreamSet::Allocators allocators_;  // per device
  std::optional<StreamSet> streams_;
  std::optional<StepRunner> runner_;
  std::optional<PortCopies> copies_;
  const LoadedEntry& entry_;
  std::optional<SessionStates> states_;  // none: they are inputs
  Ports ports_;
  ReadyCache cache_;
  Ready* current_ = nullptr;   // for the inputs bound now; null: unknown
  Ready* computed_ = nullptr;  // of the last run
  std::uint64_t placements_ = 0;
  StepRunner::Memory memory_;
  std::vector<std::vector<std::int64_t>> result_dims_;  // of the last run
  std::vector<Held> held_inputs_, held_outputs_;        // of all parameters and results
  bool has_pending_ = false;  // runs on the caller's stream that nobody waited for yet
  // Per device.
  std::vector<OwnedMemory> arenas_;
  std::vector<std::size_t> taken_scratch_, most_scratch_;
  std::atomic<bool> is_busy_{false};
  BackgroundJob job_;  // last member: it uses all others until it is destroyed
};

Session::Session(std::shared_ptr<const Executable> executable, SessionOptions options)
    : impl_(std::make_unique<Impl>(std::move(executable), std::move(options))) {}

Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

const Executable& Session::executable() const { return impl_->executable(); }

void Session::bind_input(std::size_t i, const TensorRef& t) {
  Impl::Exclusive exclusive(*impl_);
  impl_->bind_input(i, t);
}

void Session::bind_output(std::size_t i, const TensorRef& t) {
  Impl::Exclusive exclusive(*impl_);
  impl_->bind_output(i, t);
}

void Session::bind_input(std::size_t i, const DeviceTensor& t) {
  Impl::Exclusive exclusive(*impl_);
  impl_->bind_input(i, t.ref(), t);
}

void Session::bind_output(std::size_t i, const DeviceTensor& t) {
  Impl::Exclusive exclusive(*impl_);
  impl_->bind_output(i, t.ref(), t);
}

void Session::wait_for(Event& e) {
  Impl::Exclusive exclusive(*impl_);
  impl_->wait_for(e);
}

void Session::record(Event& e) {
  Impl::Exclusive exclusive(*impl_);
  impl_->record(e);
}

const PlanEntry& Session::entry() const { return impl_->entry(); }

namespace {

std::vector<const PlanParam*> chosen(const std::vector<PlanParam>& all,
                                     const std::vector<std::uint32_t>& numbers) {
  std::vector<const PlanParam*> out;
  for (std::uint32_t i : numbers) out.push_back(&all[i]);
  return out;
}

std::size_t number_of(std::string_view what, const std::vector<const PlanParam*>& all,
                      std::string_view name) {
  const auto at = std::ranges::find(all, name, [](const PlanParam* p) { return p->name; });
  if (at != all.end()) return static_cast<std::size_t>(at - all.begin());
  std::string names;
  for (const PlanParam* p : all) names += cat(names.empty() ? "'" : ", '", p->name, "'");
  throw UserError("session: there is no ", what, " '", name, "'; there are ",
                  names.empty() ? "none" : names);
}

}  // namespace

std::vector<const PlanParam*> Session::inputs() const {
  return chosen(entry().params, impl_->ports().given_inputs());
}
std::vector<const PlanParam*> Session::outputs() const {
  return chosen(entry().results, impl_->ports().given_outputs());
}
std::size_t Session::input_count() const { return impl_->ports().given_inputs().size(); }
std::size_t Session::output_count() const { return impl_->ports().given_outputs().size(); }
std::size_t Session::input_number(std::string_view name) const {
  return number_of("input", inputs(), name);
}
std::size_t Session::output_number(std::string_view name) const {
  return number_of("output", outputs(), name);
}

std::vector<std::vector<std::int64_t>> Session::output_dims() {
  Impl::Exclusive exclusive(*impl_);
  impl_->look_at_states();
  std::vector<std::vector<std::int64_t>> out;
  const std::vector<OutputNeed>& needs = impl_->ready().outputs;
  for (std::uint32_t i : impl_->ports().given_outputs()) out.push_back(needs[i].dims);
  return out;
}

std::vector<std::size_t> Session::output_bytes() {
  Impl::Exclusive exclusive(*impl_);
  impl_->look_at_states();
  std::vector<std::size_t> out;
  const std::vector<OutputNeed>& needs = impl_->ready().outputs;
  for (std::uint32_t i : impl_->ports().given_outputs()) out.push_back(needs[i].bytes);
  return out;
}

std::vector<std::vector<std::int64_t>> Session::result_dims() {
  Impl::Exclusive exclusive(*impl_);
  const std::vector<std::vector<std::int64_t>>& all = impl_->result_dims();
  if (all.empty()) return {};
  std::vector<std::vector<std::int64_t>> out;
  for (std::uint32_t i : impl_->ports().given_outputs()) out.push_back(all[i]);
  return out;
}

MemoryReport Session::memory() {
  Impl::Exclusive exclusive(*impl_);
  impl_->look_at_states();
  return impl_->memory();
}

std::uint32_t Session::variant() {
  Impl::Exclusive exclusive(*impl_);
  impl_->look_at_states();
  return impl_->ready().variant;
}

void Session::run() {
  Impl::Exclusive exclusive(*impl_);
  impl_->run();
}

namespace {

void check_count(std::string_view what, std::size_t got, std::size_t wanted) {
  if (got != wanted) throw UserError("session: got ", got, " ", what, ", expected ", wanted);
}

}  // namespace

void Session::run(std::span<const TensorRef> inputs, std::span<const TensorRef> outputs) {
  Impl::Exclusive exclusive(*impl_);
  check_count("inputs", inputs.size(), impl_->ports().given_inputs().size());
  check_count("outputs", outputs.size(), impl_->ports().given_outputs().size());
  for (std::size_t i = 0; i < inputs.size(); ++i) impl_->bind_input(i, inputs[i]);
  for (std::size_t i = 0; i < outputs.size(); ++i) impl_->bind_output(i, outputs[i]);
  impl_->run();
}

std::vector<Array> Session::run(std::span<const Array> inputs) {
  Impl::Exclusive exclusive(*impl_);
  const PlanEntry& entry = impl_->entry();
  const std::vector<std::uint32_t>& params = impl_->ports().given_inputs();
  const std::vector<std::uint32_t>& results = impl_->ports().given_outputs();
  check_count("inputs", inputs.size(), params.size());
  const auto host = std::make_shared<HostMemory>();
  const auto make = [&](std::size_t bytes) { return std::make_shared<OwnedMemory>(host, bytes); };
  const auto address = [](const OwnedMemory& m) { return HostMemory::address(m.at()); };
  std::vector<std::shared_ptr<OwnedMemory>> donated(entry.params.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    TensorRef input = as_input(inputs[i]);
    if (entry.params[params[i]].donated && !entry.params[params[i]].capacity) {
      std::shared_ptr<OwnedMemory>& memory = donated[params[i]];
      memory = make(input.memory.size());
      std::ranges::copy(input.memory, address(*memory));
      input.memory = {address(*memory), input.memory.size()};
    }
    impl_->bind_input(i, input);
  }
  std::vector<std::shared_ptr<OwnedMemory>> memories;
  impl_->look_at_states();
  const std::vector<OutputNeed>& needs = impl_->ready().outputs;
  std::int64_t ours = 0;
  for (std::uint32_t r : results)
    if (!entry.shares_memory(r))
      ours = checked_add(ours, static_cast<std::int64_t>(needs[r].bytes));
  impl_->check_memory(ours);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::uint32_t r = results[i];
    memories.push_back(entry.shares_memory(r)
                           ? donated[static_cast<std::size_t>(entry.result_alias[r])]
                           : make(needs[r].bytes));
    const DType dtype = entry.results[r].type.dtype;
    // The size of an open result is not known yet: its memory is bound with one axis.
    const std::int64_t room[] = {static_cast<std::int64_t>(needs[r].bytes) / byte_size(dtype)};
    const std::span<const std::int64_t> dims =
        needs[r].is_open ? std::span<const std::int64_t>(room) : needs[r].dims;
    const std::size_t bytes =
        needs[r].is_open ? static_cast<std::size_t>(room[0] * byte_size(dtype)) : needs[r].bytes;
    impl_->bind_output(i, {dtype, dims, {address(*memories[i]), bytes}});
  }
  impl_->run();
  impl_->settle();
  std::vector<Array> out;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::uint32_t r = results[i];
    out.emplace_back(entry.results[r].type.dtype, impl_->result_dims()[r],
                     Storage(memories[i], {address(*memories[i]), impl_->result_bytes(r)}));
  }
  return out;
}

void Session::compute() {
  Impl::Exclusive exclusive(*impl_);
  impl_->compute(false);
}

void Session::fetch() {
  Impl::Exclusive exclusive(*impl_);
  impl_->fetch();
}

void Session::submit() { impl_->submit(); }
bool Session::poll() const { return impl_->poll(); }
void Session::wait() { impl_->wait(); }

void Session::set_deadline(std::chrono::steady_clock::time_point t) {
  Impl::Exclusive exclusive(*impl_);
  impl_->runner().deadline = t;
}

void Session::clear_deadline() {
  Impl::Exclusive exclusive(*impl_);
  impl_->runner().deadline.reset();
}

void Session::set_stop_token(std::stop_token token) {
  Impl::Exclusive exclusive(*impl_);
  impl_->runner().stop = std::move(token);
}

const RunCounters& Session::counters() const { return impl_->counters(); }

void Session::trim() {
  Impl::Exclusive exclusive(*impl_);
  impl_->trim();
}

}  // namespace hone
