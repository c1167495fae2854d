#include "compile/memory_need.h"

#include "base/error.h"
#include "plan/written.h"
#include "runtime/memory_limit.h"
#include "runtime/session.h"

namespace hone {

MemoryReport memory_need(const std::shared_ptr<const Executable>& executable,
                         const std::vector<Array>& inputs, int threads, bool in_file) {
  Session session(executable, {.threads = threads});
  for (std::size_t i = 0; i < inputs.size(); ++i) session.bind_input(i, as_input(inputs[i]));
  MemoryReport out = session.memory();
  const Plan& plan = executable->plan();
  if (!in_file || plan.reading.mapped > 0) return out;
  const PlanReading reading = reading_when_written(plan);
  const std::size_t read = out.shared.weights + out.shared.prepared;
  out.shared.file = reading.mapped > read ? reading.mapped - read : 0;
  out.shared.reading = reading.transient;
  return out;
}

void check_memory_need(const MemoryReport& m, std::string_view plan, std::int64_t limit,
                       bool in_file) {
  if (fits(m, limit)) return;
  // The table of strategies and the self-tests are still missing from the file.
  constexpr std::size_t more = 32 << 10;
  const std::size_t enough = in_file ? m.peak() + m.peak() / 64 + more : m.peak();
  throw UserError(plan, ": the plan needs ", enough, " bytes of memory", in_file ? " at most" : "",
                  " (", memory_text(m), "), the limit is ", limit,
                  "; raise --max-memory, or use fewer threads, smaller sizes (--dim) or another "
                  "strategy");
}

}  // namespace hone
