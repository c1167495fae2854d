// Runs another program and waits for it. No shell: arguments are passed unchanged.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hone {

struct ProcessResult {
  int status = 0;      // exit status; 128 + n when signal n ended the program
  std::string output;  // stdout and stderr together
};

// argv[0] is searched in PATH unless it has a slash. Throws UserError when it cannot be started.
ProcessResult run_process(std::span<const std::string> argv);

// The path of the running executable.
std::filesystem::path this_program();

// Where PATH has a program of this name; empty when it has none.
std::optional<std::filesystem::path> find_program(std::string_view name);

}  // namespace hone
