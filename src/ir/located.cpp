#include "ir/located.h"

#include <cctype>

#include "base/error.h"

namespace hone {

namespace {

// MatMul and matmul, ScatterND and scatter_nd are the same operator.
std::string letters(std::string_view name) {
  std::string out;
  for (const char c : name)
    if (c != '_') out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

std::string located(std::string_view node, std::string_view op, std::string_view message) {
  const std::size_t end = message.find(": ");
  if (end != message.npos && letters(message.substr(0, end)) == letters(op))
    message.remove_prefix(end + 2);
  return cat(node, ": ", message);
}

}  // namespace hone
