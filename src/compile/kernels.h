// Machine code for kernels: each unique kernel is compiled once, in parallel, and kept on disk by
// content. Not a judge: verification is elsewhere.
#pragma once

#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/thread_pool.h"
#include "codegen/target.h"
#include "runtime/cache.h"

namespace hone {

class KernelCompiler {
 public:
  // `cache` may be null.
  KernelCompiler(const Target& target, ThreadPool& pool, CompileCache* cache)
      : target_(target), pool_(pool), cache_(cache) {}

  struct Compiled {
    const Binary* binary = nullptr;
    std::string entry;
    Hash128 key;
  };
  // In the order of the kernels. May be called by several threads; each Binary stays where it is.
  std::vector<Compiled> operator()(std::span<const Kernel* const>);
  // Of the kernel, the target and the code generator.
  Hash128 key(const Kernel&) const;

  const Target& target() const { return target_; }
  int compiled() const { return compiled_; }
  int from_cache() const { return from_cache_; }

 private:
  bool find(const Hash128& key);

  const Target& target_;
  ThreadPool& pool_;
  CompileCache* cache_;
  std::mutex mutex_;
  std::unordered_map<std::string, Binary> done_;  // by hexadecimal key
  int compiled_ = 0, from_cache_ = 0;
};

}  // namespace hone
