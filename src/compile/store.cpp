#include "compile/store.h"

#include "base/file.h"

namespace hone {

std::optional<std::vector<std::byte>> Store::find(const Hash128& key) {
  {
    const std::scoped_lock lock(mutex_);
    if (const auto it = known_.find(key); it != known_.end()) return it->second;
  }
  std::optional<std::vector<std::byte>> found = cache_.find(key);
  if (!found) return found;
  const std::scoped_lock lock(mutex_);
  return known_.insert_or_assign(key, std::move(*found)).first->second;
}

void Store::store(const Hash128& key, std::span<const std::byte> content) {
  cache_.store(key, content);
  const std::scoped_lock lock(mutex_);
  known_.insert_or_assign(key, std::vector<std::byte>(content.begin(), content.end()));
}

CompileStore::CompileStore(bool on_disk)
    : code(CompileCache(on_disk ? cache_directory() : "", "kernels")),
      verdicts(CompileCache(on_disk ? cache_directory() : "", "verdicts")),
      times(CompileCache(on_disk ? cache_directory() : "", "times")) {}

}  // namespace hone
