#include "base/library.h"

#include <dlfcn.h>

namespace hone {

void* open_library(const char* soname) { return ::dlopen(soname, RTLD_NOW | RTLD_LOCAL); }

void* find_in_library(void* library, const char* name) {
  return library ? ::dlsym(library, name) : nullptr;
}

}  // namespace hone
