// What goes to a terminal: whether there is one, and that text from files does nothing there but
// stand.
#pragma once

#include <string>
#include <string_view>

namespace hone {

// Whether the file descriptor is a terminal.
bool is_terminal(int descriptor);

// Control characters but newline and tab, and bytes that are no UTF-8, become \xNN.
std::string printable(std::string_view);

// For programs: from now on all that is written to stdout and stderr through stdio is printable().
void print_only_printable();

}  // namespace hone
