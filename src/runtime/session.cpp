#include "runtime/session.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

#include "base/checked.h"
#include "base/machine.h"
#include "plan/audit.h"
#include "plan/footprint.h"
#include "runtime/bound.h"
#include "runtime/host_memory.h"
#include "runtime/sizes.h"

namespace hone {

namespace {

// A caller's buffer for one input or output.
struct Port {
  bool is_bound = false;
  std::byte* given = nullptr;  // by the caller
  std::byte* data = nullptr;   // the same, or what it stands for
  std::vector<std::int64_t> dims;
  std::size_t bytes = 0;
};

// What a device uses for it: the caller's memory where it lies, or a copy.
struct PortPlace {
  DeviceMemory direct;  // none: copied
  OwnedMemory staging;
  bool is_staged = false;
  DeviceMemory at() const { return is_staged ? staging.at() : direct; }
};

// Everything kept for one set of sizes.
struct Ready {
  std::vector<std::int64_t> values;
  std::uint32_t variant = 0;
  BoundProgram program;
  std::vector<std::vector<std::int64_t>> output_dims;
  std::vector<std::size_t> output_bytes;
  std::vector<bool> is_open;  // per output: data decides a size of it
  // What its operands' addresses are computed from.
  std::uint64_t placement = 0;
  std::vector<DeviceMemory> arenas, ports;
  std::vector<std::size_t> used;     // places of inputs and outputs, see State::places_
  std::vector<std::size_t> results;  // per output: its place; none: no step writes it
  std::uint64_t last_use = 0;
  bool is_allowed = false;  // below the limit that was given

  static constexpr std::size_t none = ~std::size_t{0};

  std::size_t bytes() const { return sizeof(Ready) + bound_bytes(program) + heap_bytes(ports); }
};

std::string dims_text(DType dtype, std::span<const std::int64_t> dims) {
  return cat(dtype, Shape(Dims(dims.begin(), dims.end())));
}

}  // namespace

class Session::State {
 public:
  State(std::shared_ptr<const Executable> executable, SessionOptions options)
      : executable_(std::move(executable)), options_(std::move(options)) {
    if (!options_.pool)
      options_.pool =
          make_thread_pool({.threads = options_.threads, .affinity = std::move(options_.affinity)});
    allocators_.assign(executable_->devices().begin(), executable_->devices().end());
    if (options_.allocator) allocators_[0] = options_.allocator;
    streams_.emplace(*executable_, options_.pool, allocators_);
    runner_.emplace(*executable_, *streams_);
    runner_->trace = std::move(options_.trace);
    inputs_.resize(plan().params.size());
    outputs_.resize(plan().results.size());
    values_.resize(executable_->symbols().size());
    value_input_.resize(values_.size());
    arenas_.resize(executable_->devices().size());
    taken_scratch_.resize(arenas_.size());
    most_scratch_.resize(arenas_.size());
    places_.resize(arenas_.size() * ports());
    memory_.address = [this](const BoundAddress& a) { return address(a); };
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      inputs_[i].dims.reserve(static_cast<std::size_t>(plan().params[i].type.rank()));
  }

  ~State() {
    if (!worker_.joinable()) return;
    {
      std::lock_guard lock(mutex_);
      is_closing_ = true;
    }
    changed_.notify_all();
    worker_.join();
  }

  const Executable& executable() const { return *executable_; }
  const RunCounters& counters() const { return runner_->counters; }
  StepRunner& runner() { return *runner_; }

  // One call at a time; a second one is the caller's mistake and is told so.
  class Exclusive {
   public:
    explicit Exclusive(State& s) : state_(s) {
      if (state_.is_busy_.exchange(true, std::memory_order_acquire))
        throw UserError(
            "session: is running already; it runs one call at a time, open a session per thread");
    }
    ~Exclusive() { state_.is_busy_.store(false, std::memory_order_release); }

   private:
    State& state_;
  };

  void bind_input(std::size_t i, const TensorRef& t) {
    if (i >= inputs_.size())
      throw UserError("session: input ", i, " of ", inputs_.size(), " does not exist");
    const PlanParam& p = plan().params[i];
    Port& port = inputs_[i];
    const bool same_dims = std::ranges::equal(port.dims, t.dims) && port.is_bound;
    if (t.dtype != p.type.dtype || static_cast<int>(t.dims.size()) != p.type.rank())
      throw UserError("input '", p.name, "': is ", dims_text(t.dtype, t.dims), ", the plan takes ",
                      p.type, "; convert or reshape it");
    if (!same_dims) {
      port.bytes = tensor_bytes(p.name, t);
      port.dims.assign(t.dims.begin(), t.dims.end());
      current_ = nullptr;
    }
    set_data(port, i, t, p.name);
  }

  void bind_output(std::size_t i, const TensorRef& t) {
    if (i >= outputs_.size())
      throw UserError("session: output ", i, " of ", outputs_.size(), " does not exist");
    const PlanParam& p = plan().results[i];
    if (t.dtype != p.type.dtype)
      throw UserError("output '", p.name, "': is ", t.dtype, ", the plan gives ", p.type,
                      "; give memory of that type");
    Port& port = outputs_[i];
    if (!port.is_bound || !std::ranges::equal(port.dims, t.dims)) {
      port.bytes = tensor_bytes(p.name, t);
      port.dims.assign(t.dims.begin(), t.dims.end());
      are_outputs_checked_ = false;
    }
    set_data(port, inputs_.size() + i, t, p.name, plan().result_alias[i] >= 0);
  }

  Ready& ready() {
    if (current_) return *current_;
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      if (!inputs_[i].is_bound)
        throw UserError("session: input '", plan().params[i].name, "' is not bound");
    match_sizes();
    are_outputs_checked_ = false;
    current_ = find_ready();
    if (!current_) current_ = make_ready();
    current_->last_use = ++uses_;
    return *current_;
  }

  MemoryReport memory() {
    const Ready& r = ready();
    MemoryReport m;
    m.shared = executable_->memory();
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
    for (std::size_t i = 0; i < places_.size(); ++i)
      m.devices[i / ports()].staging += places_[i].staging.size();
    for (std::size_t i : r.used)
      if (const std::size_t has = places_[i].staging.size(); needs_staging(i))
        m.devices[i / ports()].staging += port_of(i).bytes - has;
    for (const DeviceUse& use : m.devices) {
      m.arena += use.arena;
      m.arena_lower_bound += use.arena_lower_bound;
      m.scratch += use.scratch;
      m.staging += use.staging;
    }
    for (const std::unique_ptr<Ready>& kept : cache_) {
      m.steps += kept->bytes();
      m.library += kept->program.library_bytes;
    }
    return m;
  }

  // Before a run takes memory, and `more` for its results. A given limit is one of peak().
  void check_memory(std::int64_t more = 0) {
    const bool is_given = options_.max_memory >= 0;
    const std::int64_t usual = default_memory_limit();
    const std::size_t peak = memory().peak();
    if (is_given) check_memory(peak, options_.max_memory, "");
    if (options_.max_memory <= usual)
      check_memory(peak + static_cast<std::size_t>(more), usual,
                   " (80 % of what this process can have)");
  }
  void check_memory(std::size_t need, std::int64_t limit, std::string_view meaning) {
    if (need <= static_cast<std::size_t>(limit)) return;
    throw UserError(
        plan().name, ": needs ", need, " bytes of memory, ", limit, " are allowed", meaning,
        "; the parts are ", memory_text(memory()),
        "; raise the limit (max_memory, --max-memory), or use fewer threads or smaller sizes");
  }

  // A given limit, at sizes that are new; also where a run takes no memory of its own.
  void check_limit(Ready& r) {
    if (r.is_allowed || options_.max_memory < 0) return;
    check_memory(memory().peak(), options_.max_memory, "");
    r.is_allowed = true;
  }

  void run() {
    Ready& r = ready();
    check_limit(r);
    check_contents();
    check_outputs(r);
    take_memory(r);
    place(r);
    upload(r);
    const Variant& v = plan().variants[r.variant];
    memory_.placement = r.placement;
    runner_->run(v, r.program, memory_);
    note_results(v, r);
    download(r);
    ++runner_->counters.runs;
  }

  // Of the last run.
  const std::vector<std::vector<std::int64_t>>& result_dims() const { return result_dims_; }
  std::size_t result_bytes(std::size_t i) const {
    std::int64_t bytes = byte_size(plan().results[i].type.dtype);
    for (std::int64_t d : result_dims_[i]) bytes *= d;
    return static_cast<std::size_t>(bytes);
  }

  void trim() {
    current_ = nullptr;
    cache_.clear();
    for (OwnedMemory& arena : arenas_) arena = {};
    for (PortPlace& p : places_) p.staging = {};
  }

  // ---- runs in another thread

  void submit() {
    if (is_busy_.exchange(true, std::memory_order_acquire))
      throw UserError("session: is running already; wait() for it before the next submit()");
    {
      std::lock_guard lock(mutex_);
      job_ = Job::waiting;
      job_error_ = nullptr;
    }
    if (!worker_.joinable()) worker_ = std::thread([this] { work(); });
    changed_.notify_all();
  }

  bool poll() const {
    std::lock_guard lock(mutex_);
    return job_ == Job::none || job_ == Job::finished;
  }

  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return job_ == Job::none || job_ == Job::finished; });
    job_ = Job::none;
    if (job_error_) std::rethrow_exception(std::exchange(job_error_, nullptr));
  }

 private:
  enum class Job : std::uint8_t { none, waiting, running, finished };

  const Plan& plan() const { return executable_->plan(); }

  static std::size_t tensor_bytes(std::string_view name, const TensorRef& t) {
    std::int64_t bytes = byte_size(t.dtype);
    for (std::int64_t d : t.dims) {
      if (d < 0) throw UserError("'", name, "': size ", d, " is negative");
      bytes = checked_mul(bytes, d);
    }
    return static_cast<std::size_t>(bytes);
  }

  // ---- inputs and outputs

  std::size_t ports() const { return inputs_.size() + outputs_.size(); }
  const Port& port_of(std::size_t place) const {
    const std::size_t i = place % ports();
    return i < inputs_.size() ? inputs_[i] : outputs_[i - inputs_.size()];
  }
  // A result that overwrites a parameter lies in its place.
  std::size_t place_of(std::size_t device, PlanBuffer::Kind kind, std::uint32_t index) const {
    if (kind == PlanBuffer::Kind::param) return device * ports() + index;
    const std::int32_t alias = plan().result_alias[index];
    return device * ports() +
           (alias < 0 ? inputs_.size() + index : static_cast<std::size_t>(alias));
  }
  Stream& first_stream(std::size_t device) {
    return (*streams_)[executable_->first_stream(device)];
  }

  void set_data(Port& port, std::size_t number, const TensorRef& t, std::string_view name,
                bool may_be_null = false) {
    if (!t.data && port.bytes > 0 && !may_be_null)
      throw UserError("'", name, "': has no memory, but ", port.bytes, " bytes");
    auto* given = static_cast<std::byte*>(t.data);
    if (port.is_bound && port.given == given) return;
    port.given = port.data = given;
    port.is_bound = true;
    are_outputs_checked_ = false;
    for (std::size_t d = 0; d < arenas_.size(); ++d) {
      PortPlace& place = places_[d * ports() + number];
      const std::optional<DeviceMemory> direct = executable_->device(d)->of_host(given);
      place.is_staged = !direct;
      place.direct = direct.value_or(DeviceMemory());
    }
  }

  // What the devices of a variant use.
  void note_places(const Variant& v, Ready& r) const {
    r.results.assign(outputs_.size(), Ready::none);
    for (const PlanBuffer& b : v.buffers) {
      const bool is_result = b.kind == PlanBuffer::Kind::result;
      if (!is_result && b.kind != PlanBuffer::Kind::param) continue;
      r.used.push_back(place_of(executable_->device_of(v, b.device), b.kind, b.index));
      if (is_result) r.results[b.index] = r.used.back();
    }
    std::sort(r.used.begin(), r.used.end());
    r.used.erase(std::unique(r.used.begin(), r.used.end()), r.used.end());
    r.ports.resize(r.used.size());
    r.arenas.resize(arenas_.size());
  }

  void upload(const Ready& r) {
    for (std::size_t i : r.used) {
      const std::size_t device = i / ports(), number = i % ports();
      if (number >= inputs_.size() || !places_[i].is_staged) continue;
      const Port& port = inputs_[number];
      first_stream(device).upload(places_[i].staging.at(), {port.data, port.bytes});
      ++runner_->counters.staged_copies;
    }
    // Streams beside the first do not wait for it by themselves.
    if (streams_->size() > arenas_.size()) streams_->synchronize();
  }

  void download(const Ready& r) {
    bool has_any = false;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const std::size_t place = r.results[i];
      if (place == Ready::none || !places_[place].is_staged) continue;
      first_stream(place / ports())
          .download({outputs_[i].data, result_bytes(i)}, places_[place].staging.at());
      ++runner_->counters.staged_copies;
      has_any = true;
    }
    if (has_any) streams_->synchronize();
  }

  // ---- sizes

  // Fills values_ from the inputs' dims.
  void match_sizes() {
    const Dims& symbols = executable_->symbols();
    std::fill(values_.begin(), values_.end(), std::int64_t{-1});
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      for (std::size_t axis = 0; axis < inputs_[i].dims.size(); ++axis) {
        const Dim& d = plan().params[i].type.shape.dims[axis];
        if (!d.is_symbol()) continue;
        const auto at = std::ranges::find(symbols, d.name(), &Dim::name) - symbols.begin();
        match_symbol(static_cast<std::size_t>(at), i, axis);
      }
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      for (std::size_t axis = 0; axis < inputs_[i].dims.size(); ++axis) {
        const Dim& d = plan().params[i].type.shape.dims[axis];
        const std::int64_t wanted = evaluate(d, executable_->symbols(), values_);
        if (wanted == inputs_[i].dims[axis]) continue;
        const std::string is = d.is_number() ? "" : cat(" = ", d);
        throw UserError("input '", plan().params[i].name, "': axis ", axis, " is ",
                        inputs_[i].dims[axis], ", must be ", wanted, is, "; the plan takes ",
                        plan().params[i].type);
      }
  }

  void match_symbol(std::size_t s, std::size_t input, std::size_t axis) {
    const Dim& symbol = executable_->symbols()[s];
    const std::int64_t n = inputs_[input].dims[axis];
    const std::string& name = plan().params[input].name;
    if (values_[s] < 0) {
      if (n < symbol.low() || n > symbol.high())
        throw UserError("input '", name, "': axis ", axis, " (", symbol, ") is ", n,
                        ", the plan serves ", symbol.low(), " to ", symbol.high(),
                        "; compile the model for a range that holds it, as with --dim ",
                        symbol.name(), "=", std::min(n, symbol.low()), "..",
                        std::max(n, symbol.high()));
      values_[s] = n;
      value_input_[s] = input;
    } else if (values_[s] != n) {
      throw UserError("size ", symbol, ": is ", values_[s], " in input '",
                      plan().params[value_input_[s]].name, "' and ", n, " in input '", name,
                      "'; they must be equal");
    }
  }

  Ready* find_ready() {
    for (const std::unique_ptr<Ready>& r : cache_)
      if (r->values == values_) return r.get();
    return nullptr;
  }

  std::string sizes_text() const {
    std::string out;
    for (std::size_t i = 0; i < values_.size(); ++i)
      if (values_[i] != not_known)
        out += cat(out.empty() ? "" : ", ", executable_->symbols()[i], " = ", values_[i]);
    return out;
  }

  std::uint32_t choose_variant() const {
    for (const PlanCheck& c : plan().checks) {
      const std::int64_t a = evaluate(c.a, executable_->symbols(), values_);
      const std::int64_t b = evaluate(c.b, executable_->symbols(), values_);
      if (a != b)
        throw UserError(c.message, ": ", c.a, " is ", a, " and ", c.b, " is ", b, ", with ",
                        sizes_text());
    }
    for (std::uint32_t v : executable_->variants()) {
      const auto& guards = plan().variants[v].guards;
      if (std::all_of(guards.begin(), guards.end(), [&](const Guard& g) {
            return holds(g, evaluate(g.a, executable_->symbols(), values_),
                         evaluate(g.b, executable_->symbols(), values_));
          }))
        return v;
    }
    throw UserError(plan().name, ": no variant of the plan serves ", sizes_text(),
                    "; compile it for these sizes");
  }

  Ready* make_ready() {
    auto r = std::make_unique<Ready>();
    r->values = values_;
    r->variant = choose_variant();
    const Variant& v = plan().variants[r->variant];
    r->program = bind_steps(*executable_, v, values_);
    if (plan().reading.mapped > 0) audit_steps(v);
    for (std::size_t i = 0; i < v.results.size(); ++i) {
      const Type t = largest(v.results[i], v.measured);
      auto& dims = r->output_dims.emplace_back();
      std::int64_t bytes = byte_size(t.dtype);
      r->is_open.push_back(!(t == v.results[i]));
      for (const Dim& d : t.shape.dims) {
        dims.push_back(evaluate(d, executable_->symbols(), values_));
        if (!r->is_open[i]) bytes = checked_mul(bytes, dims.back());
      }
      if (r->is_open[i])
        bytes = evaluate(hone::result_bytes(v, i), executable_->symbols(), values_);
      r->output_bytes.push_back(static_cast<std::size_t>(bytes));
    }
    note_places(v, *r);
    if (cache_.size() >= std::max<std::size_t>(options_.most_sizes, 1))
      cache_.erase(std::ranges::min_element(cache_, {}, [](const auto& c) { return c->last_use; }));
    ++runner_->counters.binds;
    return cache_.emplace_back(std::move(r)).get();
  }

  // Whoever wrote the file: no step may read what nothing wrote, or write over what is still
  // needed. A plan that was compiled here was audited then.
  void audit_steps(const Variant& v) const {
    std::vector<std::int64_t> values = values_;
    const auto size = [&](const Dim& d) { return evaluate(d, executable_->symbols(), values); };
    for (const DimBound& b : v.measured) {
      const auto at = std::ranges::find(executable_->symbols(), b.symbol.name(), &Dim::name);
      values[static_cast<std::size_t>(at - executable_->symbols().begin())] = size(b.most);
    }
    if (const std::string problem = audit_problem(plan(), v, size); !problem.empty())
      throw UserError(problem, ", with ", values_.empty() ? "its sizes" : sizes_text(),
                      "; the plan file was changed, compile the plan again");
  }

  // What data decided is known after the run.
  void note_results(const Variant& v, const Ready& r) {
    if (v.measured.empty()) {
      result_dims_ = r.output_dims;
      return;
    }
    result_dims_.resize(v.results.size());
    for (std::size_t i = 0; i < v.results.size(); ++i) {
      const Dims& dims = v.results[i].shape.dims;
      result_dims_[i].resize(dims.size());
      for (std::size_t k = 0; k < dims.size(); ++k)
        result_dims_[i][k] = evaluate(dims[k], executable_->symbols(), runner_->values());
    }
  }

  void check_contents() const {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const PlanParam& p = plan().params[i];
      if (!p.required || p.required->bytes().empty()) continue;
      if (std::memcmp(inputs_[i].data, p.required->bytes().data(), inputs_[i].bytes) != 0)
        throw UserError("input '", p.name,
                        "': holds other numbers than the plan was compiled for; compile the model "
                        "for these");
    }
  }

  // ---- memory

  void check_outputs(const Ready& r) {
    if (are_outputs_checked_) return;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const std::string& name = plan().results[i].name;
      if (!outputs_[i].is_bound) throw UserError("session: output '", name, "' is not bound");
      if (r.is_open[i] && outputs_[i].bytes < r.output_bytes[i])
        throw UserError("output '", name, "': has memory of ", outputs_[i].bytes,
                        " bytes; data decides its size, and it may need ", r.output_bytes[i]);
      if (!r.is_open[i] && outputs_[i].dims != r.output_dims[i])
        throw UserError(
            "output '", name, "': is ", dims_text(plan().results[i].type.dtype, outputs_[i].dims),
            ", the result is ", dims_text(plan().results[i].type.dtype, r.output_dims[i]));
      check_donated(r, i);
    }
    check_overlaps();
    are_outputs_checked_ = true;
  }

  // An output that overwrites a parameter has that parameter's memory.
  void check_donated(const Ready& r, std::size_t i) {
    const std::int32_t param = plan().result_alias[i];
    if (param < 0) return;
    Port& output = outputs_[i];
    const Port& input = inputs_[static_cast<std::size_t>(param)];
    const std::string& name = plan().results[i].name;
    const std::string& of = plan().params[static_cast<std::size_t>(param)].name;
    if (output.given && output.given != input.data)
      throw UserError("output '", name, "': overwrites the donated input '", of,
                      "', but has other memory; give the input's address or null");
    const std::size_t place = r.results[i];
    if (place != Ready::none && places_[place].is_staged) {
      const Device& device = *executable_->device(place / ports());
      if (device.shares_host_memory())
        throw UserError("input '", of, "': is donated to output '", name,
                        "', so its memory must start at a multiple of ", device.limits().alignment);
    }
    output.data = input.data;
  }

  void check_overlaps() const {
    const auto overlap = [](const Port& a, const Port& b) {
      return a.bytes > 0 && b.bytes > 0 && a.data < b.data + b.bytes && b.data < a.data + a.bytes;
    };
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      for (std::size_t j = 0; j < inputs_.size(); ++j)
        if (plan().result_alias[i] != static_cast<std::int32_t>(j) &&
            overlap(outputs_[i], inputs_[j]))
          throw UserError("output '", plan().results[i].name, "': shares memory with input '",
                          plan().params[j].name, "'; only a donated input may be overwritten");
      for (std::size_t j = 0; j < i; ++j)
        if (overlap(outputs_[i], outputs_[j]))
          throw UserError("output '", plan().results[i].name, "': shares memory with output '",
                          plan().results[j].name, "'");
    }
  }

  void take_memory(const Ready& r) {
    bool grows = std::ranges::any_of(r.used, [&](std::size_t i) { return needs_staging(i); });
    for (std::size_t d = 0; d < arenas_.size(); ++d)
      grows = grows || r.program.needs[d].arena_bytes > arenas_[d].size() ||
              r.program.needs[d].scratch() > taken_scratch_[d];
    if (!grows) return;
    check_memory();
    for (std::size_t d = 0; d < arenas_.size(); ++d) {
      const std::size_t arena = r.program.needs[d].arena_bytes;
      if (arena > arenas_[d].size()) {
        arenas_[d] = {};  // first give back, then take
        arenas_[d] = OwnedMemory(allocators_[d], arena);
      }
      taken_scratch_[d] = std::max(taken_scratch_[d], r.program.needs[d].scratch());
    }
    streams_->reserve_scratch(r.program);
    for (std::size_t i : r.used)
      if (needs_staging(i)) {
        places_[i].staging = {};
        places_[i].staging = OwnedMemory(allocators_[i / ports()], port_of(i).bytes);
      }
  }

  bool needs_staging(std::size_t place) const {
    return places_[place].is_staged && places_[place].staging.size() < port_of(place).bytes;
  }

  // Has the operands' addresses computed, unless they are as in the last run with these sizes.
  void place(Ready& r) {
    bool has_moved = r.placement == 0;
    const auto put = [&](DeviceMemory& to, DeviceMemory now) {
      has_moved = has_moved || !(to == now);
      to = now;
    };
    for (std::size_t i = 0; i < r.used.size(); ++i) put(r.ports[i], places_[r.used[i]].at());
    for (std::size_t d = 0; d < arenas_.size(); ++d) put(r.arenas[d], arenas_[d].at());
    if (has_moved) r.placement = ++placements_;
  }

  DeviceMemory address(const BoundAddress& a) const { return base(a) + a.offset; }
  DeviceMemory base(const BoundAddress& a) const {
    switch (a.kind) {
      case PlanBuffer::Kind::param:
      case PlanBuffer::Kind::result:
        return places_[place_of(a.device, a.kind, a.index)].at();
      case PlanBuffer::Kind::weight:
        return executable_->weight(a.device, a.index).at;
      case PlanBuffer::Kind::prepared:
        return executable_->prepared(a.device, a.index).at;
      case PlanBuffer::Kind::arena:
        return arenas_[a.device].at();
    }
    return {};
  }

  // ---- the thread of submit()

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return is_closing_ || job_ == Job::waiting; });
      if (job_ != Job::waiting) return;
      job_ = Job::running;
      lock.unlock();
      std::exception_ptr error;
      try {
        run();
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      job_error_ = error;
      job_ = Job::finished;
      is_busy_.store(false, std::memory_order_release);
      changed_.notify_all();
    }
  }

  std::shared_ptr<const Executable> executable_;
  SessionOptions options_;
  StreamSet::Allocators allocators_;  // per device
  std::optional<StreamSet> streams_;
  std::optional<StepRunner> runner_;
  std::vector<Port> inputs_, outputs_;
  std::vector<std::int64_t> values_;      // of executable_->symbols()
  std::vector<std::size_t> value_input_;  // which input gave it
  std::vector<PortPlace> places_;         // per device: of inputs, then of outputs
  std::vector<std::unique_ptr<Ready>> cache_;
  Ready* current_ = nullptr;  // fits the inputs bound now; null: not known
  bool are_outputs_checked_ = false;
  std::uint64_t uses_ = 0, placements_ = 0;
  StepRunner::Memory memory_;
  std::vector<std::vector<std::int64_t>> result_dims_;  // of the last run
  // Per device.
  std::vector<OwnedMemory> arenas_;
  std::vector<std::size_t> taken_scratch_, most_scratch_;

  std::atomic<bool> is_busy_{false};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::thread worker_;
  Job job_ = Job::none;
  std::exception_ptr job_error_;
  bool is_closing_ = false;
};

std::string memory_text(const MemoryReport& m) {
  std::string out;
  const auto add = [&](std::string_view part, std::size_t bytes) {
    if (bytes > 0) out += cat(out.empty() ? "" : " + ", part, " ", bytes);
  };
  add("weights", m.shared.weights);
  add("prepared weights", m.shared.prepared);
  add("file", m.shared.file);
  add("plan", m.shared.plan);
  add("code", m.shared.code);
  add("arena", m.arena);
  add("scratch", m.scratch);
  add("staging", m.staging);
  add("steps", m.steps);
  add("library", m.library);
  return out;
}

std::int64_t default_memory_limit() {
  static const std::int64_t limit = usable_memory() / 5 * 4;
  return limit;
}

Session::Session(std::shared_ptr<const Executable> executable, SessionOptions options)
    : state_(std::make_unique<State>(std::move(executable), std::move(options))) {}

Session::~Session() = default;

const Executable& Session::executable() const { return state_->executable(); }

void Session::bind_input(std::size_t i, const TensorRef& t) {
  State::Exclusive exclusive(*state_);
  state_->bind_input(i, t);
}

void Session::bind_output(std::size_t i, const TensorRef& t) {
  State::Exclusive exclusive(*state_);
  state_->bind_output(i, t);
}

std::vector<std::vector<std::int64_t>> Session::output_dims() {
  State::Exclusive exclusive(*state_);
  return state_->ready().output_dims;
}

std::vector<std::vector<std::int64_t>> Session::result_dims() {
  State::Exclusive exclusive(*state_);
  return state_->result_dims();
}

MemoryReport Session::memory() {
  State::Exclusive exclusive(*state_);
  return state_->memory();
}

std::uint32_t Session::variant() {
  State::Exclusive exclusive(*state_);
  return state_->ready().variant;
}

void Session::run() {
  State::Exclusive exclusive(*state_);
  state_->run();
}

namespace {

void check_count(std::string_view what, std::size_t got, std::size_t wanted) {
  if (got != wanted) throw UserError("session: got ", got, " ", what, ", the plan has ", wanted);
}

}  // namespace

void Session::run(std::span<const TensorRef> inputs, std::span<const TensorRef> outputs) {
  State::Exclusive exclusive(*state_);
  check_count("inputs", inputs.size(), executable().plan().params.size());
  check_count("outputs", outputs.size(), executable().plan().results.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) state_->bind_input(i, inputs[i]);
  for (std::size_t i = 0; i < outputs.size(); ++i) state_->bind_output(i, outputs[i]);
  state_->run();
}

std::vector<Array> Session::run(std::span<const Array> inputs) {
  State::Exclusive exclusive(*state_);
  const Plan& plan = executable().plan();
  check_count("inputs", inputs.size(), plan.params.size());
  const auto host = std::make_shared<HostMemory>();
  const auto make = [&](std::size_t bytes) { return std::make_shared<OwnedMemory>(host, bytes); };
  const auto address = [](const OwnedMemory& m) { return HostMemory::address(m.at()); };
  std::vector<std::shared_ptr<OwnedMemory>> donated(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Array& a = inputs[i];
    void* data = const_cast<std::byte*>(a.bytes().data());
    if (plan.params[i].donated) {
      donated[i] = make(a.bytes().size());
      std::ranges::copy(a.bytes(), address(*donated[i]));
      data = address(*donated[i]);
    }
    state_->bind_input(i, {a.dtype(), a.dims(), data});
  }
  std::vector<std::shared_ptr<OwnedMemory>> memories;
  const Ready& ready = state_->ready();
  std::int64_t ours = 0;
  for (std::size_t i = 0; i < plan.results.size(); ++i)
    if (plan.result_alias[i] < 0)
      ours = checked_add(ours, static_cast<std::int64_t>(ready.output_bytes[i]));
  state_->check_memory(ours);
  for (std::size_t i = 0; i < plan.results.size(); ++i) {
    const std::int32_t alias = plan.result_alias[i];
    const auto memory =
        alias < 0 ? make(ready.output_bytes[i]) : donated[static_cast<std::size_t>(alias)];
    const DType dtype = plan.results[i].type.dtype;
    // How large an open result will be is not known: its memory is given as elements in a row.
    const std::int64_t room[] = {static_cast<std::int64_t>(ready.output_bytes[i]) /
                                 byte_size(dtype)};
    const std::span<const std::int64_t> dims =
        ready.is_open[i] ? std::span<const std::int64_t>(room) : ready.output_dims[i];
    state_->bind_output(i, {dtype, dims, address(*memory)});
    memories.push_back(memory);
  }
  state_->run();
  std::vector<Array> results;
  for (std::size_t i = 0; i < plan.results.size(); ++i)
    results.emplace_back(plan.results[i].type.dtype, state_->result_dims()[i],
                         Storage(memories[i], {address(*memories[i]), state_->result_bytes(i)}));
  return results;
}

void Session::submit() { state_->submit(); }
bool Session::poll() const { return state_->poll(); }
void Session::wait() { state_->wait(); }

void Session::set_deadline(std::chrono::steady_clock::time_point t) {
  State::Exclusive exclusive(*state_);
  state_->runner().deadline = t;
}

void Session::clear_deadline() {
  State::Exclusive exclusive(*state_);
  state_->runner().deadline.reset();
}

void Session::set_stop_token(std::stop_token token) {
  State::Exclusive exclusive(*state_);
  state_->runner().stop = std::move(token);
}

const RunCounters& Session::counters() const { return state_->counters(); }

void Session::trim() {
  State::Exclusive exclusive(*state_);
  state_->trim();
}

}  // namespace hone
