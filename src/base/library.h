// Opens libraries at run time when they are first needed. They stay open.
#pragma once

namespace hone {

// Null when there is no library of that name.
void* open_library(const char* soname);
// Null when the library is null or has no such function.
void* find_in_library(void* library, const char* name);

}  // namespace hone
