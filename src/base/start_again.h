// Replaces this process by a new one of the same program.
#pragma once

#include <string>

namespace hone {

// Starts the program again with these arguments and one more environment variable. Returns only if
// the system refuses.
void start_again(char** arguments, const std::string& variable, const std::string& value);

}  // namespace hone
