#include <algorithm>
#include <new>

#include "api/runtime/boundary.h"
#include "base/checked.h"
#include "runtime/dlpack.h"

namespace {

using namespace hone;
using namespace hone::c_api;

const DeviceTensor& tensor_of(const hone_tensor* t) { return required(t, "tensor")->it; }

hone_tensor* handle(DeviceTensor t) { return new hone_tensor{std::move(t)}; }

// The caller still has what could not be taken over, so the handle is allocated first.
template <class M>
hone_status taken_from(const hone_executable* e, M* managed, hone_tensor** out) {
  return guarded([&] {
    *required(out, "dlpack: out") = nullptr;
    required(managed, "dlpack: the tensor");
    struct Room {
      void* memory = ::operator new(sizeof(hone_tensor));
      ~Room() { ::operator delete(memory); }
    } room;
    hone_tensor* made =
        new (room.memory) hone_tensor{dlpack::taken(*required(e, "executable")->it, managed)};
    room.memory = nullptr;
    *out = made;
  });
}

std::span<const std::int64_t> strides_of(const std::int64_t* strides, std::int32_t rank) {
  return {strides, strides ? static_cast<std::size_t>(rank) : 0};
}

}  // namespace

extern "C" {

hone_status hone_tensor_create(const hone_executable* e, hone_dtype dtype, const std::int64_t* dims,
                               std::int32_t rank, std::int32_t uninitialized, hone_tensor** out) {
  return guarded([&] {
    *required(out, "hone_tensor_create: out") = nullptr;
    const TensorRef t = tensor(dtype, dims, rank, nullptr, 0);
    const auto start =
        uninitialized ? DeviceTensor::Start::uninitialized : DeviceTensor::Start::zeros;
    *out = handle(DeviceTensor(required(e, "executable")->it->device(), t.dtype, t.dims, start));
  });
}
hone_status hone_tensor_of_memory(hone_dtype dtype, const std::int64_t* dims,
                                  const std::int64_t* strides, std::int32_t rank, void* data,
                                  std::size_t bytes, hone_tensor** out) {
  return guarded([&] {
    *required(out, "hone_tensor_of_memory: out") = nullptr;
    TensorRef t = tensor(dtype, dims, rank, data, bytes);
    t.strides = strides_of(strides, rank);
    *out = handle(DeviceTensor(t, {}));
  });
}

hone_status hone_tensor_from_dlpack(const hone_executable* e, DLManagedTensorVersioned* managed,
                                    hone_tensor** out) {
  return taken_from(e, reinterpret_cast<dlpack::VersionedManaged*>(managed), out);
}
hone_status hone_tensor_from_dlpack_unversioned(const hone_executable* e, DLManagedTensor* managed,
                                                hone_tensor** out) {
  return taken_from(e, reinterpret_cast<dlpack::Managed*>(managed), out);
}
hone_status hone_tensor_to_dlpack(const hone_tensor* t, DLManagedTensorVersioned** out) {
  return guarded([&] {
    *required(out, "hone_tensor_to_dlpack: out") = nullptr;
    *out = reinterpret_cast<DLManagedTensorVersioned*>(dlpack::given(tensor_of(t)));
  });
}
hone_status hone_tensor_to_dlpack_unversioned(const hone_tensor* t, DLManagedTensor** out) {
  return guarded([&] {
    *required(out, "hone_tensor_to_dlpack_unversioned: out") = nullptr;
    *out = reinterpret_cast<DLManagedTensor*>(dlpack::given_unversioned(tensor_of(t)));
  });
}
void hone_tensor_free(hone_tensor* t) { delete t; }

hone_status hone_tensor_describe(const hone_tensor* t, hone_tensor_layout* out) {
  return guarded([&] {
    const DeviceTensor& tensor = tensor_of(t);
    required(out, "hone_tensor_layout");
    const std::size_t rank = tensor.dims().size();
    if (rank > HONE_MOST_AXES)
      throw UserError("tensor has ", rank, " axes, expected at most ", int{HONE_MOST_AXES});
    *out = {};
    out->dtype = static_cast<hone_dtype>(tensor.dtype());
    out->rank = static_cast<std::int32_t>(rank);
    std::ranges::copy(tensor.dims(), out->dims);
    const StridedCopy copy = gathering(tensor.dtype(), tensor.dims(), tensor.strides());
    for (std::size_t i = 0; i < rank; ++i)
      out->strides[i] = copy.from_strides[i] / byte_size(tensor.dtype());
    out->bytes = tensor.bytes();
    out->is_read_only = tensor.is_read_only();
    out->device = tensor.device() ? tensor.device()->name().data() : "host";
    const TensorRef ref = tensor.ref();
    out->data = ref.memory.data();
    if (tensor.device()) {
      const auto raw = tensor.device()->address_of(ref.at);
      out->data = raw ? raw->address : nullptr;
    }
  });
}

hone_status hone_tensor_read(const hone_tensor* t, void* data, std::size_t bytes) {
  return guarded([&] {
    if (bytes > 0) required(data, "hone_tensor_read: data");
    tensor_of(t).read({static_cast<std::byte*>(data), bytes});
  });
}
hone_status hone_tensor_write(hone_tensor* t, const void* data, std::size_t bytes) {
  return guarded([&] {
    if (bytes > 0) required(data, "hone_tensor_write: data");
    required(t, "tensor")->it.write({static_cast<const std::byte*>(data), bytes});
  });
}

}  // extern "C"
