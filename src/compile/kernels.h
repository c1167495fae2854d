// Compiles kernels to machine code: each unique kernel once, in parallel; the code is cached on
// disk by content. Does not verify.
#pragma once

#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/thread_pool.h"
#include "codegen/kernel_code.h"
#include "compile/store.h"

namespace hone {

class KernelCompiler final : public KernelCode {
 public:
  KernelCompiler(const Target& target, ThreadPool& pool, Store& store)
      : target_(target), pool_(pool), store_(store) {}

  std::vector<Compiled> operator()(std::span<const Kernel* const>) override;
  // Compiles all kernels that the target can render and records the refused ones. Returns the keys.
  std::vector<Hash128> try_all(std::span<const Kernel* const>);
  // Why the target cannot render one of the candidate's kernels; empty when it can.
  std::string why_not(const Candidate&);
  // Hash of the kernel, the target and this build.
  Hash128 key(const Kernel&) const;

  const Target& target() const override { return target_; }
  int compiled() const { return compiled_; }
  int from_cache() const { return from_cache_; }

 private:
  bool find(const Hash128& key);
  void compile(std::span<const CompileJob>, std::span<const std::string> keys);

  const Target& target_;
  ThreadPool& pool_;
  Store& store_;
  std::mutex mutex_;
  // By hexadecimal key.
  std::unordered_map<std::string, Binary> done_;
  std::unordered_map<std::string, std::string> refused_;
  int compiled_ = 0, from_cache_ = 0;
};

}  // namespace hone
