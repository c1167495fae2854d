#include "runtime/prepare.h"

#include <algorithm>

#include "base/error.h"
#include "runtime/bound.h"
#include "runtime/execute.h"
#include "runtime/resident.h"

namespace hone {

namespace {

DeviceMemory prepare_address(const BoundAddress& a, const Executable& e,
                             const std::vector<OwnedMemory>& arenas) {
  switch (a.kind) {
    case PlanBuffer::Kind::weight:
      return e.weight(a.device, a.index).at + a.offset;
    case PlanBuffer::Kind::prepared:
      return e.prepared(a.device, a.index).at + a.offset;
    case PlanBuffer::Kind::arena:
      return arenas[a.device].at() + a.offset;
    case PlanBuffer::Kind::param:
    case PlanBuffer::Kind::result:
      break;
  }
  throw UserError("plan: a prepare step reads an input; compile the plan again");
}

void prepare_variant(const Executable& e, const Variant& v, StreamSet& streams) {
  // Prepared data does not depend on sizes, but arena offsets may: any sizes will do.
  std::vector<std::int64_t> sizes;
  for (const Dim& symbol : e.entry_of(v).symbols) sizes.push_back(symbol.low());
  BoundProgram program = bind_steps(e, v, sizes);
  std::vector<OwnedMemory> arenas;
  for (std::size_t d = 0; d < e.devices().size(); ++d)
    arenas.emplace_back(e.device(d), program.needs[d].arena_bytes);
  streams.reserve_scratch(program);
  StepRunner runner(e, streams);
  runner.run(v, program, {[&](const BoundAddress& a) { return prepare_address(a, e, arenas); }});
}

// Data that the host can read in place becomes the plan's own; the rest stays on its device.
void keep(PreparedBuffer& to, const Executable::Made& made, const std::shared_ptr<Device>& device) {
  if (device->shares_host_memory())
    to.data = Storage(made.memory, {device->host_address(made.memory->at()), made.memory->size()});
  else
    to.resident = std::make_shared<DeviceResident>(device, made.memory);
}

}  // namespace

void run_prepare(Plan& plan, const Executable::Devices& devices,
                 const std::shared_ptr<ThreadPool>& pool) {
  for (std::size_t i = 0; i < devices.size(); ++i) pack_constants(plan, *devices[i]);
  const auto unowned = std::shared_ptr<const Plan>(std::shared_ptr<void>(), &plan);
  const auto executable = Executable::load(unowned, devices, Executable::Purpose::prepare);
  StreamSet streams(*executable, pool);
  for (const LoadedEntry& e : executable->entries())
    for (std::uint32_t v : e.variants) prepare_variant(*executable, e.plan->variants[v], streams);
  for (std::uint32_t i = 0; i < plan.prepared.size(); ++i)
    if (const Executable::Made& made = executable->made(i); made.memory)
      keep(plan.prepared[i], made, executable->device(made.device));
}

void run_prepare(Plan& plan, const std::shared_ptr<Device>& device,
                 const std::shared_ptr<ThreadPool>& pool) {
  run_prepare(plan, Executable::Devices{device}, pool);
}

std::shared_ptr<const Executable> load_plan(std::shared_ptr<const Plan> plan,
                                            const Executable::Devices& devices) {
  const bool has_all = std::ranges::all_of(plan->prepared, [](const PreparedBuffer& b) {
    const auto bytes = byte_count(b.type).as_number();
    return b.size() > 0 || (bytes && *bytes == 0);
  });
  if (!has_all) {
    auto prepared = std::make_shared<Plan>(*plan);
    run_prepare(*prepared, devices, make_thread_pool({}));
    plan = std::move(prepared);
  }
  return Executable::load(std::move(plan), devices);
}

}  // namespace hone
