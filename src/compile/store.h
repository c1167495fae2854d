// Results that later compilations reuse: machine code, verdicts and times, by content key. All
// strategies of one `optimize` share a store; on disk it is in this machine's cache directory.
#pragma once

#include <map>
#include <mutex>

#include "ir/function.h"
#include "ref/evaluate.h"
#include "runtime/cache.h"

namespace hone {

// May be used by several threads.
class Store {
 public:
  explicit Store(CompileCache cache) : cache_(std::move(cache)) {}

  std::optional<std::vector<std::byte>> find(const Hash128& key);
  void store(const Hash128& key, std::span<const std::byte> content);
  bool is_on_disk() const { return cache_.keeps(); }

 private:
  CompileCache cache_;
  std::mutex mutex_;
  std::map<Hash128, std::vector<std::byte>> known_;
};

struct CompileStore {
  // If not on disk, entries live as long as this object.
  explicit CompileStore(bool on_disk);
  Store code, verdicts, times;
};

// Hash of everything that determines whether a plan with these contents computes the function at
// these sizes.
Hash128 whole_key(const Function&, const Sizing&, const Hash128& contents);

}  // namespace hone
