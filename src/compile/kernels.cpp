#include "compile/kernels.h"

#include "base/hash.h"

namespace hone {

namespace {

std::string entry_name(const Hash128& key) { return "k_" + to_hex(key); }

}  // namespace

Hash128 KernelCompiler::key(const Kernel& kernel) const {
  return hash128(cat(to_hex(hash(kernel)), " ", target_.info().name, " ", target_.version()));
}

bool KernelCompiler::find(const Hash128& key) {
  if (!cache_) return false;
  std::optional<std::vector<std::byte>> entry = cache_->find(key);
  if (!entry) return false;
  try {
    done_.emplace(to_hex(key), deserialize(*entry, "compile cache"));
  } catch (const UserError&) {
    return false;  // not a Binary: compile again and overwrite it
  }
  ++from_cache_;
  return true;
}

std::vector<KernelCompiler::Compiled> KernelCompiler::operator()(
    std::span<const Kernel* const> kernels) {
  std::lock_guard lock(mutex_);
  std::vector<Hash128> keys;
  std::vector<CompileJob> jobs;
  std::vector<Hash128> job_keys;
  std::unordered_map<std::string, bool> asked;
  for (const Kernel* kernel : kernels) {
    Hash128 k = key(*kernel);
    keys.push_back(k);
    if (done_.contains(to_hex(k)) || asked[to_hex(k)] || find(k)) continue;
    asked[to_hex(k)] = true;
    jobs.push_back({kernel, entry_name(k)});
    job_keys.push_back(k);
  }
  std::vector<Binary> made = target_.compile(jobs, pool_);
  HONE_ASSERT(made.size() == jobs.size(), target_.info().name, ": ", made.size(), " binaries for ",
              jobs.size(), " kernels");
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (cache_) cache_->store(job_keys[i], serialize(made[i]));
    done_.emplace(to_hex(job_keys[i]), std::move(made[i]));
    ++compiled_;
  }
  std::vector<Compiled> out;
  for (const Hash128& k : keys) out.push_back({&done_.at(to_hex(k)), entry_name(k), k});
  return out;
}

}  // namespace hone
