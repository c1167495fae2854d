// Calls of the operating system and of the allocator that fail on request. The functions defined
// here override those of libc.
#pragma once

#include <string_view>

namespace hone::test {

// From now on the n-th call of this name and all later ones fail. Names: write, fsync, rename,
// open, mmap, mprotect, alloc (memory for tensors), dlopen, new (n counts calls of operator new).
void fail_call(std::string_view name, long n, int error_number);
// Number of calls of that name since then.
long calls_made();

}  // namespace hone::test
