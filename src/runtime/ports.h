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
#include "type/array.h"

namespace hone {

// A dense row-major tensor in the host's memory; the number of bytes must match dtype and dims.
// Owns nothing: `dims` must stay valid during the call, `memory` during every run.
struct TensorRef {
  DType dtype = DType::f32;
  std::span<const std::int64_t> dims;
  std::span<std::byte> memory;
};

// The array as an input. Runs write to it only if the plan's parameter is donated.
TensorRef as_input(const Array&);
// Memory of `count` elements at `data`.
template <class T>
std::span<std::byte> memory_of(T* data, std::size_t count) {
  return std::as_writable_bytes(std::span<T>(data, count));
}

// A caller's buffer for one input or output.
struct Port {
  bool is_bound = false;
  std::byte* given = nullptr;  // by the caller
  std::byte* data = nullptr;   // the same, or the donated input that it stands for
  std::vector<std::int64_t> dims;
  std::size_t bytes = 0;
  std::size_t room = 0;  // bytes of a device's memory for it: more than `bytes` with a capacity
};

// What a device uses for a port.
struct PortPlace {
  DeviceMemory direct;  // none: copied
  OwnedMemory staging;
  bool is_staged = false;
  bool is_stale = true;  // the input's copy is outdated: the input was bound, or the copy freed
  DeviceMemory at() const { return is_staged ? staging.at() : direct; }
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
  // fixes or the length of the memory is wrong. True when the sizes changed.
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
  // A result that overwrites a parameter has the parameter's place.
  std::size_t place_of(std::size_t device, PlanBuffer::Kind, std::uint32_t index) const;
  std::vector<PortPlace>& places() { return places_; }
  const std::vector<PortPlace>& places() const { return places_; }
  bool needs_staging(std::size_t place) const {
    return places_[place].is_staged && places_[place].staging.size() < port_of(place).room;
  }
  // How the value of a place lies in a device's memory.
  const std::optional<Capacity>& capacity_of(std::size_t place) const;

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
  void set_data(Port&, std::size_t number, const TensorRef&);
  void check_donated(const OutputNeed&, std::size_t output);
  void check_overlaps();

  const Executable& executable_;
  const PlanEntry& entry_;
  const bool states_are_inputs_;
  std::vector<std::uint32_t> given_inputs_, given_outputs_;
  std::vector<Port> inputs_, outputs_;
  std::vector<const Type*> output_types_;  // null: variants differ, or a size is data-dependent
  std::vector<PortPlace> places_;
  std::vector<std::size_t> by_place_;  // outputs with memory, sorted by address; kept between runs
  bool are_outputs_checked_ = false;
};

// "f32[2,3]"
std::string dims_text(DType, std::span<const std::int64_t> dims);

}  // namespace hone
