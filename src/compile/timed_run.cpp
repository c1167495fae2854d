#include "compile/timed_run.h"

#include <algorithm>
#include <optional>

#include "base/checked.h"
#include "runtime/host_memory.h"

namespace hone {

namespace {

// Empty if the product exceeds 64 bits.
std::optional<std::int64_t> count_of(const std::vector<std::int64_t>& dims) {
  std::optional<std::int64_t> out = 1;
  for (const std::int64_t n : dims) out = out ? try_mul(*out, n) : std::nullopt;
  return out;
}

}  // namespace

TimedRun::Memory::Memory(DType t, std::int64_t elements)
    : dtype(t),
      dims{elements},
      bytes(static_cast<std::size_t>(checked_mul(elements, byte_size(dtype)))),
      memory(std::make_shared<HostMemory>(), std::max<std::size_t>(bytes, 1)) {}

TensorRef TimedRun::Memory::ref() const {
  return {dtype, dims, {HostMemory::address(memory.at()), bytes}};
}

TimedRun::TimedRun(Session& session, const std::vector<Array>& inputs)
    : session_(&session), inputs_(inputs), donated_(inputs.size()) {
  const Plan& plan = session.executable().plan();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const PlanParam& p = plan.main().params[i];
    if (p.donated && !p.capacity) {
      donated_[i] = std::make_unique<Memory>(inputs[i].dtype(), inputs[i].count());
      donated_[i]->dims = inputs[i].dims();
    }
    session.bind_input(i, donated_[i] ? donated_[i]->ref() : as_input(inputs[i]));
  }
  const std::vector<std::vector<std::int64_t>> dims = session.output_dims();
  const std::vector<std::size_t> bytes = session.output_bytes();
  for (std::size_t i = 0; i < plan.main().results.size(); ++i) {
    const bool is_ours = !plan.main().shares_memory(i);
    if (is_ours) {
      const DType dtype = plan.main().results[i].type.dtype;
      const std::int64_t elements = static_cast<std::int64_t>(bytes[i]) / byte_size(dtype);
      outputs_.push_back(std::make_unique<Memory>(dtype, elements));
      // The product of measured sizes' bounds can exceed the memory that was allocated.
      if (count_of(dims[i]) == elements) outputs_.back()->dims = dims[i];
    }
    const auto of = static_cast<std::size_t>(plan.main().result_alias[i]);
    session.bind_output(i, is_ours ? outputs_.back()->ref() : donated_[of]->ref());
  }
}

void TimedRun::operator()() {
  for (std::size_t i = 0; i < donated_.size(); ++i) {
    if (!donated_[i]) continue;
    const TensorRef to = donated_[i]->ref();
    std::ranges::copy(inputs_[i].bytes(), to.memory.begin());
    session_->bind_input(i, to);
  }
  session_->compute();
}

}  // namespace hone
