// Loads and runs plans from C++: a thin layer over the C interface that owns handles and turns
// statuses into exceptions. Header-only, links no compiler; cannot build or compile models.
//
//   hone::runtime::Executable executable("model.hone");
//   hone::runtime::Session session(executable, {.threads = 2});
//   std::vector<float> image(64), logits(10);
//   session.bind_input(0, {1, 1, 8, 8}, image);   // the session uses the vectors in place
//   session.bind_output(0, {1, 10}, logits);
//   session.run();
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "api/runtime/c.h"

namespace hone::runtime {

// Carries the text of hone_last_error() and the status.
struct Error : std::runtime_error {
  Error(hone_status s, const char* text) : std::runtime_error(text), status(s) {}
  hone_status status;
};

inline void check(hone_status status) {
  if (status != HONE_OK) throw Error(status, hone_last_error());
}

using Dims = std::vector<int64_t>;

// The dtype of a C++ element type. Types that C++ lacks, such as f16, are bound with an explicit
// hone_dtype.
template <class T>
constexpr hone_dtype dtype_of() {
  constexpr bool is_integer = std::is_integral_v<T>, is_signed = std::is_signed_v<T>;
  if constexpr (std::is_same_v<T, bool>)
    return HONE_BOOL;
  else if constexpr (std::is_same_v<T, float>)
    return HONE_F32;
  else if constexpr (std::is_same_v<T, double>)
    return HONE_F64;
  else if constexpr (is_integer && sizeof(T) == 1)
    return is_signed ? HONE_I8 : HONE_U8;
  else if constexpr (is_integer && sizeof(T) == 2)
    return is_signed ? HONE_I16 : HONE_U16;
  else if constexpr (is_integer && sizeof(T) == 4)
    return is_signed ? HONE_I32 : HONE_U32;
  else if constexpr (is_integer && sizeof(T) == 8)
    return is_signed ? HONE_I64 : HONE_U64;
  else
    static_assert(!sizeof(T), "no dtype for these elements: bind them with their hone_dtype");
}

template <class T>
inline constexpr bool is_span = false;
template <class T, std::size_t N>
inline constexpr bool is_span<std::span<T, N>> = true;

// Memory that outlives the call: a named vector, array or other contiguous range, or a span. A
// temporary is rejected: it would be destroyed before run() reads it.
template <class R>
concept Memory = (std::is_lvalue_reference_v<R> || is_span<std::remove_cvref_t<R>>) &&
                 requires(std::remove_reference_t<R>& r) { std::span(r); };
template <class R>
using Element =
    typename decltype(std::span(std::declval<std::remove_reference_t<R>&>()))::element_type;
template <class R>
concept WritableMemory = Memory<R> && !std::is_const_v<Element<R>>;

// A loaded plan. Copies share it; many threads may use it at once. A moved-from object can only be
// assigned to or destroyed: every other call throws.
class Executable {
 public:
  explicit Executable(const std::string& path) { check(hone_load(path.c_str(), &it_)); }
  // The bytes of a plan file, which must stay as they are until this and all its sessions are gone.
  explicit Executable(std::span<const std::byte> plan) {
    check(hone_load_memory(plan.data(), plan.size(), &it_));
  }
  // Takes over a handle of the C interface.
  explicit Executable(hone_executable* it) : it_(it) {}
  Executable(const Executable& o) { check(hone_executable_share(o.it_, &it_)); }
  Executable(Executable&& o) noexcept : it_(std::exchange(o.it_, nullptr)) {}
  Executable& operator=(Executable o) noexcept {
    std::swap(it_, o.it_);
    return *this;
  }
  ~Executable() { hone_executable_free(it_); }

  int32_t inputs() const { return count(hone_input_count(it_)); }
  int32_t outputs() const { return count(hone_output_count(it_)); }
  // The `name` member is valid as long as the plan is loaded.
  hone_tensor_info input(int32_t i) const {
    hone_tensor_info info;
    check(hone_input_info(it_, i, &info));
    return info;
  }
  hone_tensor_info output(int32_t i) const {
    hone_tensor_info info;
    check(hone_output_info(it_, i, &info));
    return info;
  }
  hone_executable* get() const { return it_; }

 private:
  static int32_t count(int32_t n) {
    if (n < 0) throw Error(HONE_ERROR_USER, hone_last_error());
    return n;
  }
  hone_executable* it_ = nullptr;
};

// Values of a plan's states: memory that outlives runs and that sessions share, such as weights
// that are trained, or a cache. May be used by several threads. Movable; another object is another
// memory.
class State {
 public:
  // Groups of the plan; empty: all. Every state has its start value.
  explicit State(const Executable& e, const std::vector<std::string>& groups = {}) {
    std::vector<const char*> names;
    for (const std::string& g : groups) names.push_back(g.c_str());
    check(hone_state_create(e.get(), names.data(), static_cast<int32_t>(names.size()), &it_));
  }
  State(State&& o) noexcept : it_(std::exchange(o.it_, nullptr)) {}
  State& operator=(State&& o) noexcept {
    State taken(std::move(o));
    std::swap(it_, taken.it_);
    return *this;
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { hone_state_free(it_); }  // sessions that use it keep the memory

  int32_t count() const {
    const int32_t n = hone_state_count(it_);
    if (n < 0) throw Error(HONE_ERROR_USER, hone_last_error());
    return n;
  }
  hone_tensor_info info(int32_t i) const {
    hone_tensor_info out;
    check(hone_state_info(it_, i, &out));
    return out;
  }
  // Its sizes now.
  Dims dims(const std::string& name) const {
    int64_t out[HONE_MOST_AXES];
    int32_t rank = 0;
    check(hone_state_dims(it_, name.c_str(), out, &rank));
    return Dims(out, out + rank);
  }
  // Copy one state from or to memory of exactly its size. A state that grows takes any size up to
  // its capacity.
  template <class R>
    requires WritableMemory<R>
  void read(const std::string& name, R&& data) const {
    const std::span memory(data);
    check(hone_state_read(it_, name.c_str(), memory.data(), memory.size_bytes()));
  }
  template <class R>
    requires Memory<R>
  void write(const std::string& name, R&& data) {
    const std::span memory(data);
    check(hone_state_write(it_, name.c_str(), memory.data(), memory.size_bytes()));
  }
  // Keeps the first elements along the axis of a state that grows.
  void shorten(const std::string& name, int64_t size) {
    check(hone_state_shorten(it_, name.c_str(), size));
  }
  void reset() { check(hone_state_reset(it_)); }
  void assign(const State& from) { check(hone_state_assign(it_, from.it_)); }
  void save(const std::string& path) const { check(hone_state_save(it_, path.c_str())); }
  // Pairs: the tensor's name in the file, the state's name.
  void load(const std::string& path,
            const std::vector<std::pair<std::string, std::string>>& renamed = {}) {
    std::vector<hone_rename> renames;
    for (const auto& [tensor, state] : renamed) renames.push_back({tensor.c_str(), state.c_str()});
    check(hone_state_load(it_, path.c_str(), renames.data(), static_cast<int32_t>(renames.size())));
  }
  uint64_t version(const std::string& group) const {
    uint64_t n = 0;
    check(hone_state_version(it_, group.c_str(), &n));
    return n;
  }
  bool is_torn(const std::string& group) const {
    int32_t torn = 0;
    check(hone_state_is_torn(it_, group.c_str(), &torn));
    return torn != 0;
  }
  hone_state* get() const { return it_; }

 private:
  hone_state* it_ = nullptr;
};

// A tensor outside of plans, in the memory of the executable's first device or of the host: results
// that are bound to it stay there as inputs of the next run. A session keeps the tensor that is
// bound to it. Movable, not copyable.
class Tensor {
 public:
  // Dense, and zero unless `uninitialized`.
  Tensor(const Executable& e, hone_dtype dtype, const Dims& dims, bool uninitialized = false) {
    check(hone_tensor_create(e.get(), dtype, dims.data(), static_cast<int32_t>(dims.size()),
                             uninitialized ? 1 : 0, &it_));
  }
  // The caller's memory, which is not copied and must live as long as this and its bindings.
  // Strides in elements; empty: dense row-major.
  template <class R>
    requires WritableMemory<R>
  Tensor(hone_dtype dtype, const Dims& dims, R&& data, const Dims& strides = {}) {
    const std::span memory(data);
    if (!strides.empty() && strides.size() != dims.size())
      throw Error(HONE_ERROR_USER, "tensor: expected one stride per axis, or none");
    check(hone_tensor_of_memory(dtype, dims.data(), strides.empty() ? nullptr : strides.data(),
                                static_cast<int32_t>(dims.size()), memory.data(),
                                memory.size_bytes(), &it_));
  }
  // Take the tensor over, unless they throw.
  Tensor(const Executable& e, DLManagedTensorVersioned* managed) {
    check(hone_tensor_from_dlpack(e.get(), managed, &it_));
  }
  Tensor(const Executable& e, DLManagedTensor* managed) {
    check(hone_tensor_from_dlpack_unversioned(e.get(), managed, &it_));
  }
  Tensor(Tensor&& o) noexcept : it_(std::exchange(o.it_, nullptr)) {}
  Tensor& operator=(Tensor&& o) noexcept {
    Tensor taken(std::move(o));
    std::swap(it_, taken.it_);
    return *this;
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
  ~Tensor() { hone_tensor_free(it_); }

  // An object that keeps the memory; free it by its deleter.
  DLManagedTensorVersioned* to_dlpack() const {
    DLManagedTensorVersioned* out = nullptr;
    check(hone_tensor_to_dlpack(it_, &out));
    return out;
  }
  DLManagedTensor* to_dlpack_unversioned() const {
    DLManagedTensor* out = nullptr;
    check(hone_tensor_to_dlpack_unversioned(it_, &out));
    return out;
  }
  hone_tensor_layout layout() const {
    hone_tensor_layout out;
    check(hone_tensor_describe(it_, &out));
    return out;
  }
  // Copy all elements, densely, to or from memory of exactly their size.
  template <class R>
    requires WritableMemory<R>
  void read(R&& data) const {
    const std::span memory(data);
    check(hone_tensor_read(it_, memory.data(), memory.size_bytes()));
  }
  template <class R>
    requires Memory<R>
  void write(R&& data) {
    const std::span memory(data);
    check(hone_tensor_write(it_, memory.data(), memory.size_bytes()));
  }
  hone_tensor* get() const { return it_; }

 private:
  hone_tensor* it_ = nullptr;
};

// As hone_session_options. The session copies the data that the pointers and the span refer to.
struct SessionOptions {
  int32_t threads = 0;                     // of its own pool; 0: all that are available
  std::span<const int32_t> affinity = {};  // processors that these threads run on
  const hone_pool* pool = nullptr;         // used instead of a pool of its own
  const hone_allocator* allocator = nullptr;
  int64_t max_memory = 0;  // bytes, limits hone_memory.peak; 0: 80 % of what is available
  std::string entry = {};  // the function to run; empty: the plan's only one
  std::vector<const State*> states = {};  // together with each group that the entry uses, once
  // Runs are submitted to `stream` and return: see hone_session_options.
  bool on_stream = false;
  void* stream = nullptr;
};

// Runs one call at a time. The executable may be destroyed first. Movable, not copyable: a session
// is the state of one caller; open another one for the same executable. A moved-from object can
// only be assigned to or destroyed: every other call throws.
class Session {
 public:
  explicit Session(const Executable& e, const SessionOptions& options = {}) {
    hone_session_options given = {};
    given.threads = options.threads;
    given.affinity = options.affinity.data();
    given.affinity_count = static_cast<int32_t>(options.affinity.size());
    given.pool = options.pool;
    given.allocator = options.allocator;
    given.max_memory = options.max_memory;
    given.entry = options.entry.empty() ? nullptr : options.entry.c_str();
    std::vector<hone_state*> states;
    for (const State* state : options.states) states.push_back(state->get());
    given.states = states.data();
    given.state_count = static_cast<int32_t>(states.size());
    given.on_stream = options.on_stream ? 1 : 0;
    given.stream = options.stream;
    check(hone_session_create(e.get(), &given, &it_));
  }
  Session(Session&& o) noexcept : it_(std::exchange(o.it_, nullptr)) {}
  Session& operator=(Session&& o) noexcept {
    Session taken(std::move(o));
    std::swap(it_, taken.it_);
    return *this;
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { hone_session_free(it_); }  // waits for runs

  // The number of an input or output of the session's entry by its name.
  int32_t input(const std::string& name) const {
    int32_t i = 0;
    check(hone_find_input(it_, name.c_str(), &i));
    return i;
  }
  int32_t output(const std::string& name) const {
    int32_t i = 0;
    check(hone_find_output(it_, name.c_str(), &i));
    return i;
  }

  // Binds dense row-major memory, which every run uses: it must live and must not move until other
  // memory is bound or the session ends. Throws Error unless dtype and dims are what the plan takes
  // and `data` has exactly that many elements; to bind part of a larger vector, use
  // std::span(v).first(n).
  template <class R>
    requires Memory<R>
  void bind_input(int32_t i, const Dims& dims, R&& data) {
    bind_input(i, dtype_of<std::remove_const_t<Element<R>>>(), dims, data);
  }
  template <class R>
    requires WritableMemory<R>
  void bind_output(int32_t i, const Dims& dims, R&& data) {
    bind_output(i, dtype_of<Element<R>>(), dims, data);
  }
  // Elements of any dtype in memory of any type, for example HONE_F16 in 16-bit integers or bytes.
  template <class R>
    requires Memory<R>
  void bind_input(int32_t i, hone_dtype dtype, const Dims& dims, R&& data) {
    const std::span memory(data);
    check(hone_bind_input(it_, i, dtype, dims.data(), static_cast<int32_t>(dims.size()),
                          memory.data(), memory.size_bytes()));
  }
  template <class R>
    requires WritableMemory<R>
  void bind_output(int32_t i, hone_dtype dtype, const Dims& dims, R&& data) {
    const std::span memory(data);
    check(hone_bind_output(it_, i, dtype, dims.data(), static_cast<int32_t>(dims.size()),
                           memory.data(), memory.size_bytes()));
  }

  // A tensor, which the session keeps until other memory is bound.
  void bind_input(int32_t i, const Tensor& t) { check(hone_bind_input_tensor(it_, i, t.get())); }
  void bind_output(int32_t i, const Tensor& t) { check(hone_bind_output_tensor(it_, i, t.get())); }

  // Sizes of an output for the inputs bound now; a data-dependent size is given as its upper bound.
  Dims output_dims(int32_t i) {
    int64_t dims[HONE_MOST_AXES];
    int32_t rank = 0;
    check(hone_output_dims(it_, i, dims, &rank));
    return Dims(dims, dims + rank);
  }
  // The memory that an output needs for the inputs bound now. With several data-dependent sizes,
  // this can be less than the product of output_dims(); then bind the output with one axis.
  size_t output_bytes(int32_t i) {
    size_t bytes = 0;
    check(hone_output_bytes(it_, i, &bytes));
    return bytes;
  }
  // Sizes of an output of the last run.
  Dims result_dims(int32_t i) {
    int64_t dims[HONE_MOST_AXES];
    int32_t rank = 0;
    check(hone_result_dims(it_, i, dims, &rank));
    return Dims(dims, dims + rank);
  }
  // Memory that a run with the inputs bound now needs.
  hone_memory memory() {
    hone_memory m;
    check(hone_session_memory(it_, &m));
    return m;
  }

  // Bytes that all runs so far copied between the host's memory and a device's own.
  hone_traffic traffic() {
    hone_traffic t;
    check(hone_session_traffic(it_, &t));
    return t;
  }

  void run() { check(hone_run(it_)); }
  // Runs in another thread: poll() returns whether the run is finished, wait() throws its error.
  void submit() { check(hone_submit(it_)); }
  bool poll() const { return hone_poll(it_) != 0; }
  void wait() { check(hone_wait(it_)); }  // also for runs on the caller's stream
  // Order between streams, by a CUevent: later runs start after it; it comes after all runs so far.
  void wait_event(void* event) { check(hone_wait_event(it_, event)); }
  void record_event(void* event) { check(hone_record_event(it_, event)); }
  // In milliseconds from now; negative: no deadline. Checked while the run waits for states, and
  // between steps up to the first that updates a state.
  void set_deadline(int64_t milliseconds) { check(hone_set_deadline(it_, milliseconds)); }
  // Stops the run in progress at its next step. Other threads may call only this and poll().
  void stop() { hone_stop(it_); }
  hone_session* get() const { return it_; }

 private:
  hone_session* it_ = nullptr;
};

}  // namespace hone::runtime
