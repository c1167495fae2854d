// The exchange format of tensors between libraries, DLPack 1.x, written from its specification:
// https://dmlc.github.io/dlpack/latest/c_api.html. A tensor taken over keeps its producer's object
// alive, one given away keeps ours. Only layout and conversion: who calls what is in c.h.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/device_tensor.h"
#include "runtime/executable.h"

namespace hone::dlpack {

// Kinds of devices: DLDeviceType.
inline constexpr std::int32_t dl_cpu = 1, dl_cuda = 2, dl_cuda_host = 3, dl_cuda_managed = 13;

struct Device {
  std::int32_t type = dl_cpu, ordinal = 0;
};

// Of one element: DLDataType. `lanes` is 1 unless elements are vectors.
struct ElementType {
  std::uint8_t code = 0, bits = 0;
  std::uint16_t lanes = 1;
};

// DLTensor. Strides in elements; null: dense row-major.
struct Tensor {
  void* data = nullptr;
  Device device;
  std::int32_t rank = 0;
  ElementType element;
  std::int64_t* dims = nullptr;
  std::int64_t* strides = nullptr;
  std::uint64_t byte_offset = 0;
};

// DLManagedTensor, the older form.
struct Managed {
  Tensor tensor;
  void* context = nullptr;
  void (*deleter)(Managed*) = nullptr;
};

// DLManagedTensorVersioned. Readers of another major version may use nothing but version and
// deleter.
struct VersionedManaged {
  std::uint32_t major = 0, minor = 0;
  void* context = nullptr;
  void (*deleter)(VersionedManaged*) = nullptr;
  std::uint64_t flags = 0;
  Tensor tensor;
};
// Flags. What is given away is shared, never copied.
inline constexpr std::uint64_t read_only = 1, is_copied = 2, subbyte_padded = 4;

// Takes the tensor over: the deleter is called once, when the last user is gone. A GPU must be one
// of the executable's devices. Throw UserError, and take nothing over, for another major version,
// elements or devices that are not known, and elements of fewer than 8 bits.
DeviceTensor taken(const Executable&, VersionedManaged*);
DeviceTensor taken(const Executable&, Managed*);

// Objects whose deleter frees them; they keep the tensor's memory. Throw UserError for memory
// without an address, and elements that DLPack has no name for; the older form also for memory that
// is read-only, which it cannot say.
VersionedManaged* given(const DeviceTensor&);
Managed* given_unversioned(const DeviceTensor&);

}  // namespace hone::dlpack
