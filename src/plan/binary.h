// Machine code as plain data, passed from the compiler to the loader: position-independent bytes
// with named entry points and slots for the addresses of a fixed table of helpers. Not yet
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
  // Eight bytes of `code` that receive a helper's address at load time.
  struct HelperSlot {
    std::uint64_t offset = 0;  // a multiple of 8
    std::uint32_t helper = 0;  // index in the table below
    bool operator==(const HelperSlot&) const = default;
  };

  std::string target;           // the target of the code; decides which machines can run it
  std::vector<std::byte> code;  // text and constants, to be placed at a page boundary
  std::vector<Entry> entries;
  std::vector<HelperSlot> helpers;

  bool operator==(const Binary&) const = default;
};

// Names of the functions that kernels may call, by number. Files store the numbers, so new names
// are only appended.
std::span<const std::string_view> helper_names();
std::optional<std::uint32_t> helper_number(std::string_view name);

// deserialize() is the inverse. It checks sizes, offsets and the hash of the content, and throws
// UserError naming `where` for content that serialize() did not write.
std::vector<std::byte> serialize(const Binary&);
Binary deserialize(std::span<const std::byte>, std::string_view where);

// Depends only on the content, not on the machine.
Hash128 content_hash(const Binary&);

// Throws UserError naming `where` when an entry or slot lies outside of the code or overlaps
// another.
void check(const Binary&, std::string_view where);

}  // namespace hone
