#include "runtime/device_tensor.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/error.h"

namespace hone {

namespace {

// Work on the device's memory, finished when it returns.
template <class F>
void on_stream(Device& device, const F& f) {
  const std::unique_ptr<Stream> stream = device.open_stream();
  f(*stream);
  stream->synchronize();
}

}  // namespace

DeviceTensor::DeviceTensor(std::shared_ptr<Device> device, DType dtype,
                           std::span<const std::int64_t> dims, Start start)
    : it_(std::make_shared<Data>()) {
  it_->dtype = dtype;
  it_->dims.assign(dims.begin(), dims.end());
  it_->bytes = dense_bytes({"tensor"}, dtype, dims);
  // Kernels may be given the address of a tensor without elements.
  it_->memory = OwnedMemory(device, std::max(it_->bytes, device->limits().alignment));
  it_->at = it_->memory.at();
  if (start == Start::zeros)
    on_stream(*device, [&](Stream& s) { s.fill(it_->at, std::byte{0}, it_->memory.size()); });
  it_->given.device = std::move(device);
}

DeviceTensor::DeviceTensor(const TensorRef& t, Given given) : it_(std::make_shared<Data>()) {
  if (!t.strides.empty() && t.strides.size() != t.dims.size())
    throw UserError("tensor has ", t.strides.size(), " strides, expected ", t.dims.size(),
                    ", one per axis, or none");
  it_->dtype = t.dtype;
  it_->dims.assign(t.dims.begin(), t.dims.end());
  it_->bytes = dense_bytes({"tensor"}, t.dtype, t.dims);
  if (!is_dense(t.dims, t.strides)) it_->strides.assign(t.strides.begin(), t.strides.end());
  const OperandReach reach = reach_of(t.dtype, it_->dims, it_->strides);
  if (!given.device && !t.memory.data() && it_->bytes > 0)
    throw UserError("tensor: the memory is null, expected ", it_->bytes, " bytes");
  if (!given.device && t.memory.size() < static_cast<std::size_t>(reach.end))
    throw UserError("tensor has ", t.memory.size(), " bytes of memory, expected ", reach.end,
                    " for ", dims_text(t.dtype, t.dims));
  it_->host = t.memory.first(given.device ? 0 : static_cast<std::size_t>(reach.end));
  it_->at = t.at;
  it_->given = std::move(given);
}

TensorRef DeviceTensor::ref() const {
  return {it_->dtype, it_->dims, it_->host, it_->strides, it_->given.device.get(), it_->at};
}

void DeviceTensor::read(std::span<std::byte> to) const {
  const Data& d = *it_;
  if (to.size() != d.bytes)
    throw UserError("tensor ", dims_text(d.dtype, d.dims), " has ", d.bytes,
                    " bytes, but the memory has ", to.size());
  if (d.bytes == 0) return;
  const StridedCopy gather = gathering(d.dtype, d.dims, d.strides);
  if (!d.given.device) return copy_on_host(gather, to.data(), d.host.data());
  if (d.given.device->shares_host_memory())
    return copy_on_host(gather, to.data(), d.given.device->host_address(d.at));
  OwnedMemory dense;
  std::unique_ptr<BoundCall> copy;
  on_stream(*d.given.device, [&](Stream& s) {
    DeviceMemory from = d.at;
    if (!d.strides.empty()) {
      dense = OwnedMemory(d.given.device, d.bytes);
      copy = d.given.device->bind(gather);
      const DeviceMemory operands[] = {from, dense.at()};
      s.call(*copy, operands, false);
      from = dense.at();
    }
    s.download(to, from);
  });
}

void DeviceTensor::write(std::span<const std::byte> from) {
  Data& d = *it_;
  if (d.given.is_read_only)
    throw UserError("tensor ", dims_text(d.dtype, d.dims), " is read-only; copy it to write it");
  if (from.size() != d.bytes)
    throw UserError("tensor ", dims_text(d.dtype, d.dims), " has ", d.bytes,
                    " bytes, but the memory has ", from.size());
  if (d.bytes == 0) return;
  const StridedCopy scatter = scattering(d.dtype, d.dims, d.strides);
  if (!d.given.device) return copy_on_host(scatter, d.host.data(), from.data());
  if (d.given.device->shares_host_memory())
    return copy_on_host(scatter, d.given.device->host_address(d.at), from.data());
  OwnedMemory dense;
  std::unique_ptr<BoundCall> copy;
  on_stream(*d.given.device, [&](Stream& s) {
    if (d.strides.empty()) return s.upload(d.at, from);
    dense = OwnedMemory(d.given.device, d.bytes);
    copy = d.given.device->bind(scatter);
    s.upload(dense.at(), from);
    const DeviceMemory operands[] = {dense.at(), d.at};
    s.call(*copy, operands, false);
  });
}

}  // namespace hone
