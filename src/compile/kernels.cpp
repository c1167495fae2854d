#include "compile/kernels.h"

#include <unordered_set>

#include "base/hash.h"
#include "compile/build_id.h"

namespace hone {

namespace {

std::string entry_name(const Hash128& key) { return "k_" + to_hex(key); }

}  // namespace

Hash128 KernelCompiler::key(const Kernel& kernel) const {
  return hash128(
      cat(to_hex(hash(kernel)), " ", target_.info().name, " ", target_.version(), " ", build_id()));
}

bool KernelCompiler::find(const Hash128& key) {
  std::optional<std::vector<std::byte>> entry = store_.find(key);
  if (!entry) return false;
  try {
    done_.emplace(to_hex(key), deserialize(*entry, "compile cache"));
  } catch (const UserError&) {
    return false;  // not a Binary: compile again and overwrite it
  }
  ++from_cache_;
  return true;
}

// When one of several kernels is refused, each is compiled alone.
void KernelCompiler::compile(std::span<const CompileJob> jobs, std::span<const std::string> keys) {
  std::vector<Binary> made;
  try {
    made = target_.compile(jobs, pool_);
  } catch (const UserError& e) {
    if (jobs.size() == 1)
      refused_.emplace(keys[0], e.what());
    else
      for (std::size_t i = 0; i < jobs.size(); ++i) compile(jobs.subspan(i, 1), keys.subspan(i, 1));
    return;
  }
  HONE_ASSERT(made.size() == jobs.size(), target_.info().name, ": ", made.size(), " binaries for ",
              jobs.size(), " kernels");
  for (std::size_t i = 0; i < made.size(); ++i) {
    store_.store(key(*jobs[i].kernel), serialize(made[i]));
    done_.emplace(keys[i], std::move(made[i]));
    ++compiled_;
  }
}

std::vector<Hash128> KernelCompiler::try_all(std::span<const Kernel* const> kernels) {
  const std::lock_guard lock(mutex_);
  std::vector<Hash128> all;
  std::vector<CompileJob> jobs;
  std::vector<std::string> keys;
  std::unordered_set<std::string> asked;
  for (const Kernel* kernel : kernels) {
    all.push_back(key(*kernel));
    std::string hex = to_hex(all.back());
    if (done_.contains(hex) || refused_.contains(hex) || !asked.insert(hex).second ||
        find(all.back()))
      continue;
    jobs.push_back({kernel, entry_name(all.back())});
    keys.push_back(std::move(hex));
  }
  if (!jobs.empty()) compile(jobs, keys);
  return all;
}

std::string KernelCompiler::why_not(const Candidate& c) {
  std::vector<const Kernel*> kernels;
  for (const Candidate::Step& s : c.steps)
    if (const auto* kernel = std::get_if<Kernel>(&s.what)) kernels.push_back(kernel);
  const std::vector<Hash128> keys = try_all(kernels);
  const std::lock_guard lock(mutex_);
  for (const Hash128& k : keys)
    if (const auto it = refused_.find(to_hex(k)); it != refused_.end()) return it->second;
  return "";
}

std::vector<KernelCompiler::Compiled> KernelCompiler::operator()(
    std::span<const Kernel* const> kernels) {
  const std::vector<Hash128> keys = try_all(kernels);
  const std::lock_guard lock(mutex_);
  std::vector<Compiled> out;
  for (const Hash128& k : keys) {
    if (const auto it = refused_.find(to_hex(k)); it != refused_.end()) throw UserError(it->second);
    out.push_back({&done_.at(to_hex(k)), entry_name(k), k});
  }
  return out;
}

}  // namespace hone
