#include "runtime/port_copies.h"

#include <algorithm>

#include "base/error.h"
#include "runtime/rows.h"

namespace hone {

PortCopies::PortCopies(const Executable& executable, Ports& ports, StreamSet& streams,
                       RunCounters& counters)
    : executable_(executable), ports_(ports), streams_(streams), counters_(counters) {}

void PortCopies::prepare(std::size_t i, const Take& take) {
  PortPlace& place = ports_.places()[i];
  const Port& port = ports_.port_of(i);
  const std::size_t device = ports_.device_of(i);
  const bool is_between = place.way == Way::between_devices;
  place.is_stale = true;
  if (!place.is_ready) {
    place.gather = nullptr;
    place.scatter = nullptr;
    place.dense = {};
    place.host = {};
  }
  if (place.staging.size() < port.room) {
    place.staging = {};  // free before allocating
    place.staging = take(cat("a copy of '", ports_.name_of(i), "'"), device, port.room);
  }
  if (place.is_ready) return;
  const DType dtype = ports_.dtype_of(i);
  const std::size_t at = is_between ? port.memory.device : device;
  if (!port.strides.empty() && (is_between || place.way == Way::on_device)) {
    Device& holder = *executable_.device(at);
    if (ports_.is_input(i)) place.gather = holder.bind(gathering(dtype, port.dims, port.strides));
    if (ports_.is_written(i))
      place.scatter = holder.bind(scattering(dtype, port.dims, port.strides));
  }
  if (place.way == Way::host_strides) {
    place.host_gather = gathering(dtype, port.dims, port.strides);
    place.host_scatter = scattering(dtype, port.dims, port.strides);
  }
  if (is_between && !port.strides.empty())
    place.dense = take(cat("elements of '", ports_.name_of(i), "'"), at, port.bytes);
  if (place.needs_host() && !executable_.device(device)->shares_host_memory())
    place.host.resize(port.bytes);
  place.is_ready = true;
}

std::span<std::byte> PortCopies::host_side(std::size_t i, std::size_t bytes) {
  PortPlace& place = ports_.places()[i];
  const Device& device = *executable_.device(ports_.device_of(i));
  std::byte* at =
      device.shares_host_memory() ? device.host_address(place.staging.at()) : place.host.data();
  return {at, bytes};
}

// Within a device: by the call, or if there is none, of dense memory.
void PortCopies::move(std::size_t device, const BoundCall* call, DeviceMemory to, DeviceMemory from,
                      std::size_t bytes) {
  if (bytes == 0) return;
  if (!call) return stream(device).copy(to, from, bytes);
  const DeviceMemory operands[] = {from, to};
  stream(device).call(*call, operands, false);
}

void PortCopies::upload(std::size_t i) {
  PortPlace& place = ports_.places()[i];
  const Port& port = ports_.port_of(i);
  const std::size_t device = ports_.device_of(i), bytes = port.bytes;
  const bool is_hosts = executable_.device(device)->shares_host_memory();
  place.is_stale = false;
  ++counters_.staged_copies;
  const auto send = [&](std::span<const std::byte> from) {
    hone::upload(stream(device), place.staging.at(), from,
                 Rows(ports_.dtype_of(i), port.dims, port.capacity));
    if (!is_hosts) counters_.uploaded_bytes += static_cast<std::int64_t>(bytes);
  };
  switch (place.way) {
    case Way::in_place:
      break;
    case Way::transfer:
      send({port.memory.address, bytes});
      break;
    case Way::on_device:
      move(device, place.gather.get(), place.staging.at(), place.given, bytes);
      break;
    case Way::host_strides: {
      const std::span<std::byte> dense = host_side(i, bytes);
      copy_on_host(place.host_gather, dense.data(), port.memory.address);
      if (!is_hosts) send(dense);
      break;
    }
    case Way::between_devices: {
      const std::size_t other = port.memory.device;
      DeviceMemory from = place.given;
      if (place.gather) {
        move(other, place.gather.get(), place.dense.at(), from, bytes);
        from = place.dense.at();
      }
      const std::span<std::byte> dense = host_side(i, bytes);
      stream(other).download(dense, from);
      counters_.downloaded_bytes += static_cast<std::int64_t>(bytes);
      stream(other).synchronize();
      if (!is_hosts) send(dense);
      break;
    }
  }
}

void PortCopies::download(std::size_t i, const Port& port, std::size_t bytes) {
  PortPlace& place = ports_.places()[i];
  const std::size_t device = ports_.device_of(i);
  const bool is_hosts = executable_.device(device)->shares_host_memory();
  ++counters_.staged_copies;
  // Of a result with an open size, less than its port.
  const auto fetch = [&](std::span<std::byte> to) {
    const std::optional<Capacity>& capacity = ports_.port_of(i).capacity;
    if (capacity)
      hone::download(stream(device), to, place.staging.at(),
                     Rows(ports_.dtype_of(i), port.dims, capacity));
    else
      stream(device).download(to, place.staging.at());
    if (!is_hosts) counters_.downloaded_bytes += static_cast<std::int64_t>(bytes);
  };
  switch (place.way) {
    case Way::in_place:
      break;
    case Way::transfer:
      fetch({port.memory.address, bytes});
      break;
    case Way::on_device:
      move(device, place.scatter.get(), place.given, place.staging.at(), bytes);
      break;
    case Way::host_strides: {
      const std::span<std::byte> dense = host_side(i, bytes);
      if (!is_hosts) fetch(dense);
      stream(device).synchronize();
      copy_on_host(place.host_scatter, port.memory.address, dense.data());
      break;
    }
    case Way::between_devices: {
      const std::size_t other = port.memory.device;
      const std::span<std::byte> dense = host_side(i, bytes);
      if (!is_hosts) fetch(dense);
      stream(device).synchronize();
      stream(other).upload(place.scatter ? place.dense.at() : place.given, dense);
      counters_.uploaded_bytes += static_cast<std::int64_t>(bytes);
      if (place.scatter) move(other, place.scatter.get(), place.given, place.dense.at(), bytes);
      stream(other).synchronize();
      break;
    }
  }
}

bool PortCopies::needs_host(std::span<const std::size_t> places) const {
  return std::ranges::any_of(places,
                             [&](std::size_t i) { return ports_.places()[i].needs_host(); });
}

}  // namespace hone
