// Writes a plan file that proved itself: what stands in the file was opened by another process,
// without a compiler, and computed there what the verified plan computed.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace hone::cli {

// The words that start a process which runs a file's self-tests: hone-run beside this program, else
// this program; empty: neither is there, and the self-tests run in this process.
std::vector<std::string> self_test_command();

// Throws InternalError when the written file is refused, crashes or differs. Then, and while the
// self-tests run, an older file of that name stays as it is. Returns the bytes of the file.
std::int64_t write_proved(const std::filesystem::path&, const Plan&,
                          std::vector<std::string> command = self_test_command());

}  // namespace hone::cli
