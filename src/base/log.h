// Where warnings go. One sink for the process; not a logging framework.
#pragma once

#include <string_view>

namespace hone {

using LogSink = void (*)(void* context, const char* text);

// Null brings back the default, which writes to stderr. May be called at any time.
void set_log_sink(LogSink, void* context);
void log_warning(std::string_view text);

}  // namespace hone
