// Writes a plan file and tests it: another process, without a compiler, opens the file and must
// compute the same as the verified plan.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace hone {

// The command that runs a file's self-tests in another process: hone-run beside this program, else
// this program. Empty if neither exists; the self-tests then run in this process.
std::vector<std::string> self_test_command();

// Throws InternalError when the written file is refused, crashes or differs. An older file of that
// name is replaced only after the self-tests pass. Returns the file's size in bytes.
std::int64_t write_proved(const std::filesystem::path&, const Plan&,
                          std::vector<std::string> command = self_test_command());

// Makes the chosen strategy's record say what a run of the written plan needs for the inputs: the
// file, whose header says it, is a part of that. Throws UserError when that is above the limit.
void state_written_memory(const std::filesystem::path& beside, Plan&,
                          std::span<const std::vector<Array>> inputs, int threads,
                          std::optional<std::int64_t> limit);

}  // namespace hone
