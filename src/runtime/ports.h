// The caller's memory for the inputs and outputs of a session, and what the devices use for it:
// that memory in place, or a copy. Does not know steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/executable.h"
#include "runtime/tensor_ref.h"

namespace hone {

// A byte of the caller's memory: the host's, or a device's that the host does not share.
struct PortMemory {
  static constexpr std::uint32_t host = ~std::uint32_t{0};
  std::uint32_t device = host;   // of the executable's
  std::byte* address = nullptr;  // in the host's memory
  DeviceMemory at = {};          // in the device's

  bool is_on_host() const { return device == host; }
  explicit operator bool() const { return address || at; }
  bool operator==(const PortMemory&) const = default;
};

// A caller's tensor for one input or output.
struct Port {
  bool is_bound = false;
  PortMemory given;   // by the caller: its element of index 0
  PortMemory memory;  // the same, or that of the donated input that it stands for
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> strides;  // in elements; empty: dense
  std::size_t bytes = 0;              // of all elements
  // A device keeps it in memory of the session with room for more: `room` bytes.
  std::optional<Capacity> capacity = {};
  std::size_t room = 0;  // at least `bytes`
  OperandReach reach;    // of the memory, from the element of index 0
};

// How a device gets at a port's elements.
enum class Way : std::uint8_t {
  in_place,
  transfer,         // dense memory of the host, copied to or from the device
  on_device,        // the device copies within its memory
  host_strides,     // the host copies between strided and dense memory, then as `transfer`
  between_devices,  // through the host
};

// What a device uses for a port.
struct PortPlace {
  Way way = Way::in_place;
  DeviceMemory direct;    // in_place
  OwnedMemory staging;    // else: a copy, dense within the room for it
  bool is_stale = true;   // the input's copy is outdated: the input was bound, or the copy freed
  bool is_ready = false;  // what follows is made
  DeviceMemory given;     // on_device, between_devices: the port's memory
  // Of a port with strides: from its memory, and to it. On the device that holds it, or on the
  // host.
  std::unique_ptr<BoundCall> gather, scatter;
  StridedCopy host_gather, host_scatter;
  OwnedMemory dense;            // between_devices with strides: on the port's device
  std::vector<std::byte> host;  // host_strides, between_devices: dense

  bool is_staged() const { return way != Way::in_place; }
  // Runs wait for the host to copy.
  bool needs_host() const { return way == Way::host_strides || way == Way::between_devices; }
  DeviceMemory at() const { return is_staged() ? staging.at() : direct; }
  std::size_t bytes() const { return staging.size() + dense.size() + host.size(); }
};

// The memory that a run with known sizes writes for one output.
struct OutputNeed {
  std::vector<std::int64_t> dims;
  std::size_t bytes = 0;
  bool is_open = false;  // has a data-dependent size; `bytes` is the upper bound
  // The place that it is written to; none: no step writes it.
  std::size_t place = none;
  static constexpr std::size_t none = ~std::size_t{0};
};

class Ports {
 public:
  // A parameter that is a state is an input only if `states_are_inputs`; else it needs
  // bind_state().
  Ports(const Executable&, const PlanEntry&, bool states_are_inputs);

  // Of the caller's inputs and outputs, in the entry's order: their numbers among all parameters
  // and results. The numbers that bind_input() and bind_output() take are places in these lists.
  const std::vector<std::uint32_t>& given_inputs() const { return given_inputs_; }
  const std::vector<std::uint32_t>& given_outputs() const { return given_outputs_; }
  // Throw UserError and keep the previous binding when the dtype, the rank, a size that the plan
  // fixes, the strides or the length of the memory is wrong, or when the memory is on a device that
  // the executable does not use. True when the sizes changed.
  bool bind_input(std::size_t i, const TensorRef&);
  void bind_output(std::size_t i, const TensorRef&);
  // Memory on the executable's first device for a parameter that is a state, whose value has these
  // sizes now. True when they changed.
  bool bind_state(std::size_t param, DeviceMemory, std::span<const std::int64_t> dims);
  // Of all parameters, and of all results.
  const std::vector<Port>& inputs() const { return inputs_; }
  const std::vector<Port>& outputs() const { return outputs_; }

  // Places are numbered by device; on each device all inputs come first, then all outputs.
  std::size_t size() const { return inputs_.size() + outputs_.size(); }
  std::size_t device_of(std::size_t place) const { return place / size(); }
  bool is_input(std::size_t place) const { return place % size() < inputs_.size(); }
  const Port& port_of(std::size_t place) const;
  const std::string& name_of(std::size_t place) const;
  DType dtype_of(std::size_t place) const;
  // Whether a run writes it: an output, or a donated input.
  bool is_written(std::size_t place) const;
  // A result that overwrites a parameter has the parameter's place.
  std::size_t place_of(std::size_t device, PlanBuffer::Kind, std::uint32_t index) const;
  std::vector<PortPlace>& places() { return places_; }
  const std::vector<PortPlace>& places() const { return places_; }
  bool needs_staging(std::size_t place) const {
    const PortPlace& p = places_[place];
    return p.is_staged() && (!p.is_ready || p.staging.size() < port_of(place).room);
  }
  // Of a place when it has what it needs, on all devices and the host.
  std::size_t staged_bytes(std::size_t place) const;

  // Throws UserError unless every output is bound to memory that fits what a run writes and does
  // not overlap other outputs. Checks again only after a change.
  void check_outputs(const std::vector<OutputNeed>&);
  void check_outputs_again() { are_outputs_checked_ = false; }
  // Throws UserError when the plan requires certain contents of an input and it holds others.
  void check_contents() const;

 private:
  void check_dims(std::size_t input, std::span<const std::int64_t>) const;
  void check_dims_of_output(std::size_t output, std::span<const std::int64_t>) const;
  bool is_given(std::size_t output) const;
  void check_open_size(std::size_t param, std::span<const std::int64_t> dims) const;
  PortMemory located(const TensorName& what, const TensorRef&) const;
  // Sets the layout and the memory of a port; all checks are done.
  void set(Port&, std::size_t number, const TensorRef&, const PortMemory&, std::size_t bytes,
           bool has_same_layout);
  void set_way(PortPlace&, const Port&, std::size_t device) const;
  void check_donated(const OutputNeed&, std::size_t output);
  void check_overlaps();

  const Executable& executable_;
  const PlanEntry& entry_;
  const bool states_are_inputs_;
  std::vector<std::uint32_t> given_inputs_, given_outputs_;
  std::vector<Port> inputs_, outputs_;
  std::vector<const Type*> output_types_;  // null: variants differ, or a size is data-dependent
  std::vector<PortPlace> places_;
  // Bytes [begin, end) of one allocation, or of all memory that has addresses.
  struct Range {
    std::uint32_t device;
    std::uint64_t handle;
    std::int64_t begin, end;
    std::size_t port;
  };
  Range range_of(const Port&, std::size_t number) const;
  std::vector<Range> by_place_;  // of outputs with memory, sorted; kept between runs
  bool are_outputs_checked_ = false;
};

}  // namespace hone
