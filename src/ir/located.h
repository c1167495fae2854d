// Prefixes a message with the node it is about. Not for errors about files.
#pragma once

#include <string>
#include <string_view>

namespace hone {

// "node: message". If the message begins with the node's operator, the operator is left out, since
// the node's name contains it.
std::string located(std::string_view node, std::string_view op, std::string_view message);

}  // namespace hone
