// Loads and runs plans from C++: a thin layer over the C interface that owns handles and turns
// statuses into exceptions. Header-only, links no compiler; not for building or compiling models.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "api/runtime/c.h"

namespace hone::runtime {

// What hone_last_error() said, and the status.
struct Error : std::runtime_error {
  Error(hone_status s, const char* text) : std::runtime_error(text), status(s) {}
  hone_status status;
};

inline void check(hone_status status) {
  if (status != HONE_OK) throw Error(status, hone_last_error());
}

using Dims = std::vector<int64_t>;

// A loaded plan. Copies share it; may be used by many threads at once.
class Executable {
 public:
  explicit Executable(const std::string& path) {
    hone_executable* e = nullptr;
    check(hone_load(path.c_str(), &e));
    it_ = Handle(e);
  }
  int32_t inputs() const { return hone_input_count(it_.get()); }
  int32_t outputs() const { return hone_output_count(it_.get()); }
  hone_tensor_info input(int32_t i) const {
    hone_tensor_info info;
    check(hone_input_info(it_.get(), i, &info));
    return info;
  }
  hone_tensor_info output(int32_t i) const {
    hone_tensor_info info;
    check(hone_output_info(it_.get(), i, &info));
    return info;
  }
  hone_executable* get() const { return it_.get(); }

 private:
  // Owns one handle; a shared_ptr would cost every user its header.
  class Handle {
   public:
    explicit Handle(hone_executable* e = nullptr) : e_(e) {}
    Handle(Handle&& o) noexcept : e_(std::exchange(o.e_, nullptr)) {}
    Handle& operator=(Handle&& o) noexcept {
      std::swap(e_, o.e_);
      return *this;
    }
    ~Handle() { hone_executable_free(e_); }
    hone_executable* get() const { return e_; }

   private:
    hone_executable* e_;
  };
  Handle it_;
};

// Runs one call at a time. The executable must outlive it.
class Session {
 public:
  explicit Session(const Executable& e, const hone_session_options& options = {}) {
    check(hone_session_create(e.get(), &options, &it_));
  }
  Session(Session&& o) noexcept : it_(std::exchange(o.it_, nullptr)) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { hone_session_free(it_); }

  // Dense row-major memory that stays bound from run to run.
  void bind_input(int32_t i, hone_dtype dtype, const Dims& dims, const void* data) {
    check(hone_bind_input(it_, i, dtype, dims.data(), static_cast<int32_t>(dims.size()), data));
  }
  void bind_output(int32_t i, hone_dtype dtype, const Dims& dims, void* data) {
    check(hone_bind_output(it_, i, dtype, dims.data(), static_cast<int32_t>(dims.size()), data));
  }
  // f32 vectors, the common case. The vectors must live, and keep their size, while bound.
  void bind_input(int32_t i, const Dims& dims, const std::vector<float>& data) {
    bind_input(i, HONE_F32, dims, data.data());
  }
  void bind_output(int32_t i, const Dims& dims, std::vector<float>& data) {
    bind_output(i, HONE_F32, dims, data.data());
  }
  Dims output_dims(int32_t i) {
    int64_t dims[HONE_MOST_AXES];
    int32_t rank = 0;
    check(hone_output_dims(it_, i, dims, &rank));
    return Dims(dims, dims + rank);
  }
  Dims result_dims(int32_t i) {
    int64_t dims[HONE_MOST_AXES];
    int32_t rank = 0;
    check(hone_result_dims(it_, i, dims, &rank));
    return Dims(dims, dims + rank);
  }
  hone_memory memory() {
    hone_memory m;
    check(hone_session_memory(it_, &m));
    return m;
  }

  void run() { check(hone_run(it_)); }
  void submit() { check(hone_submit(it_)); }
  bool poll() const { return hone_poll(it_) != 0; }
  void wait() { check(hone_wait(it_)); }
  void set_deadline(int64_t milliseconds) { check(hone_set_deadline(it_, milliseconds)); }
  void stop() { hone_stop(it_); }

 private:
  hone_session* it_ = nullptr;
};

}  // namespace hone::runtime
