// The compile cache: entries on disk by content key. A damaged, foreign or missing entry is a miss;
// nothing here throws to the compiler. May be used by several threads and processes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "base/hash.h"

namespace hone {

class CompileCache {
 public:
  // Entries lie in `directory`/`kind`. Entries hold code, so both must be owned by the effective
  // user of this process, also for root, and must not be writable by others; otherwise, or if
  // `directory` is empty, the cache stores nothing. The same holds for the file of every entry.
  CompileCache(const std::filesystem::path& directory, std::string_view kind);

  std::optional<std::vector<std::byte>> find(const Hash128& key) const;
  // One file for each entry, written whole or not at all. A failed write is not an error; the
  // reason is logged once.
  void store(const Hash128& key, std::span<const std::byte> content) const;

  bool keeps() const { return !directory_.empty(); }

 private:
  std::filesystem::path directory_;
};

}  // namespace hone
