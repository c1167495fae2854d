// The memory that a plan is stated to need: that of a new session which runs these inputs.
#pragma once

#include <memory>
#include <vector>

#include "runtime/memory_report.h"
#include "type/array.h"

namespace hone {

// `in_file`: of the plan once it is written to a file and read from there, as far as that is known
// before it is written.
MemoryReport memory_need(const std::shared_ptr<const Executable>&, const std::vector<Array>& inputs,
                         int threads, bool in_file);

// Throws UserError unless it fits the limit; the message has a limit that is enough.
void check_memory_need(const MemoryReport&, std::string_view plan, std::int64_t limit,
                       bool in_file);

}  // namespace hone
