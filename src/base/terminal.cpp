#include "base/terminal.h"

#include <unistd.h>

namespace hone {

bool is_terminal(int descriptor) { return ::isatty(descriptor) == 1; }

}  // namespace hone
