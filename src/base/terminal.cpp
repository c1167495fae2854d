#include "base/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/text.h"

namespace hone {

namespace {

// Length of an incomplete UTF-8 character at the end of `s`, whose rest may come later.
std::size_t unfinished_bytes(std::string_view s) {
  for (std::size_t n = 1; n <= std::min<std::size_t>(3, s.size()); ++n) {
    const auto first = static_cast<unsigned char>(s[s.size() - n]);
    if ((first & 0xc0) == 0x80) continue;  // a continuation byte
    const std::size_t whole = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 1;
    return n < whole ? n : 0;
  }
  return 0;
}

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(descriptor, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

// One standard stream. Lives as long as the process, since stdio writes until exit.
struct Stream {
  int descriptor;
  std::string rest;  // of a split character

  bool write(std::string_view part) {
    const std::string text = rest + std::string(part);
    const std::size_t unfinished = unfinished_bytes(text);
    rest = text.substr(text.size() - unfinished);
    return write_all(descriptor,
                     printable(std::string_view(text).substr(0, text.size() - unfinished)));
  }
};

std::FILE* stream_to(int descriptor, int buffering) {
  auto* stream = new Stream{descriptor, {}};
  cookie_io_functions_t functions = {};
  functions.write = [](void* cookie, const char* data, std::size_t size) -> ssize_t {
    if (static_cast<Stream*>(cookie)->write({data, size})) return static_cast<ssize_t>(size);
    return 0;  // stdio treats this as an error and keeps errno
  };
  std::FILE* file = ::fopencookie(stream, "w", functions);
  if (file) std::setvbuf(file, nullptr, buffering, BUFSIZ);
  return file;
}

}  // namespace

bool is_terminal(int descriptor) { return ::isatty(descriptor) == 1; }

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t n = utf8_bytes(text);
    const bool is_plain = text[0] == '\n' || text[0] == '\t' || (n > 0 && !is_control(text));
    const std::size_t taken = n > 0 ? n : 1;
    for (std::size_t i = 0; i < taken; ++i) {
      if (is_plain) {
        out += text[i];
        continue;
      }
      char code[8];
      std::snprintf(code, sizeof code, "\\x%02x",
                    static_cast<unsigned>(static_cast<unsigned char>(text[i])));
      out += code;
    }
    text.remove_prefix(taken);
  }
  return out;
}

void print_only_printable() {
  static const bool is_done = [] {
    if (std::FILE* out = stream_to(STDOUT_FILENO, is_terminal(STDOUT_FILENO) ? _IOLBF : _IOFBF))
      stdout = out;
    if (std::FILE* error = stream_to(STDERR_FILENO, _IOLBF)) stderr = error;
    return true;
  }();
  static_cast<void>(is_done);
}

}  // namespace hone
