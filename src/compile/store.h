// What compilations learn and later ones use: machine code, verdicts and times, by content key.
// Strategies of one `optimize` share one; on disk it lies in the cache directory of this machine.
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

 private:
  CompileCache cache_;
  std::mutex mutex_;
  std::map<Hash128, std::vector<std::byte>> known_;
};

struct CompileStore {
  // Not on disk: kept as long as this lives.
  explicit CompileStore(bool on_disk);
  Store code, verdicts, times;
};

// Of everything that decides whether a plan of these contents computes the function at these sizes.
Hash128 whole_key(const Function&, const Sizing&, const Hash128& contents);

}  // namespace hone
