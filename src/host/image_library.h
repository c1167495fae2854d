// Looks up functions of an optional library. Only for the files of image formats.
#pragma once

#include "base/error.h"
#include "base/library.h"

namespace hone {

template <class F>
void find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(find_in_library(library, name));
}

[[noreturn]] inline void missing(const char* format, const char* soname) {
  throw UserError("image: ", format, " needs ", soname, ", which was not found; install it");
}

}  // namespace hone
