#include "base/log.h"

#include <cstdio>
#include <mutex>
#include <string>

#include "base/terminal.h"

namespace hone {

namespace {

struct Sink {
  std::mutex mutex;
  LogSink call = nullptr;
  void* context = nullptr;
};

Sink& sink() {
  static Sink s;
  return s;
}

}  // namespace

void set_log_sink(LogSink call, void* context) {
  std::lock_guard lock(sink().mutex);
  sink().call = call;
  sink().context = context;
}

void log_warning(std::string_view text) {
  const std::string copy(text);
  std::lock_guard lock(sink().mutex);
  if (sink().call)
    sink().call(sink().context, copy.c_str());
  else
    std::fprintf(stderr, "hone: warning: %s\n", printable(copy).c_str());
}

}  // namespace hone
