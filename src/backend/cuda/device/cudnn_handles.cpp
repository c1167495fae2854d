#include "backend/cuda/device/cudnn_handles.h"

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "backend/cuda/device/cudnn_library.h"

namespace hone::cudnn {

namespace {

// Kept as long as the process: creating a handle takes a tenth of a second.
struct Handles {
  std::mutex mutex;
  std::map<std::uint64_t, std::vector<Handle>> idle;  // by the context's id; without a stream
  std::map<std::pair<std::uint64_t, CUstream>, Handle> of_streams;
};

Handles& handles() {
  static Handles it;
  return it;
}

Handle take(std::uint64_t context) {
  {
    const std::scoped_lock lock(handles().mutex);
    std::vector<Handle>& idle = handles().idle[context];
    if (!idle.empty()) {
      const Handle h = idle.back();
      idle.pop_back();
      return h;
    }
  }
  Handle made = nullptr;
  check(library().create(&made), "cudnnCreate");
  return made;
}

void put_back(std::uint64_t context, Handle h) {
  const std::scoped_lock lock(handles().mutex);
  handles().idle[context].push_back(h);
}

}  // namespace

Handle handle_of(const cuda::Context& context, CUstream stream) {
  const std::pair key(context.id(), stream);
  {
    const std::scoped_lock lock(handles().mutex);
    const auto it = handles().of_streams.find(key);
    if (it != handles().of_streams.end()) return it->second;
  }
  const Handle h = take(context.id());
  if (const Status s = library().set_stream(h, stream); s != success) {
    put_back(context.id(), h);
    check(s, "cudnnSetStream");
  }
  const std::scoped_lock lock(handles().mutex);
  return handles().of_streams.emplace(key, h).first->second;
}

void release(const cuda::Context& context, CUstream stream) noexcept {
  const std::scoped_lock lock(handles().mutex);
  const auto it = handles().of_streams.find({context.id(), stream});
  if (it == handles().of_streams.end()) return;
  const Handle h = it->second;
  handles().of_streams.erase(it);
  if (library().set_stream(h, nullptr) == success) handles().idle[context.id()].push_back(h);
}

BorrowedHandle::BorrowedHandle(const cuda::Context& context)
    : context_(context.id()), handle_(take(context_)) {}
BorrowedHandle::~BorrowedHandle() { put_back(context_, handle_); }

}  // namespace hone::cudnn
