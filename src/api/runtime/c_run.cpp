#include <algorithm>

#include "api/runtime/boundary.h"
#include "api/runtime/c.h"
#include "backend/devices/devices.h"
#include "base/log.h"
#include "plan/plan_file.h"
#include "runtime/prepare.h"
#include "type/text.h"

namespace {

using namespace hone;
using namespace hone::c_api;

void describe_one(const std::vector<const PlanParam*>& list, std::int32_t index, const char* what,
                  hone_tensor_info* out) {
  const PlanParam& p = *list[checked_index(index, list.size(), what)];
  describe(p.name, p.type, p.donated, out);
}

class UserPool final : public ThreadPool {
 public:
  explicit UserPool(const hone_pool& pool) : pool_(pool) {
    if (!pool.run || pool.threads < 1)
      throw UserError("hone_pool: needs a run function and at least one thread");
  }
  int threads() const override { return pool_.threads; }
  void run(std::int64_t chunks, Body body, void* context) override {
    pool_.run(pool_.context, chunks, body, context);
  }

 private:
  hone_pool pool_;
};

class UserAllocator final : public Allocator {
 public:
  UserAllocator(const hone_allocator& allocator, std::shared_ptr<Device> device)
      : it_(allocator), device_(std::move(device)) {
    if (!device_->shares_host_memory())
      throw UserError("hone_allocator: device '", device_->name(),
                      "' does not use host memory; do not give an allocator");
    if (!it_.alloc || !it_.free)
      throw UserError("hone_allocator: alloc or free is null; both are required");
  }
  DeviceMemory alloc(std::size_t bytes) override {
    void* p = it_.alloc(it_.context, bytes);
    if (!p) throw UserError("hone_allocator: alloc failed for ", bytes, " bytes");
    const std::optional<DeviceMemory> at = device_->of_host(p);
    if (!at) {
      it_.free(it_.context, p, bytes);
      throw UserError("hone_allocator: alloc returned misaligned memory, expected an alignment of ",
                      device_->limits().alignment, " bytes");
    }
    return *at;
  }
  void free(DeviceMemory m, std::size_t bytes) noexcept override {
    it_.free(it_.context, device_->host_address(m), bytes);
  }

 private:
  hone_allocator it_;
  std::shared_ptr<Device> device_;
};

SessionOptions session_options(const Executable& executable, const hone_session_options* given) {
  SessionOptions out;
  if (!given) return out;
  const auto check_sign = [](const char* what, std::int64_t n) {
    if (n < 0)
      throw UserError("hone_session_options: ", what, " is ", n,
                      ", expected 0 (the default) or more");
  };
  check_sign("threads", given->threads);
  check_sign("affinity_count", given->affinity_count);
  check_sign("max_memory", given->max_memory);
  if (given->affinity_count > 0) required(given->affinity, "hone_session_options: affinity");
  out.threads = given->threads;
  for (std::int32_t i = 0; i < given->affinity_count; ++i)
    out.affinity.push_back(given->affinity[i]);
  if (given->pool) out.pool = std::make_shared<UserPool>(*given->pool);
  if (given->allocator)
    out.allocator = std::make_shared<UserAllocator>(*given->allocator, executable.device());
  if (given->max_memory > 0) out.max_memory = given->max_memory;
  if (given->entry) out.entry = given->entry;
  check_sign("state_count", given->state_count);
  if (given->state_count > 0) required(given->states, "hone_session_options: states");
  for (std::int32_t i = 0; i < given->state_count; ++i)
    out.states.push_back(required(given->states[i], "hone_session_options: a state")->it);
  if (given->on_stream != 0) out.stream = executable.device()->adopt_stream(given->stream);
  return out;
}

// A stop that was requested before this run has no effect on it.
void renew_stop(hone_session& s) {
  std::lock_guard lock(s.mutex);
  if (s.stop.stop_requested()) s.stop = std::stop_source();
  s.it->set_stop_token(s.stop.get_token());
}

void give_dims(const std::vector<std::vector<std::int64_t>>& all, std::int32_t i,
               std::int64_t* dims, std::int32_t* rank) {
  const auto& sizes = all[checked_index(i, all.size(), "output")];
  if (sizes.size() > HONE_MOST_AXES)
    throw UserError("output ", i, " has ", sizes.size(), " axes, expected at most ",
                    int{HONE_MOST_AXES});
  std::copy(sizes.begin(), sizes.end(), required(dims, "dims"));
  *required(rank, "rank") = static_cast<std::int32_t>(sizes.size());
}

hone_executable* loaded(Plan plan) {
  const auto shared = std::make_shared<const Plan>(std::move(plan));
  return new hone_executable{load_plan(shared, open_devices(*shared))};
}

const PlanEntry& main_of(const hone_executable* e) {
  return *required(e, "executable")->it->main().plan;
}

// f(), or -1 if it throws.
template <class F>
std::int32_t count(const F& f) {
  std::int32_t n = -1;
  guarded([&] { n = static_cast<std::int32_t>(f()); });
  return n;
}

}  // namespace

extern "C" {

const char* hone_last_error(void) { return last_error().c_str(); }
const char* hone_version(void) { return HONE_VERSION; }
void hone_set_log(void (*sink)(void*, const char*), void* context) { set_log_sink(sink, context); }

hone_status hone_text_number(const char* text, std::size_t bytes, std::uint64_t* number) {
  return guarded([&] {
    const char* start = bytes == 0 ? "" : required(text, "text");
    *required(number, "number") = text_number({start, bytes});
  });
}
hone_status hone_text_of(std::uint64_t number, const char** text, std::size_t* bytes) {
  return guarded([&] {
    const std::string_view found = text_of(number);
    *required(text, "text") = found.data() ? found.data() : "";
    *required(bytes, "bytes") = found.size();
  });
}
void hone_forget_texts(void) { forget_texts(); }

hone_status hone_load(const char* path, hone_executable** out) {
  return guarded([&] {
    *required(out, "hone_load: out") = nullptr;
    *out = loaded(read_plan(std::filesystem::path(required(path, "path"))));
  });
}
hone_status hone_load_memory(const void* data, std::size_t bytes, hone_executable** out) {
  return guarded([&] {
    *required(out, "hone_load_memory: out") = nullptr;
    const auto* first = static_cast<const std::byte*>(required(data, "hone_load_memory: data"));
    *out = loaded(read_plan(nullptr, {first, bytes}, "plan in memory"));
  });
}
hone_status hone_executable_share(const hone_executable* e, hone_executable** out) {
  return guarded([&] {
    *required(out, "hone_executable_share: out") = nullptr;
    *out = new hone_executable{required(e, "executable")->it};
  });
}
void hone_executable_free(hone_executable* e) { delete e; }

std::int32_t hone_entry_count(const hone_executable* e) {
  return count([&] { return required(e, "executable")->it->entries().size(); });
}
hone_status hone_entry_name(const hone_executable* e, std::int32_t i, const char** out) {
  return guarded([&] {
    const auto& entries = required(e, "executable")->it->entries();
    *required(out, "hone_entry_name: out") =
        entries[checked_index(i, entries.size(), "entry")].plan->name.c_str();
  });
}

std::int32_t hone_input_count(const hone_executable* e) {
  return count([&] { return inputs_of(main_of(e)).size(); });
}
std::int32_t hone_output_count(const hone_executable* e) {
  return count([&] { return outputs_of(main_of(e)).size(); });
}
hone_status hone_input_info(const hone_executable* e, std::int32_t i, hone_tensor_info* out) {
  return guarded([&] { describe_one(inputs_of(main_of(e)), i, "input", out); });
}
hone_status hone_output_info(const hone_executable* e, std::int32_t i, hone_tensor_info* out) {
  return guarded([&] { describe_one(outputs_of(main_of(e)), i, "output", out); });
}

std::int32_t hone_session_input_count(const hone_session* s) {
  return count([&] { return required(s, "session")->it->inputs().size(); });
}
std::int32_t hone_session_output_count(const hone_session* s) {
  return count([&] { return required(s, "session")->it->outputs().size(); });
}
hone_status hone_session_input_info(const hone_session* s, std::int32_t i, hone_tensor_info* out) {
  return guarded([&] { describe_one(required(s, "session")->it->inputs(), i, "input", out); });
}
hone_status hone_session_output_info(const hone_session* s, std::int32_t i, hone_tensor_info* out) {
  return guarded([&] { describe_one(required(s, "session")->it->outputs(), i, "output", out); });
}
hone_status hone_find_input(const hone_session* s, const char* name, std::int32_t* index) {
  return guarded([&] {
    const std::size_t i = required(s, "session")->it->input_number(required(name, "name"));
    *required(index, "index") = static_cast<std::int32_t>(i);
  });
}
hone_status hone_find_output(const hone_session* s, const char* name, std::int32_t* index) {
  return guarded([&] {
    const std::size_t i = required(s, "session")->it->output_number(required(name, "name"));
    *required(index, "index") = static_cast<std::int32_t>(i);
  });
}

hone_status hone_session_create(hone_executable* e, const hone_session_options* options,
                                hone_session** out) {
  return guarded([&] {
    *required(out, "hone_session_create: out") = nullptr;
    auto made = std::make_unique<hone_session>();
    const auto& executable = required(e, "executable")->it;
    made->it = std::make_unique<Session>(executable, session_options(*executable, options));
    *out = made.release();
  });
}
void hone_session_free(hone_session* s) { delete s; }

hone_status hone_bind_input(hone_session* s, std::int32_t i, hone_dtype dtype,
                            const std::int64_t* dims, std::int32_t rank, const void* data,
                            std::size_t bytes) {
  return guarded([&] {
    const std::size_t inputs = required(s, "session")->it->input_count();
    s->it->bind_input(checked_index(i, inputs, "input"),
                      tensor(dtype, dims, rank, const_cast<void*>(data), bytes));
  });
}
hone_status hone_bind_output(hone_session* s, std::int32_t i, hone_dtype dtype,
                             const std::int64_t* dims, std::int32_t rank, void* data,
                             std::size_t bytes) {
  return guarded([&] {
    const std::size_t outputs = required(s, "session")->it->output_count();
    s->it->bind_output(checked_index(i, outputs, "output"), tensor(dtype, dims, rank, data, bytes));
  });
}

hone_status hone_bind_input_tensor(hone_session* s, std::int32_t i, const hone_tensor* t) {
  return guarded([&] {
    const std::size_t inputs = required(s, "session")->it->input_count();
    s->it->bind_input(checked_index(i, inputs, "input"), required(t, "tensor")->it);
  });
}
hone_status hone_bind_output_tensor(hone_session* s, std::int32_t i, const hone_tensor* t) {
  return guarded([&] {
    const std::size_t outputs = required(s, "session")->it->output_count();
    s->it->bind_output(checked_index(i, outputs, "output"), required(t, "tensor")->it);
  });
}

hone_status hone_output_dims(hone_session* s, std::int32_t i, std::int64_t dims[HONE_MOST_AXES],
                             std::int32_t* rank) {
  return guarded([&] { give_dims(required(s, "session")->it->output_dims(), i, dims, rank); });
}
hone_status hone_output_bytes(hone_session* s, std::int32_t i, std::size_t* bytes) {
  return guarded([&] {
    const std::vector<std::size_t> all = required(s, "session")->it->output_bytes();
    *required(bytes, "hone_output_bytes: bytes") = all[checked_index(i, all.size(), "output")];
  });
}
hone_status hone_result_dims(hone_session* s, std::int32_t i, std::int64_t dims[HONE_MOST_AXES],
                             std::int32_t* rank) {
  return guarded([&] {
    const auto all = required(s, "session")->it->result_dims();
    if (all.empty() && s->it->output_count() > 0)
      throw UserError("output ", i, ": its sizes are known after the first run; call hone_run");
    give_dims(all, i, dims, rank);
  });
}

hone_status hone_session_memory(hone_session* s, hone_memory* out) {
  return guarded([&] {
    MemoryReport m = required(s, "session")->it->memory();
    const SharedMemory& shared = m.shared;
    *required(out, "hone_memory: out") = {m.peak(),    shared.weights, shared.prepared, shared.file,
                                          shared.plan, shared.code,    m.arena,         m.scratch,
                                          m.staging,   m.steps,        m.library,       m.states};
  });
}

hone_status hone_session_traffic(hone_session* s, hone_traffic* out) {
  return guarded([&] {
    const RunCounters& c = required(s, "session")->it->counters();
    *required(out, "hone_traffic: out") = {static_cast<std::uint64_t>(c.uploaded_bytes),
                                           static_cast<std::uint64_t>(c.downloaded_bytes)};
  });
}

hone_status hone_run(hone_session* s) {
  return guarded([&] {
    renew_stop(*required(s, "session"));
    s->it->run();
  });
}
hone_status hone_submit(hone_session* s) {
  return guarded([&] {
    renew_stop(*required(s, "session"));
    s->it->submit();
  });
}
std::int32_t hone_poll(const hone_session* s) { return s && s->it->poll() ? 1 : 0; }
hone_status hone_wait(hone_session* s) {
  return guarded([&] { required(s, "session")->it->wait(); });
}

hone_status hone_wait_event(hone_session* s, void* event) {
  return guarded([&] {
    Session& session = *required(s, "session")->it;
    session.wait_for(*session.executable().device()->adopt_event(event));
  });
}
hone_status hone_record_event(hone_session* s, void* event) {
  return guarded([&] {
    Session& session = *required(s, "session")->it;
    session.record(*session.executable().device()->adopt_event(event));
  });
}

hone_status hone_set_deadline(hone_session* s, std::int64_t milliseconds) {
  return guarded([&] {
    required(s, "session");
    if (milliseconds < 0) return s->it->clear_deadline();
    s->it->set_deadline(std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds));
  });
}
void hone_stop(hone_session* s) {
  if (!s) return;
  std::lock_guard lock(s->mutex);
  s->stop.request_stop();
}

}  // extern "C"
