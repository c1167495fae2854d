#include "runtime/executable.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "plan/check.h"
#include "plan/footprint.h"
#include "plan/plan_file.h"
#include "runtime/bound.h"

namespace hone {

namespace {

bool have_equal_guards(const Variant& a, const Variant& b) {
  return std::equal(
      a.guards.begin(), a.guards.end(), b.guards.begin(), b.guards.end(),
      [](const Guard& x, const Guard& y) { return x.kind == y.kind && x.a == y.a && x.b == y.b; });
}

// Whether every prepared buffer that the variant's prepare steps write has data.
bool is_prepared(const Plan& plan, const Variant& v) {
  bool has_all = true;
  for_each_step(v.prepare, [&](const Step& s) {
    for (std::size_t i = 0; i < s.operands.size(); ++i) {
      const PlanBuffer& b = v.buffers[s.operands[i].buffer];
      if (s.written[i] && b.kind == PlanBuffer::Kind::prepared)
        has_all &= plan.prepared[b.index].data.size() > 0;
    }
  });
  return has_all;
}

std::size_t static_bytes(const Type& t) {
  if (auto n = byte_count(t).as_number(); n && *n >= 0) return static_cast<std::size_t>(*n);
  throw UserError("plan: a prepared buffer of type ", t, " depends on a size; compile it again");
}

}  // namespace

std::shared_ptr<const Executable> Executable::load(std::shared_ptr<const Plan> plan,
                                                   std::shared_ptr<Device> device,
                                                   Purpose purpose) {
  std::shared_ptr<Executable> e(new Executable);
  e->plan_ = std::move(plan);
  e->device_ = std::move(device);
  e->purpose_ = purpose;
  check(*e->plan_, e->plan_->name.empty() ? "plan" : e->plan_->name);
  e->choose_variants();
  e->symbols_ = all_symbols(*e->plan_);
  e->load_programs();
  e->place_constants();
  e->measure();
  return e;
}

std::shared_ptr<const Executable> Executable::open(const std::filesystem::path& path,
                                                   std::shared_ptr<Device> device) {
  return load(std::make_shared<const Plan>(read_plan(path)), std::move(device));
}

void Executable::choose_variants() {
  if (purpose_ == Purpose::run)
    choose_for_run();
  else
    choose_for_prepare();
}

void Executable::choose_for_run() {
  const auto& all = plan_->variants;
  for (std::uint32_t i = 0; i < all.size(); ++i)
    if (device_->rank(all[i].target) >= 0) variants_.push_back(i);
  std::sort(variants_.begin(), variants_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(-device_->rank(all[a].target), a) <
           std::pair(-device_->rank(all[b].target), b);
  });
  if (variants_.empty()) {
    std::set<std::string_view> targets;
    for (const Variant& v : all) targets.insert(v.target);
    std::string names;
    for (std::string_view t : targets) names += (names.empty() ? "" : ", ") + std::string(t);
    throw UserError(plan_->name, ": is compiled for ", names, ", but this machine runs ",
                    device_->description(), "; compile the plan again for it");
  }
  for (std::size_t i = 0; i < variants_.size(); ++i)
    std::erase_if(variants_, [&](std::uint32_t& other) {
      return &other > &variants_[i] && have_equal_guards(all[variants_[i]], all[other]);
    });
}

void Executable::choose_for_prepare() {
  for (std::uint32_t i = 0; i < plan_->variants.size(); ++i) {
    const Variant& v = plan_->variants[i];
    if (is_prepared(*plan_, v)) continue;
    if (device_->rank(v.target) < 0)
      throw UserError(plan_->name, ": weights cannot be prepared for ", v.target,
                      " here, because this machine runs ", device_->description(),
                      "; compile on a machine that has the target");
    variants_.push_back(i);
  }
}

void Executable::load_programs() {
  entries_.resize(plan_->kernels.size());
  programs_.resize(plan_->binaries.size());
  for (std::uint32_t v : variants_)
    for_each_step(steps(plan_->variants[v]), [&](const Step& s) {
      if (s.kind != Step::Kind::launch) return;
      const PlanKernel& kernel = plan_->kernels[s.index];
      std::unique_ptr<Program>& program = programs_[kernel.binary];
      if (!program)
        program = device_->load(std::span(&plan_->binaries[kernel.binary], 1), plan_->name);
      entries_[s.index] = program->entry(kernel.entry);
    });
}

std::span<const std::byte> Executable::aligned(std::span<const std::byte> bytes) {
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % buffer_alignment == 0) return bytes;
  const OwnedMemory& copy = copies_.emplace_back(device_, bytes.size());
  device_->upload(copy.data(), bytes);
  return {copy.data(), copy.size()};
}

void Executable::place_constants() {
  weights_.resize(plan_->weights.size());
  prepared_.resize(plan_->prepared.size());
  made_.resize(plan_->prepared.size());
  std::set<const std::byte*> counted;
  auto use = [&](const PlanBuffer& b, bool is_written) {
    const bool is_weight = b.kind == PlanBuffer::Kind::weight;
    if (!is_weight && b.kind != PlanBuffer::Kind::prepared) return;
    std::span<const std::byte>& place = is_weight ? weights_[b.index] : prepared_[b.index];
    if (!place.empty()) return;
    if (is_written) {
      place = make_prepared(b.index);
      return;
    }
    const std::span<const std::byte> bytes =
        is_weight ? plan_->weights[b.index].data.bytes() : plan_->prepared[b.index].data.bytes();
    place = aligned(bytes);
    if (counted.insert(bytes.data()).second)
      (is_weight ? memory_.weights : memory_.prepared) += bytes.size();
  };
  for (std::uint32_t v : variants_)
    for_each_step(steps(plan_->variants[v]), [&](const Step& s) {
      for (std::size_t i = 0; i < s.operands.size(); ++i)
        use(plan_->variants[v].buffers[s.operands[i].buffer], s.written[i]);
    });
}

void Executable::measure() {
  const std::size_t read = memory_.weights + memory_.prepared;
  const PlanReading& reading = plan_->reading;
  memory_.file = reading.mapped > read ? reading.mapped - read : 0;
  for (const OwnedMemory& copy : copies_) memory_.weights += copy.size();
  memory_.plan = heap_bytes(*plan_);
  memory_.reading = reading.transient;
  for (const std::unique_ptr<Program>& p : programs_) memory_.code += p ? p->bytes() : 0;
}

std::span<const std::byte> Executable::make_prepared(std::uint32_t i) {
  if (purpose_ != Purpose::prepare)
    throw UserError(plan_->name, ": a run writes to prepared weights; compile the plan again");
  made_[i] = std::make_shared<OwnedMemory>(device_, static_bytes(plan_->prepared[i].type));
  return {made_[i]->data(), made_[i]->size()};
}

}  // namespace hone
