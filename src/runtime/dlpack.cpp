#include "runtime/dlpack.h"

#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/error.h"

namespace hone::dlpack {

static_assert(sizeof(Tensor) == 48 && offsetof(Tensor, byte_offset) == 40);
static_assert(sizeof(Managed) == 64 && sizeof(VersionedManaged) == 80);

namespace {

constexpr std::uint32_t our_major = 1, our_minor = 1;
constexpr int most_axes = 64;

struct Code {
  DType dtype;
  std::uint8_t code, bits;
};
// DLDataTypeCode: 0 int, 1 unsigned, 2 float, 4 bfloat, 6 bool; of version 1.1 the small floats.
constexpr Code codes[] = {
    {DType::i8, 0, 8},      {DType::i16, 0, 16},        {DType::i32, 0, 32},
    {DType::i64, 0, 64},    {DType::u8, 1, 8},          {DType::u16, 1, 16},
    {DType::u32, 1, 32},    {DType::u64, 1, 64},        {DType::f16, 2, 16},
    {DType::f32, 2, 32},    {DType::f64, 2, 64},        {DType::bf16, 4, 16},
    {DType::b1, 6, 8},      {DType::f8e4m3fn, 10, 8},   {DType::f8e4m3fnuz, 11, 8},
    {DType::f8e5m2, 12, 8}, {DType::f8e5m2fnuz, 13, 8}, {DType::f8e8m0, 14, 8},
};
constexpr std::string_view names_of_codes[] = {"int",
                                               "uint",
                                               "float",
                                               "an opaque handle",
                                               "bfloat",
                                               "complex",
                                               "bool",
                                               "float8_e3m4",
                                               "float8_e4m3",
                                               "float8_e4m3b11fnuz",
                                               "float8_e4m3fn",
                                               "float8_e4m3fnuz",
                                               "float8_e5m2",
                                               "float8_e5m2fnuz",
                                               "float8_e8m0fnu",
                                               "float6_e2m3fn",
                                               "float6_e3m2fn",
                                               "float4_e2m1fn"};

std::string name_of(ElementType t) {
  const std::string name = t.code < std::size(names_of_codes) ? std::string(names_of_codes[t.code])
                                                              : cat("code ", int{t.code});
  return cat(name, " of ", int{t.bits}, " bits",
             t.lanes == 1 ? "" : cat(" in vectors of ", t.lanes));
}

DType dtype_of(ElementType t) {
  for (const Code& c : codes)
    if (c.code == t.code && c.bits == t.bits && t.lanes == 1) return c.dtype;
  throw UserError(
      "dlpack: elements are ", name_of(t), t.bits < 8 ? ", which packs several in a byte" : "",
      "; expected bool, int or uint of 8 to 64 bits, float of 16 to 64 bits, bfloat or a "
      "float8 that has a dtype here; convert them");
}

ElementType element_of(DType t) {
  for (const Code& c : codes)
    if (c.dtype == t) return {c.code, c.bits, 1};
  throw UserError("dlpack: has no elements like those of dtype ", t, ", which take a byte each",
                  "; cast them to u8 or to a float");
}

// Where the tensor lies. An executable's device is meant by its memory, whoever opened it.
struct Located {
  std::shared_ptr<hone::Device> device;  // null: the host
  DeviceMemory at;
};
Located located(const Executable& e, const Device& d, void* data) {
  if (d.type == dl_cpu || d.type == dl_cuda_host || (!data && d.type != dl_cuda)) return {};
  if (d.type == dl_cuda || d.type == dl_cuda_managed)
    for (const std::shared_ptr<hone::Device>& device : e.devices()) {
      if (device->shares_host_memory()) continue;
      if (const auto at = device->of_address({data, d.type, d.ordinal})) return {device, *at};
    }
  if (d.type == dl_cuda_managed || (d.type == dl_cuda && !data)) return {};
  std::string used;
  for (const auto& device : e.devices())
    used += cat(used.empty() ? "'" : ", '", device->name(), "'");
  const std::string where =
      d.type == dl_cuda ? cat("GPU ", d.ordinal) : cat("a device of kind ", d.type);
  throw UserError("dlpack: the tensor is in the memory of ", where, ", but this plan uses ", used,
                  "; copy it to the host or to a device of the plan");
}

// Gives the object back to its producer.
template <class M>
struct Owner {
  M* managed = nullptr;  // none: not taken over yet
  ~Owner() {
    if (managed && managed->deleter) managed->deleter(managed);
  }
};

template <class M>
DeviceTensor taken_over(const Executable& e, M* m, bool is_read_only) {
  const Tensor& t = m->tensor;
  if (t.rank < 0 || t.rank > most_axes)
    throw UserError("dlpack: the tensor has ", t.rank, " axes, expected 0 to ", most_axes);
  if (t.rank > 0 && !t.dims) throw UserError("dlpack: the tensor has axes, but its shape is null");
  const auto rank = static_cast<std::size_t>(t.rank);
  const std::span<const std::int64_t> dims(t.dims, rank);
  TensorRef ref{dtype_of(t.element), dims};
  if (t.strides) ref.strides = {t.strides, rank};
  const std::size_t bytes = dense_bytes({"dlpack: the tensor"}, ref.dtype, dims);
  void* data = bytes > 0 ? static_cast<std::byte*>(t.data) + t.byte_offset : nullptr;
  if (bytes > 0 && !t.data)
    throw UserError("dlpack: the tensor's memory is null, expected ", bytes, " bytes");
  const Located where = located(e, t.device, data);
  ref.device = where.device.get();
  ref.at = where.at;
  const OperandReach reach =
      reach_of(ref.dtype, dims, is_dense(dims, ref.strides) ? Strides() : ref.strides);
  if (!ref.device)
    ref.memory = {static_cast<std::byte*>(data), static_cast<std::size_t>(reach.end)};
  const auto owner = std::make_shared<Owner<M>>();
  DeviceTensor out(ref, {owner, where.device, is_read_only});
  owner->managed = m;  // from here on, nothing fails
  return out;
}

// What a given object refers to.
template <class M>
struct Given {
  M managed{};
  DeviceTensor tensor;
  std::vector<std::int64_t> dims, strides;
};

template <class M>
M* given_as(const DeviceTensor& t) {
  Tensor out;
  out.element = element_of(t.dtype());
  out.rank = static_cast<std::int32_t>(t.dims().size());
  const TensorRef ref = t.ref();
  out.data = ref.memory.data();
  if (t.device()) {
    const std::optional<RawMemory> raw = t.device()->address_of(ref.at);
    if (!raw)
      throw UserError("dlpack: memory of device '", t.device()->name(),
                      "' has no address that other libraries can use; copy it to the host");
    out.data = raw->address;
    out.device = {raw->device_type, raw->ordinal};
  }
  auto made = std::make_unique<Given<M>>(Given<M>{{}, t, t.dims(), t.strides()});
  if (made->strides.empty()) {
    made->strides.resize(made->dims.size());
    std::int64_t dense = 1;
    for (std::size_t i = made->dims.size(); i-- > 0;) {
      made->strides[i] = dense;
      dense *= made->dims[i] > 0 ? made->dims[i] : 1;
    }
  }
  out.dims = made->dims.data();
  out.strides = made->strides.data();
  made->managed.tensor = out;
  made->managed.context = made.get();
  made->managed.deleter = [](M* m) { delete static_cast<Given<M>*>(m->context); };
  return &made.release()->managed;
}

}  // namespace

DeviceTensor taken(const Executable& e, VersionedManaged* m) {
  if (m->major != our_major)
    throw UserError("dlpack: the tensor is of version ", m->major, ".", m->minor, ", expected ",
                    our_major, ".x; ask its library for that version");
  return taken_over(e, m, (m->flags & read_only) != 0);
}
DeviceTensor taken(const Executable& e, Managed* m) { return taken_over(e, m, false); }

VersionedManaged* given(const DeviceTensor& t) {
  VersionedManaged* out = given_as<VersionedManaged>(t);
  out->major = our_major;
  out->minor = our_minor;
  out->flags = t.is_read_only() ? read_only : 0;
  return out;
}

Managed* given_unversioned(const DeviceTensor& t) {
  if (t.is_read_only())
    throw UserError(
        "dlpack: the tensor is read-only, which the unversioned form cannot say; ask for "
        "the versioned one or copy it");
  return given_as<Managed>(t);
}

}  // namespace hone::dlpack
