// Libraries that are opened at run time, when something first needs them. They stay open.
#pragma once

namespace hone {

// Null when there is none of that name.
void* open_library(const char* soname);
// Null when the library is null or has no such function.
void* find_in_library(void* library, const char* name);

}  // namespace hone
