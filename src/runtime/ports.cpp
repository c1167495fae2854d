#include "runtime/ports.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "runtime/rows.h"

namespace hone {

namespace {

// The caller handles memory that may be omitted.
void check_memory(const TensorName& what, const TensorRef& t, std::size_t bytes,
                  const OperandReach& reach) {
  if (t.device) {
    if (!t.at && bytes > 0)
      throw UserError(what.text(), ": the memory on device '", t.device->name(),
                      "' is null, expected ", bytes, " bytes");
    return;
  }
  const bool is_dense = t.strides.empty();
  const std::size_t expected = is_dense ? bytes : static_cast<std::size_t>(reach.end);
  if (is_dense ? t.memory.size() != expected : t.memory.size() < expected)
    throw UserError(what.text(), " has ", t.memory.size(), " bytes of memory, expected ",
                    is_dense ? "exactly " : "at least ", expected, " for ",
                    dims_text(t.dtype, t.dims));
  if (!t.memory.data() && bytes > 0)
    throw UserError(what.text(), ": the memory is null, expected ", bytes, " bytes");
}

// Without strides, and with `bytes` of memory, if the strides are those of dense memory.
TensorRef simplified(const TensorName& what, TensorRef t, std::size_t bytes) {
  if (!t.strides.empty() && t.strides.size() != t.dims.size())
    throw UserError(what.text(), " has ", t.strides.size(), " strides, expected ", t.dims.size(),
                    ", one per axis, or none");
  if (t.strides.empty() || !is_dense(t.dims, t.strides)) return t;
  t.strides = {};
  if (t.memory.size() > bytes) t.memory = t.memory.first(bytes);
  return t;
}

void check_apart(const TensorName& what, const TensorRef& t) {
  if (!are_elements_apart(t.dims, t.strides))
    throw UserError(what.text(), " is ", dims_text(t.dtype, t.dims), " with strides ",
                    Shape(Dims(t.strides.begin(), t.strides.end())),
                    ", in which elements share memory; each element that is written needs its own");
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
    inputs_[i].capacity = entry_.params[i].capacity;
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
  const TensorName what{"input", name};
  if (t.dtype != entry_.params[i].type.dtype)
    throw UserError(what.text(), " is ", dims_text(t.dtype, t.dims), ", expected ",
                    entry_.params[i].type, "; convert its elements");
  const bool has_same_dims = port.is_bound && std::ranges::equal(port.dims, t.dims);
  if (!has_same_dims) check_dims(i, t.dims);
  const std::size_t bytes = has_same_dims ? port.bytes : dense_bytes(what, t.dtype, t.dims);
  const TensorRef given = simplified(what, t, bytes);
  const bool has_same_layout = has_same_dims && std::ranges::equal(port.strides, given.strides);
  if (!has_same_layout && entry_.params[i].donated) check_apart(what, given);
  check_memory(what, given, bytes,
               has_same_layout ? port.reach : reach_of(t.dtype, t.dims, given.strides));
  const PortMemory memory = located(what, given);
  if (entry_.params[i].required && (!memory.is_on_host() || !given.strides.empty()))
    throw UserError(what.text(),
                    ": the plan was compiled for certain values, which the host compares; give "
                    "dense memory of the host");
  if (port.capacity && (!memory.is_on_host() || !given.strides.empty()))
    throw UserError(what.text(),
                    ": the session keeps it in memory of its own, with room for more; give dense "
                    "memory of the host, or make it a state");
  set(port, i, given, memory, bytes, has_same_layout);
  for (std::size_t place = i; place < places_.size(); place += size())
    places_[place].is_stale = true;
  return !has_same_dims;
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
  const TensorName what{"output", p.name};
  if (t.dtype != p.type.dtype)
    throw UserError(what.text(), " is ", t.dtype, ", expected ", p.type,
                    "; give memory of that type");
  Port& port = outputs_[i];
  const bool has_same_dims = port.is_bound && std::ranges::equal(port.dims, t.dims);
  if (!has_same_dims) check_dims_of_output(i, t.dims);
  const std::size_t bytes = has_same_dims ? port.bytes : dense_bytes(what, t.dtype, t.dims);
  const TensorRef given = simplified(what, t, bytes);
  const bool has_same_layout = has_same_dims && std::ranges::equal(port.strides, given.strides);
  if (!has_same_layout) check_apart(what, given);
  const bool may_be_absent = entry_.shares_memory(i) && !t.device && t.memory.empty();
  if (!may_be_absent)
    check_memory(what, given, bytes,
                 has_same_layout ? port.reach : reach_of(t.dtype, t.dims, given.strides));
  set(port, inputs_.size() + i, given, located(what, given), bytes, has_same_layout);
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

const std::string& Ports::name_of(std::size_t place) const {
  const std::size_t i = place % size();
  return i < inputs_.size() ? entry_.params[i].name : entry_.results[i - inputs_.size()].name;
}

DType Ports::dtype_of(std::size_t place) const {
  const std::size_t i = place % size();
  return is_input(place) ? entry_.params[i].type.dtype
                         : entry_.results[i - inputs_.size()].type.dtype;
}

bool Ports::is_written(std::size_t place) const {
  return !is_input(place) || entry_.params[place % size()].donated;
}

std::size_t Ports::place_of(std::size_t device, PlanBuffer::Kind kind, std::uint32_t index) const {
  if (kind == PlanBuffer::Kind::param) return device * size() + index;
  const std::int32_t alias = entry_.result_alias[index];
  return device * size() + (alias < 0 ? inputs_.size() + index : static_cast<std::size_t>(alias));
}

PortMemory Ports::located(const TensorName& what, const TensorRef& t) const {
  const auto& devices = executable_.devices();
  if (!t.device) {
    // An address in a device's memory may be given as the host's.
    for (std::uint32_t d = 0; !t.strides.empty() && d < devices.size(); ++d)
      if (!devices[d]->shares_host_memory())
        if (const auto at = devices[d]->of_address({t.memory.data()})) return {d, nullptr, *at};
    return {PortMemory::host, t.memory.data(), {}};
  }
  if (t.device->shares_host_memory())
    return {PortMemory::host, t.at ? t.device->host_address(t.at) : nullptr, {}};
  for (std::uint32_t d = 0; d < devices.size(); ++d)
    if (devices[d]->shares_memory_with(*t.device)) {
      if (!t.strides.empty() && devices[d]->comparable(t.at).offset % byte_size(t.dtype) != 0)
        throw UserError(what.text(), " has strides and begins within an element of ", t.dtype,
                        "; begin it at a multiple of ", byte_size(t.dtype), " bytes");
      return {d, nullptr, t.at};
    }
  std::string used;
  for (const auto& d : devices) used += cat(used.empty() ? "'" : ", '", d->name(), "'");
  throw UserError(
      what.text(), " is in the memory of ",
      std::ranges::count(devices, t.device->name(), &Device::name) > 0 ? "another " : "",
      "device '", t.device->name(), "', but this plan uses ", used,
      "; copy it to the host or to a tensor of this plan");
}

void Ports::set(Port& port, std::size_t number, const TensorRef& t, const PortMemory& memory,
                std::size_t bytes, bool has_same_layout) {
  if (has_same_layout && port.given == memory) return;
  const bool had_strides = !port.strides.empty();
  if (!has_same_layout) {
    port.bytes = bytes;
    port.room = static_cast<std::size_t>(Rows(t.dtype, t.dims, port.capacity).extent());
    port.dims.assign(t.dims.begin(), t.dims.end());
    port.strides.assign(t.strides.begin(), t.strides.end());
    port.reach = reach_of(t.dtype, port.dims, port.strides);
  }
  port.given = port.memory = memory;
  port.is_bound = true;
  are_outputs_checked_ = false;
  for (std::size_t d = 0; d < executable_.devices().size(); ++d) {
    PortPlace& place = places_[d * size() + number];
    const Way before = place.way;
    const bool needed_host = place.needs_host();
    set_way(place, port, d);
    // Copies of dense memory within a device, or from and to the host, need the staging alone.
    const bool needs_more =
        had_strides || !port.strides.empty() || needed_host || place.needs_host();
    if (needs_more && (place.way != before || !has_same_layout)) place.is_ready = false;
  }
}

void Ports::set_way(PortPlace& place, const Port& port, std::size_t d) const {
  const Device& device = *executable_.device(d);
  const PortMemory& m = port.memory;
  const bool is_dense = port.strides.empty();
  place.direct = place.given = {};
  place.way = Way::transfer;
  if (port.capacity) return;
  if (m.is_on_host()) {
    const std::optional<DeviceMemory> direct = is_dense ? device.of_host(m.address) : std::nullopt;
    const std::optional<DeviceMemory> here =
        device.shares_host_memory() ? device.of_address({m.address}) : std::nullopt;
    if (direct) place.direct = *direct;
    if (here) place.given = *here;
    place.way = direct     ? Way::in_place
                : here     ? Way::on_device
                : is_dense ? Way::transfer
                           : Way::host_strides;
    return;
  }
  place.given = m.at;
  const bool is_here = device.shares_memory_with(*executable_.device(m.device));
  const auto alignment = static_cast<std::int64_t>(device.limits().alignment);
  const bool is_aligned = device.comparable(m.at).offset % alignment == 0;
  if (is_here && is_dense && is_aligned) place.direct = m.at;
  place.way = !is_here                 ? Way::between_devices
              : is_dense && is_aligned ? Way::in_place
                                       : Way::on_device;
}

std::size_t Ports::staged_bytes(std::size_t i) const {
  const PortPlace& p = places_[i];
  if (!needs_staging(i)) return p.bytes();
  const std::size_t bytes = port_of(i).bytes;
  const bool has_dense = p.way == Way::between_devices && !port_of(i).strides.empty();
  return std::max(p.staging.size(), port_of(i).room) + (has_dense ? bytes : 0) +
         (p.needs_host() ? bytes : 0);
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
    if (needs[i].is_open && !port.strides.empty())
      throw UserError("output '", p.name,
                      "' has strides, but its size depends on data: it is written densely; give "
                      "memory without strides");
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
  if (output.given && (!(output.given == input.memory) || output.strides != input.strides))
    throw UserError("output '", name, "' overwrites the donated input '", of,
                    "', but has different memory; give the input's address or null");
  if (need.place != OutputNeed::none && places_[need.place].is_staged()) {
    const Device& device = *executable_.device(device_of(need.place));
    if (device.shares_host_memory() && input.memory.is_on_host())
      throw UserError("input '", of, "' is donated to output '", name,
                      "', so its memory must be dense and its address must be a multiple of ",
                      device.limits().alignment);
  }
  output.memory = input.memory;
  output.strides = input.strides;
  output.reach = input.reach;
}

Ports::Range Ports::range_of(const Port& p, std::size_t number) const {
  if (p.memory.is_on_host()) {
    const auto at = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(p.memory.address));
    return {PortMemory::host, 0, at + p.reach.begin, at + p.reach.end, number};
  }
  const DeviceMemory m = executable_.device(p.memory.device)->comparable(p.memory.at);
  return {p.memory.device, m.handle, m.offset + p.reach.begin, m.offset + p.reach.end, number};
}

// Outputs in the order of their memory: disjoint when each ends before the next begins. Inputs may
// share memory with one another. States are not in the caller's memory.
void Ports::check_overlaps() {
  const auto space = [](const Range& r) { return std::pair(r.device, r.handle); };
  const auto begin = [&](const Range& r) { return std::tuple(r.device, r.handle, r.begin); };
  const auto end = [&](const Range& r) { return std::tuple(r.device, r.handle, r.end); };
  std::vector<Range>& order = by_place_;
  order.clear();
  for (std::size_t i = 0; i < outputs_.size(); ++i)
    if (outputs_[i].bytes > 0 && outputs_[i].memory) order.push_back(range_of(outputs_[i], i));
  std::ranges::sort(order, std::less(), begin);
  for (std::size_t k = 1; k < order.size(); ++k) {
    const auto [first, second] = std::minmax(order[k - 1].port, order[k].port);
    if (space(order[k]) == space(order[k - 1]) && order[k].begin < order[k - 1].end)
      throw UserError("output '", entry_.results[second].name, "' shares memory with output '",
                      entry_.results[first].name, "'; give each its own memory");
  }
  for (std::size_t j = 0; j < inputs_.size(); ++j) {
    if (inputs_[j].bytes == 0 || !inputs_[j].memory) continue;
    const Range input = range_of(inputs_[j], j);
    auto at = std::ranges::upper_bound(order, begin(input), std::less(), end);
    for (; at != order.end() && space(*at) == space(input) && at->begin < input.end; ++at)
      if (!entry_.shares_memory(at->port) ||
          entry_.result_alias[at->port] != static_cast<std::int32_t>(j))
        throw UserError("output '", entry_.results[at->port].name, "' shares memory with input '",
                        entry_.params[j].name, "'; only a donated input may be overwritten");
  }
}

void Ports::check_contents() const {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const PlanParam& p = entry_.params[i];
    if (!p.required || p.required->bytes().empty() || !inputs_[i].memory) continue;
    if (std::memcmp(inputs_[i].memory.address, p.required->bytes().data(), inputs_[i].bytes) != 0)
      throw UserError("input '", p.name,
                      "' has other values than those that the plan was compiled for; compile the "
                      "model for these");
  }
}

}  // namespace hone
