// Helpers for large memory blocks.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace hone {

// Asks the system to back this memory with large pages where it can, so that new memory takes fewer
// page faults. Ignores small blocks.
void prefer_large_pages(std::byte* at, std::size_t bytes);

// Keeps up to half a gigabyte of freed memory in the process. A compilation allocates arrays of the
// same sizes again and again, and the system clears new memory page by page.
void keep_freed_memory();

// `bytes` of read-only memory that repeats `content` and occupies only as much physical memory as
// one repetition. Ends at an unreadable page. The content's size must be a multiple of the page
// size. Null where the system does not support it.
std::shared_ptr<std::byte> repeated_memory(std::span<const std::byte> content, std::size_t bytes);

}  // namespace hone
