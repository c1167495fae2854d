// Helpers for large memory blocks.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace hone {

// Asks the system to back this memory with large pages where it can, so that new memory takes fewer
// page faults. Ignores small blocks.
void prefer_large_pages(std::byte* at, std::size_t bytes);

// The process keeps up to half a gigabyte of what it frees. A compilation allocates arrays of the
// same sizes again and again, and the system clears new memory page by page.
void keep_freed_memory();

// `bytes` of memory that can only be read and repeats `content`: it takes as much of the machine's
// memory as one repetition. Ends at a page that cannot be read. The content's size must be a
// multiple of a page's. Null where the system does not offer it.
std::shared_ptr<std::byte> repeated_memory(std::span<const std::byte> content, std::size_t bytes);

}  // namespace hone
