// Calls of the operating system and of the allocator that fail when a test says so. The functions
// of this program stand before those of libc.
#pragma once

#include <string_view>

namespace hone::test {

// The n-th call from now on of this name fails, and all after it. Names: write, fsync, rename,
// open, mmap, mprotect, alloc (memory for tensors), dlopen, new (n counts calls of operator new).
void fail_call(std::string_view name, long n, int error_number);
// How often the call was asked for since.
long calls_made();

}  // namespace hone::test
