#include "runtime/prepare.h"

#include <algorithm>

#include "base/error.h"
#include "runtime/bound.h"
#include "runtime/execute.h"

namespace hone {

namespace {

std::byte* prepare_address(const BoundAddress& a, const Executable& e, std::byte* arena) {
  switch (a.kind) {
    case PlanBuffer::Kind::weight:
      return const_cast<std::byte*>(e.weight(a.index).data()) + a.offset;
    case PlanBuffer::Kind::prepared:
      return const_cast<std::byte*>(e.prepared(a.index).data()) + a.offset;
    case PlanBuffer::Kind::arena:
      return arena + a.offset;
    case PlanBuffer::Kind::param:
    case PlanBuffer::Kind::result:
      break;
  }
  throw UserError("plan: a prepare step reads an input; compile the plan again");
}

void prepare_variant(const Executable& e, const Variant& v, Stream& stream) {
  // Nothing that is prepared depends on a size, but where it lies in the arena may: any will do.
  std::vector<std::int64_t> sizes;
  for (const Dim& symbol : e.symbols()) sizes.push_back(symbol.low());
  BoundProgram program = bind_steps(e, v, sizes);
  const OwnedMemory arena(e.device(), program.arena_bytes);
  stream.reserve_scratch(std::max(program.kernel_scratch, program.library_scratch));
  StepRunner runner(stream);
  runner.run(e, v, program,
             {[&](const BoundAddress& a) { return prepare_address(a, e, arena.data()); }});
}

}  // namespace

void run_prepare(Plan& plan, const std::shared_ptr<Device>& device,
                 const std::shared_ptr<ThreadPool>& pool) {
  pack_constants(plan, *device);
  const auto unowned = std::shared_ptr<const Plan>(std::shared_ptr<void>(), &plan);
  const auto executable = Executable::load(unowned, device, Executable::Purpose::prepare);
  const auto stream = device->open_stream(pool, device);
  for (std::uint32_t v : executable->variants())
    prepare_variant(*executable, plan.variants[v], *stream);
  for (std::uint32_t i = 0; i < plan.prepared.size(); ++i)
    if (const auto& memory = executable->prepared_memory(i))
      plan.prepared[i].data = Storage(memory, {memory->data(), memory->size()});
}

}  // namespace hone
