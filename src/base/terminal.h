// Whether somebody watches.
#pragma once

namespace hone {

// Whether the file descriptor is a terminal.
bool is_terminal(int descriptor);

}  // namespace hone
