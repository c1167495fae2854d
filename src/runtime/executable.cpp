#include "runtime/executable.h"

#include <algorithm>
#include <functional>
#include <set>

#include "base/error.h"
#include "plan/check.h"
#include "plan/entry.h"
#include "plan/footprint.h"
#include "plan/plan_file.h"
#include "plan/plan_text.h"
#include "plan/prepared.h"
#include "runtime/libraries.h"
#include "runtime/resident.h"
#include "runtime/sizes.h"

namespace hone {

namespace {

std::size_t static_bytes(const Type& t) {
  if (auto n = byte_count(t).as_number(); n && *n >= 0) return static_cast<std::size_t>(*n);
  throw UserError("plan: a prepared buffer of type ", t, " depends on a size; compile it again");
}

bool all_are_prepared(const Plan& plan, const LoadedEntry& e) {
  return std::ranges::all_of(
      e.variants, [&](std::uint32_t v) { return is_prepared(plan, e.plan->variants[v]); });
}

// Indices in `all` of the variant's devices; empty when one has no match.
std::vector<std::uint32_t> matched(const Variant& v, const Executable::Devices& all) {
  std::vector<std::uint32_t> out;
  for (const PlanDevice& wanted : v.devices) {
    int best = -1;
    std::uint32_t found = 0;
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      if (std::ranges::count(out, i) > 0) continue;
      if (!wanted.name.empty() && wanted.name != all[i]->name()) continue;
      if (const int rank = all[i]->rank(wanted.target); rank > best) {
        best = rank;
        found = i;
      }
    }
    if (best < 0) return {};
    out.push_back(found);
  }
  return out;
}

std::string descriptions(const Executable::Devices& all) {
  std::string out;
  for (const auto& d : all) out += cat(out.empty() ? "" : ", ", d->description());
  return out;
}

// The first device that runs all entries: states are in the memory of one device. All devices if
// there is none; the refusal then names what is missing.
Executable::Devices device_of_states(const Plan& plan, const Executable::Devices& all) {
  for (const std::shared_ptr<Device>& d : all) {
    const auto runs = [&](const PlanEntry& e) {
      return std::ranges::any_of(e.variants,
                                 [&](const Variant& v) { return !matched(v, {d}).empty(); });
    };
    if (std::ranges::all_of(plan.entries, runs)) return {d};
  }
  return all;
}

}  // namespace

std::shared_ptr<const Executable> Executable::load(std::shared_ptr<const Plan> plan,
                                                   Devices devices, Purpose purpose) {
  std::shared_ptr<Executable> e(new Executable);
  e->plan_ = std::move(plan);
  e->purpose_ = purpose;
  check(*e->plan_, e->plan_->name.empty() ? "plan" : e->plan_->name);
  if (!e->plan_->states.empty()) devices = device_of_states(*e->plan_, devices);
  e->choose_variants(devices);
  e->take_devices(devices);
  e->place_streams();
  e->load_programs();
  e->place_constants();
  e->measure();
  return e;
}

std::shared_ptr<const Executable> Executable::load(std::shared_ptr<const Plan> plan,
                                                   std::shared_ptr<Device> device,
                                                   Purpose purpose) {
  return load(std::move(plan), Devices{std::move(device)}, purpose);
}

std::shared_ptr<const Executable> Executable::open(const std::filesystem::path& path,
                                                   std::shared_ptr<Device> device) {
  return load(std::make_shared<const Plan>(read_plan(path)), std::move(device));
}

const LoadedEntry& Executable::entry(std::string_view name) const {
  return entries_[static_cast<std::size_t>(&entry_named(*plan_, name) - plan_->entries.data())];
}

const LoadedEntry& Executable::entry_of(const Variant& v) const {
  const auto is_its = [&](const LoadedEntry& e) {
    const std::vector<Variant>& all = e.plan->variants;
    return std::less_equal<>()(all.data(), &v) && std::less<>()(&v, all.data() + all.size());
  };
  const auto at = std::ranges::find_if(entries_, is_its);
  HONE_ASSERT(at != entries_.end(), "the variant is one of the plan's");
  return *at;
}

void Executable::choose_variants(const Devices& all) {
  for (const PlanEntry& e : plan_->entries) {
    LoadedEntry& loaded = entries_.emplace_back();
    loaded.plan = &e;
    loaded.symbols = all_symbols(e);
    for (const Variant& v : e.variants) loaded.places.push_back(matched(v, all));
    if (purpose_ == Purpose::run)
      choose_for_run(loaded, all);
    else
      choose_for_prepare(loaded);
  }
}

void Executable::choose_for_run(LoadedEntry& e, const Devices& devices) const {
  const auto& all = e.plan->variants;
  for (std::uint32_t i = 0; i < all.size(); ++i)
    if (!e.places[i].empty()) e.variants.push_back(i);
  const auto first_device = [&](std::size_t i) -> Device& { return *devices[e.places[i][0]]; };
  leave_out_without_library(
      plan_->name, all, e.variants, [&](const Variant& v, std::string_view library) {
        return first_device(static_cast<std::size_t>(&v - all.data())).why_missing(library);
      });
  const auto rank = [&](std::uint32_t i) { return first_device(i).rank(all[i].devices[0].target); };
  std::sort(e.variants.begin(), e.variants.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(-rank(a), a) < std::pair(-rank(b), b);
  });
  if (e.variants.empty()) {
    std::set<std::string> targets;
    for (const Variant& v : all) targets.insert(targets_text(v));
    std::string names;
    for (const std::string& t : targets) names += cat(names.empty() ? "" : ", ", t);
    throw UserError(plan_->name, ": is compiled for ", names, ", but this machine runs ",
                    descriptions(devices), "; compile the plan again for it");
  }
  if (!all_are_prepared(*plan_, e))
    throw UserError(plan_->name, ": its compiler had no device to prepare weights for ",
                    descriptions(devices), "; load it with load_plan(), which does");
  for (std::size_t i = 0; i < e.variants.size(); ++i)
    std::erase_if(e.variants, [&](std::uint32_t& other) {
      return &other > &e.variants[i] && all[e.variants[i]].guards == all[other].guards;
    });
}

void Executable::choose_for_prepare(LoadedEntry& e) const {
  for (std::uint32_t i = 0; i < e.plan->variants.size(); ++i)
    if (!e.places[i].empty() && !is_prepared(*plan_, e.plan->variants[i])) e.variants.push_back(i);
}

// Keeps the devices that variants use.
void Executable::take_devices(const Devices& all) {
  std::vector<std::int64_t> kept(all.size(), -1);
  for (const LoadedEntry& e : entries_)
    for (std::uint32_t v : e.variants)
      for (std::uint32_t d : e.places[v]) kept[d] = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (kept[i] < 0) continue;
    kept[i] = static_cast<std::int64_t>(devices_.size());
    devices_.push_back(all[i]);
  }
  for (LoadedEntry& e : entries_)
    for (std::vector<std::uint32_t>& of_variant : e.places)
      for (std::uint32_t& d : of_variant)
        d = static_cast<std::uint32_t>(std::max(kept[d], std::int64_t{0}));
}

void Executable::place_streams() {
  std::vector<std::uint16_t> count(devices_.size(), 1);
  for_each_variant([&](const Variant& v) {
    for (std::size_t d = 0; d < v.devices.size(); ++d) {
      std::uint16_t& most = count[device_of(v, d)];
      most = std::max(most, v.devices[d].streams);
    }
  });
  for (std::uint32_t d = 0; d < devices_.size(); ++d) {
    first_stream_.push_back(stream_devices_.size());
    stream_devices_.insert(stream_devices_.end(), count[d], d);
  }
}

// Loads one program per device from the binaries whose kernels its steps launch.
void Executable::load_programs() {
  std::vector<std::set<std::uint32_t>> kernels(devices_.size());
  for_each_variant([&](const Variant& v) {
    for_each_step(steps(v), [&](const Step& s) {
      if (s.kind == Step::Kind::launch) kernels[device_of(v, s.device)].insert(s.index);
    });
  });
  kernels_.assign(devices_.size(), std::vector<KernelHandle>(plan_->kernels.size()));
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    if (kernels[d].empty()) continue;
    std::set<std::uint32_t> used;
    for (std::uint32_t k : kernels[d]) used.insert(plan_->kernels[k].binary);
    std::vector<const Binary*> binaries;
    for (std::uint32_t b : used) binaries.push_back(&plan_->binaries[b]);
    const LoadedCode& program = *programs_.emplace_back(devices_[d]->load(binaries, plan_->name));
    for (std::uint32_t k : kernels[d]) kernels_[d][k] = program.entry(plan_->kernels[k].entry);
  }
}

DeviceBytes Executable::on_device(std::uint32_t device, std::span<const std::byte> bytes) {
  if (const auto at = devices_[device]->of_host(bytes.data())) return {*at, bytes.size()};
  const OwnedMemory& copy = copies_.emplace_back(devices_[device], bytes.size());
  uploads_.push_back({device, copy.at(), bytes});
  return {copy.at(), copy.size()};
}

// Uses one stream per device: opening a stream may take milliseconds.
void Executable::upload() {
  for (std::uint32_t d = 0; d < devices_.size(); ++d) {
    std::unique_ptr<Stream> stream;
    for (const Upload& u : uploads_) {
      if (u.device != d) continue;
      if (!stream) stream = devices_[d]->open_stream();
      stream->upload(u.to, u.from);
    }
    if (stream) stream->synchronize();
  }
  uploads_ = {};
}

void Executable::place_constants() {
  weights_.assign(devices_.size(), std::vector<DeviceBytes>(plan_->weights.size()));
  prepared_.assign(devices_.size(), std::vector<DeviceBytes>(plan_->prepared.size()));
  made_.resize(plan_->prepared.size());
  for_each_variant([&](const Variant& v) {
    for_each_step(steps(v), [&](const Step& s) {
      for (std::size_t i = 0; i < s.operands.size(); ++i)
        place_constant(v, v.buffers[s.operands[i].buffer], s.written[i]);
    });
  });
  upload();
}

void Executable::place_constant(const Variant& v, const PlanBuffer& b, bool is_written) {
  const bool is_weight = b.kind == PlanBuffer::Kind::weight;
  if (!is_weight && b.kind != PlanBuffer::Kind::prepared) return;
  const std::uint32_t device = device_of(v, b.device);
  DeviceBytes& place = (is_weight ? weights_ : prepared_)[device][b.index];
  if (place.at || place.size > 0) return;
  if (is_written) {
    place = make_prepared(device, b.index);
    return;
  }
  if (is_weight) {
    place = on_device(device, plan_->weights[b.index].data.bytes());
    return;
  }
  const PreparedBuffer& prepared = plan_->prepared[b.index];
  if (const auto* resident = dynamic_cast<const DeviceResident*>(prepared.resident.get());
      resident && resident->device() == devices_[device]) {
    residents_.push_back(prepared.resident);
    place = {resident->at(), resident->size()};
    return;
  }
  const Storage& content = contents_.emplace_back(prepared.content());
  place = on_device(device, content.bytes());
}

void Executable::measure() {
  std::set<const std::byte*> counted;
  const auto add = [&](std::span<const std::byte> bytes, std::size_t& to) {
    if (counted.insert(bytes.data()).second) to += bytes.size();
  };
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    for (std::size_t i = 0; i < weights_[d].size(); ++i)
      if (weights_[d][i].size > 0) add(plan_->weights[i].data.bytes(), memory_.weights);
    for (std::size_t i = 0; i < prepared_[d].size(); ++i)
      if (prepared_[d][i].size > 0 && !made_[i].memory)
        add(plan_->prepared[i].data.bytes(), memory_.prepared);
  }
  const std::size_t read = memory_.weights + memory_.prepared;
  const PlanReading& reading = plan_->reading;
  memory_.file = reading.mapped > read ? reading.mapped - read : 0;
  for (const OwnedMemory& copy : copies_) memory_.weights += copy.size();
  for (const auto& resident : residents_) memory_.prepared += resident->size();
  memory_.plan = heap_bytes(*plan_);
  memory_.reading = reading.transient;
  for (const std::unique_ptr<LoadedCode>& p : programs_) memory_.code += p->bytes();
}

DeviceBytes Executable::make_prepared(std::uint32_t device, std::uint32_t i) {
  if (purpose_ != Purpose::prepare)
    throw UserError(plan_->name, ": a run writes to prepared weights; compile the plan again");
  made_[i] = {
      std::make_shared<OwnedMemory>(devices_[device], static_bytes(plan_->prepared[i].type)),
      device};
  return {made_[i].memory->at(), made_[i].memory->size()};
}

}  // namespace hone
