// Runs another program and waits for it. Not a shell: arguments go as they are.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hone {

struct ProcessResult {
  int status = 0;      // of its exit; 128 + n when signal n ended it
  std::string output;  // stdout and stderr together
};

// argv[0] is looked up in PATH unless it holds a slash. Throws UserError when it cannot be started.
ProcessResult run_process(std::span<const std::string> argv);

// The file of the program that runs.
std::filesystem::path this_program();

// Where PATH has a program of this name; nothing when it has none.
std::optional<std::filesystem::path> find_program(std::string_view name);

}  // namespace hone
