#include "runtime/ports.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/checked.h"
#include "base/error.h"
#include "runtime/rows.h"

namespace hone {

namespace {

// Size in bytes of a tensor of the caller.
std::size_t tensor_bytes(std::string_view what, std::string_view name, const TensorRef& t) {
  std::int64_t bytes = byte_size(t.dtype);
  for (std::int64_t d : t.dims) {
    if (d < 0) throw UserError(what, " '", name, "' has size ", d, ", expected 0 or more");
    bytes = checked_mul(bytes, d);
  }
  return static_cast<std::size_t>(bytes);
}

// The caller handles memory that may be omitted.
void check_memory(std::string_view what, std::string_view name, const TensorRef& t,
                  std::size_t bytes) {
  if (t.memory.size() != bytes)
    throw UserError(what, " '", name, "' has ", t.memory.size(),
                    " bytes of memory, expected exactly ", bytes, " for ",
                    dims_text(t.dtype, t.dims));
  if (!t.memory.data() && bytes > 0)
    throw UserError(what, " '", name, "': the memory is null, expected ", bytes, " bytes");
}

// The first axis where the type has a number and the size differs.
std::optional<std::size_t> different_axis(const Type& type, std::span<const std::int64_t> dims) {
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const Dim& d = type.shape.dims[i];
    if (d.is_number() && d.number() != dims[i]) return i;
  }
  return std::nullopt;
}

}  // namespace

std::string dims_text(DType dtype, std::span<const std::int64_t> dims) {
  return cat(dtype, Shape(Dims(dims.begin(), dims.end())));
}

TensorRef as_input(const Array& a) {
  const std::span<const std::byte> bytes = a.bytes();
  return {a.dtype(), a.dims(), {const_cast<std::byte*>(bytes.data()), bytes.size()}};
}

Ports::Ports(const Executable& executable, const PlanEntry& entry, bool states_are_inputs)
    : executable_(executable),
      entry_(entry),
      states_are_inputs_(states_are_inputs),
      inputs_(entry.params.size()),
      outputs_(entry.results.size()),
      output_types_(entry.results.size()),
      places_(executable.devices().size() * size()) {
  for (std::uint32_t i = 0; i < inputs_.size(); ++i) {
    inputs_[i].dims.reserve(static_cast<std::size_t>(entry_.params[i].type.rank()));
    if (states_are_inputs || entry_.is_input(i)) given_inputs_.push_back(i);
  }
  for (std::uint32_t i = 0; i < outputs_.size(); ++i) {
    output_types_[i] = &entry_.results[i].type;
    for (const Variant& v : entry_.variants)
      if (!v.measured.empty() || !(v.results[i] == entry_.results[i].type))
        output_types_[i] = nullptr;
    if (is_given(i)) given_outputs_.push_back(i);
  }
}

bool Ports::is_given(std::size_t output) const {
  return states_are_inputs_ || entry_.updated_by(output) == PlanEntry::no_state;
}

bool Ports::bind_input(std::size_t number, const TensorRef& t) {
  if (number >= given_inputs_.size())
    throw UserError("session: input ", number, " does not exist; the plan has ",
                    given_inputs_.size(), " inputs, numbered from 0");
  const std::size_t i = given_inputs_[number];
  const std::string& name = entry_.params[i].name;
  Port& port = inputs_[i];
  if (t.dtype != entry_.params[i].type.dtype)
    throw UserError("input '", name, "' is ", dims_text(t.dtype, t.dims), ", expected ",
                    entry_.params[i].type, "; convert its elements");
  const bool is_same = port.is_bound && std::ranges::equal(port.dims, t.dims);
  if (!is_same) check_dims(i, t.dims);
  const std::size_t bytes = is_same ? port.bytes : tensor_bytes("input", name, t);
  check_memory("input", name, t, bytes);
  if (!is_same) {
    port.bytes = bytes;
    port.room = static_cast<std::size_t>(Rows(t.dtype, t.dims, entry_.params[i].capacity).extent());
    port.dims.assign(t.dims.begin(), t.dims.end());
  }
  set_data(port, i, t);
  for (std::size_t place = i; place < places_.size(); place += size())
    places_[place].is_stale = true;
  return !is_same;
}

bool Ports::bind_state(std::size_t param, DeviceMemory memory, std::span<const std::int64_t> dims) {
  Port& port = inputs_[param];
  places_[param].direct = memory;
  if (port.is_bound && std::ranges::equal(port.dims, dims)) return false;
  check_open_size(param, dims);
  port.is_bound = true;
  port.dims.assign(dims.begin(), dims.end());
  return true;
}

void Ports::check_open_size(std::size_t param, std::span<const std::int64_t> dims) const {
  const PlanParam& p = entry_.params[param];
  if (!p.capacity) return;
  const Dim& d = p.type.shape.dims[p.capacity->axis];
  if (const std::int64_t n = dims[p.capacity->axis]; n < d.low() || n > d.high())
    throw UserError("state '", p.name, "' holds ", n, " along axis ", p.capacity->axis,
                    ", but entry '", entry_.name, "' takes ", d.low(), " to ", d.high(),
                    "; write, shorten or reset it, or compile the model for other sizes");
}

// Sizes of several inputs are compared when all are bound.
void Ports::check_dims(std::size_t input, std::span<const std::int64_t> dims) const {
  const PlanParam& p = entry_.params[input];
  if (static_cast<int>(dims.size()) != p.type.rank())
    throw UserError("input '", p.name, "' is ", dims_text(p.type.dtype, dims), ", expected ",
                    p.type, "; reshape it");
  if (const auto axis = different_axis(p.type, dims))
    throw UserError("input '", p.name, "': axis ", *axis, " is ", dims[*axis], ", expected ",
                    p.type.shape.dims[*axis], " for ", p.type);
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    const Dim& d = p.type.shape.dims[axis];
    if (d.is_symbol() && (dims[axis] < d.low() || dims[axis] > d.high()))
      throw UserError("input '", p.name, "': axis ", axis, " (", d, ") is ", dims[axis],
                      ", expected ", d.low(), " to ", d.high(),
                      "; compile the model for a range that includes it, as with --dim ", d.name(),
                      "=", std::min(dims[axis], d.low()), "..", std::max(dims[axis], d.high()));
  }
}

void Ports::bind_output(std::size_t number, const TensorRef& t) {
  if (number >= given_outputs_.size())
    throw UserError("session: output ", number, " does not exist; the plan has ",
                    given_outputs_.size(), " outputs, numbered from 0");
  const std::size_t i = given_outputs_[number];
  const PlanParam& p = entry_.results[i];
  if (t.dtype != p.type.dtype)
    throw UserError("output '", p.name, "' is ", t.dtype, ", expected ", p.type,
                    "; give memory of that type");
  Port& port = outputs_[i];
  const bool is_same = port.is_bound && std::ranges::equal(port.dims, t.dims);
  if (!is_same) check_dims_of_output(i, t.dims);
  const std::size_t bytes = is_same ? port.bytes : tensor_bytes("output", p.name, t);
  const bool may_be_absent = entry_.shares_memory(i) && t.memory.empty();
  if (!may_be_absent) check_memory("output", p.name, t, bytes);
  if (!is_same) {
    port.bytes = port.room = bytes;
    port.dims.assign(t.dims.begin(), t.dims.end());
    are_outputs_checked_ = false;
  }
  set_data(port, inputs_.size() + i, t);
}

void Ports::check_dims_of_output(std::size_t output, std::span<const std::int64_t> dims) const {
  const Type* type = output_types_[output];
  if (!type) return;  // known when the inputs are bound: check_outputs()
  const bool has_rank = static_cast<int>(dims.size()) == type->rank();
  if (!has_rank || different_axis(*type, dims))
    throw UserError("output '", entry_.results[output].name, "' is ", dims_text(type->dtype, dims),
                    ", expected ", *type, "; give memory of that shape");
}

const Port& Ports::port_of(std::size_t place) const {
  const std::size_t i = place % size();
  return i < inputs_.size() ? inputs_[i] : outputs_[i - inputs_.size()];
}

const std::optional<Capacity>& Ports::capacity_of(std::size_t place) const {
  static const std::optional<Capacity> none;
  return is_input(place) ? entry_.params[place % size()].capacity : none;
}

const std::string& Ports::name_of(std::size_t place) const {
  const std::size_t i = place % size();
  return i < inputs_.size() ? entry_.params[i].name : entry_.results[i - inputs_.size()].name;
}

std::size_t Ports::place_of(std::size_t device, PlanBuffer::Kind kind, std::uint32_t index) const {
  if (kind == PlanBuffer::Kind::param) return device * size() + index;
  const std::int32_t alias = entry_.result_alias[index];
  return device * size() + (alias < 0 ? inputs_.size() + index : static_cast<std::size_t>(alias));
}

void Ports::set_data(Port& port, std::size_t number, const TensorRef& t) {
  std::byte* given = t.memory.data();
  if (port.is_bound && port.given == given) return;
  port.given = port.data = given;
  port.is_bound = true;
  are_outputs_checked_ = false;
  for (std::size_t d = 0; d < executable_.devices().size(); ++d) {
    PortPlace& place = places_[d * size() + number];
    const bool has_room = capacity_of(d * size() + number).has_value();
    const std::optional<DeviceMemory> direct =
        has_room ? std::nullopt : executable_.device(d)->of_host(given);
    place.is_staged = !direct;
    place.direct = direct.value_or(DeviceMemory());
  }
}

void Ports::check_outputs(const std::vector<OutputNeed>& needs) {
  if (are_outputs_checked_) return;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (!is_given(i)) continue;
    const PlanParam& p = entry_.results[i];
    const Port& port = outputs_[i];
    if (!port.is_bound)
      throw UserError("session: output '", p.name, "' is not bound; bind it before the run");
    if (needs[i].is_open && port.bytes < needs[i].bytes)
      throw UserError("output '", p.name, "' has ", port.bytes, " bytes of memory, expected ",
                      needs[i].bytes, ", the most that it may need; its size depends on data");
    if (!needs[i].is_open && port.dims != needs[i].dims)
      throw UserError("output '", p.name, "' is ", dims_text(p.type.dtype, port.dims),
                      ", expected ", dims_text(p.type.dtype, needs[i].dims), " for these inputs");
    check_donated(needs[i], i);
  }
  check_overlaps();
  are_outputs_checked_ = true;
}

// An output that overwrites a parameter has that parameter's memory.
void Ports::check_donated(const OutputNeed& need, std::size_t i) {
  const std::int32_t param = entry_.result_alias[i];
  if (!entry_.shares_memory(i)) return;
  Port& output = outputs_[i];
  const Port& input = inputs_[static_cast<std::size_t>(param)];
  const std::string& name = entry_.results[i].name;
  const std::string& of = entry_.params[static_cast<std::size_t>(param)].name;
  if (output.given && output.given != input.data)
    throw UserError("output '", name, "' overwrites the donated input '", of,
                    "', but has different memory; give the input's address or null");
  if (need.place != OutputNeed::none && places_[need.place].is_staged) {
    const Device& device = *executable_.device(device_of(need.place));
    if (device.shares_host_memory())
      throw UserError("input '", of, "' is donated to output '", name,
                      "', so its address must be a multiple of ", device.limits().alignment);
  }
  output.data = input.data;
}

// Outputs in the order of their memory: disjoint when each ends before the next begins. Inputs may
// share memory with one another. States are not in the caller's memory.
void Ports::check_overlaps() {
  const auto end = [](const Port& p) { return p.data + p.bytes; };
  std::vector<std::size_t>& order = by_place_;
  order.clear();
  for (std::size_t i = 0; i < outputs_.size(); ++i)
    if (outputs_[i].bytes > 0 && outputs_[i].data) order.push_back(i);
  std::ranges::sort(order, std::less(), [&](std::size_t i) { return outputs_[i].data; });
  for (std::size_t k = 1; k < order.size(); ++k) {
    const auto [first, second] = std::minmax(order[k - 1], order[k]);
    if (outputs_[order[k]].data < end(outputs_[order[k - 1]]))
      throw UserError("output '", entry_.results[second].name, "' shares memory with output '",
                      entry_.results[first].name, "'; give each its own memory");
  }
  for (std::size_t j = 0; j < inputs_.size(); ++j) {
    const Port& input = inputs_[j];
    if (input.bytes == 0 || !input.data) continue;
    auto at = std::ranges::upper_bound(order, input.data, std::less(),
                                       [&](std::size_t i) { return end(outputs_[i]); });
    for (; at != order.end() && outputs_[*at].data < end(input); ++at)
      if (!entry_.shares_memory(*at) || entry_.result_alias[*at] != static_cast<std::int32_t>(j))
        throw UserError("output '", entry_.results[*at].name, "' shares memory with input '",
                        entry_.params[j].name, "'; only a donated input may be overwritten");
  }
}

void Ports::check_contents() const {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const PlanParam& p = entry_.params[i];
    if (!p.required || p.required->bytes().empty() || !inputs_[i].data) continue;
    if (std::memcmp(inputs_[i].data, p.required->bytes().data(), inputs_[i].bytes) != 0)
      throw UserError("input '", p.name,
                      "' has other values than those that the plan was compiled for; compile the "
                      "model for these");
  }
}

}  // namespace hone
