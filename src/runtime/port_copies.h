// Copies between the caller's tensors and what devices use instead where they cannot use those in
// place. Knows streams, not steps.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "runtime/execute.h"
#include "runtime/ports.h"

namespace hone {

class PortCopies {
 public:
  // Allocates for the place; `what` names the memory in errors.
  using Take = std::function<OwnedMemory(const std::string& what, std::size_t device, std::size_t)>;

  // All outlive it. Work is given to the first stream of each device.
  PortCopies(const Executable&, Ports&, StreamSet&, RunCounters&);

  // Makes what copies of the place need. No work may use it.
  void prepare(std::size_t place, const Take&);
  // Copy an input to the device, or `bytes` of an output to the caller. What needs the host is done
  // when they return; other work may be unfinished.
  void upload(std::size_t place);
  void download(std::size_t place, const Port&, std::size_t bytes);
  bool needs_host(std::span<const std::size_t> places) const;

 private:
  Stream& stream(std::size_t device) { return streams_[executable_.first_stream(device)]; }
  // Where the host reads or writes the elements of a place densely.
  std::span<std::byte> host_side(std::size_t place, std::size_t bytes);
  void move(std::size_t device, const BoundCall*, DeviceMemory to, DeviceMemory from, std::size_t);

  const Executable& executable_;
  Ports& ports_;
  StreamSet& streams_;
  RunCounters& counters_;
};

}  // namespace hone
