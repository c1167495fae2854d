// What the files of the C interface share: the objects behind its handles, and its boundary, which
// no exception leaves.
#pragma once

#include <memory>
#include <mutex>
#include <new>
#include <stop_token>
#include <string>

#include "api/runtime/c.h"
#include "base/error.h"
#include "runtime/session.h"
#include "runtime/state.h"

struct hone_executable {
  std::shared_ptr<const hone::Executable> it;
};

struct hone_session {
  std::unique_ptr<hone::Session> it;
  std::mutex mutex;  // guards `stop` against hone_stop
  std::stop_source stop;
};

struct hone_state {
  hone::State it;
};

struct hone_tensor {
  hone::DeviceTensor it;
};

namespace hone::c_api {

// Of the calling thread.
std::string& last_error();

inline hone_status failed(hone_status status, const char* text) noexcept {
  try {
    last_error() = text;
  } catch (...) {
  }
  return status;
}

// Boundary of the C interface: no exception leaves this function.
template <class F>
hone_status guarded(F&& f) noexcept {
  try {
    f();
    return HONE_OK;
  } catch (const Cancelled& e) {
    return failed(e.why == Cancelled::Why::deadline ? HONE_DEADLINE : HONE_STOPPED, e.what());
  } catch (const OutOfMemory& e) {
    return failed(HONE_OUT_OF_MEMORY, e.what());
  } catch (const UserError& e) {
    return failed(HONE_ERROR_USER, e.what());
  } catch (const std::bad_alloc&) {
    return failed(HONE_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& e) {
    return failed(HONE_ERROR_INTERNAL, e.what());
  } catch (...) {
    return failed(HONE_ERROR_INTERNAL, "an unknown exception");
  }
}

template <class T>
T* required(T* p, const char* what) {
  if (!p) throw UserError(what, " is null, expected a valid pointer");
  return p;
}

inline std::size_t checked_index(std::int32_t index, std::size_t count, const char* what) {
  if (index < 0 || static_cast<std::size_t>(index) >= count)
    throw UserError(what, " ", index, " does not exist; the plan has ", count, " ", what,
                    "s, numbered from 0");
  return static_cast<std::size_t>(index);
}

// Throws UserError for numbers outside of hone_dtype and ranks that are too large.
TensorRef tensor(hone_dtype, const std::int64_t* dims, std::int32_t rank, void* data,
                 std::size_t bytes);

void describe(const std::string& name, const Type&, bool is_donated, hone_tensor_info* out);

}  // namespace hone::c_api
