#include "compile/timed_run.h"

#include <algorithm>

#include "base/checked.h"
#include "runtime/host_memory.h"

namespace hone {

TimedRun::Memory::Memory(DType t, std::vector<std::int64_t> d) : dtype(t), dims(std::move(d)) {
  std::int64_t all = byte_size(dtype);
  for (std::int64_t n : dims) all = checked_mul(all, n);
  bytes = static_cast<std::size_t>(all);
  memory = OwnedMemory(std::make_shared<HostMemory>(), std::max<std::size_t>(bytes, 1));
}

TensorRef TimedRun::Memory::ref() const {
  return {dtype, dims, {HostMemory::address(memory.at()), bytes}};
}

TimedRun::TimedRun(Session& session, const std::vector<Array>& inputs)
    : session_(&session), inputs_(inputs), donated_(inputs.size()) {
  const Plan& plan = session.executable().plan();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (plan.params[i].donated)
      donated_[i] = std::make_unique<Memory>(inputs[i].dtype(), inputs[i].dims());
    session.bind_input(i, donated_[i] ? donated_[i]->ref() : as_input(inputs[i]));
  }
  const std::vector<std::vector<std::int64_t>> dims = session.output_dims();
  for (std::size_t i = 0; i < plan.results.size(); ++i) {
    const std::int32_t of = plan.result_alias[i];
    if (of < 0) outputs_.push_back(std::make_unique<Memory>(plan.results[i].type.dtype, dims[i]));
    session.bind_output(
        i, of < 0 ? outputs_.back()->ref() : donated_[static_cast<std::size_t>(of)]->ref());
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
