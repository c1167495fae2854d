// A message with the node that it is about. Not for errors of files.
#pragma once

#include <string>
#include <string_view>

namespace hone {

// "node: message". Where the message begins with the node's operator that is left out, as the node
// names it.
std::string located(std::string_view node, std::string_view op, std::string_view message);

}  // namespace hone
