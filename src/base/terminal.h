// Terminal output: detects a terminal, and escapes control characters in text from files.
#pragma once

#include <string>
#include <string_view>

namespace hone {

// Whether the file descriptor is a terminal.
bool is_terminal(int descriptor);

// Replaces control characters except newline and tab, and invalid UTF-8 bytes, by \xNN.
std::string printable(std::string_view);

// For programs: from now on all stdio output to stdout and stderr passes through printable().
void print_only_printable();

}  // namespace hone
