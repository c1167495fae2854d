#include "compile/store.h"

#include <sstream>

#include "base/file.h"
#include "compile/build_id.h"
#include "verify/sample.h"

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

Hash128 whole_key(const Function& f, const Sizing& sizes, const Hash128& contents) {
  std::ostringstream out;
  std::vector<Array> arrays;
  out << "whole " << build_id() << " " << sample_seed() << " " << to_hex(contents)
      << print(f, &arrays);
  for (const Array& a : arrays) out << to_hex(hash128(a.bytes()));
  for (const auto& [name, value] : std::map(sizes.begin(), sizes.end()))
    out << " " << name << "=" << value;
  return hash128(out.view());
}

}  // namespace hone
