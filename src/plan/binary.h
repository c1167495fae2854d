// Machine code as plain data: what the compiler hands to the loader. Position-independent bytes
// with named entry points and slots for the addresses of a closed table of helpers; not yet
// runnable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"

namespace hone {

struct Binary {
  struct Entry {
    std::string name;
    std::uint64_t offset = 0;  // in `code`
    bool operator==(const Entry&) const = default;
  };
  // Eight bytes of `code` that receive a helper's address when it is loaded.
  struct HelperSlot {
    std::uint64_t offset = 0;  // a multiple of 8
    std::uint32_t helper = 0;  // a number of the table below
    bool operator==(const HelperSlot&) const = default;
  };

  std::string target;           // that it is made for, which says which machines run it
  std::vector<std::byte> code;  // text and constants, to be placed at a page boundary
  std::vector<Entry> entries;
  std::vector<HelperSlot> helpers;

  bool operator==(const Binary&) const = default;
};

// Names of the functions that kernels may call, in the order of their numbers. Files hold the
// numbers, so the table only ever grows at its end.
std::span<const std::string_view> helper_names();
std::optional<std::uint32_t> helper_number(std::string_view name);

// Bytes that deserialize() turns back. Content that is not what serialize() wrote throws UserError
// naming `where`: sizes, offsets, the hash of the content.
std::vector<std::byte> serialize(const Binary&);
Binary deserialize(std::span<const std::byte>, std::string_view where);

// Equal for equal content, on every machine.
Hash128 content_hash(const Binary&);

// Throws UserError naming `where` when an entry or slot lies outside the code or overlaps.
void check(const Binary&, std::string_view where);

}  // namespace hone
