#include "backend/cuda/target/cuda_target.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "backend/cuda/driver/driver.h"
#include "backend/cuda/target/libraries.h"
#include "backend/cuda/target/nvrtc.h"
#include "backend/cuda/target/source.h"

namespace hone::cuda {

namespace {

// The target of tuning if there is no GPU.
constexpr int usual_capability = 90;

std::string target_name(std::string_view name) {
  if (std::ranges::count(target_names, name) == 0) {
    std::string known;
    for (std::string_view n : target_names) known += cat(known.empty() ? "" : ", ", n);
    throw UserError("target '", name, "' is unknown; expected one of: ", known);
  }
  if (name != target_names[0]) return std::string(name);
  return cat("sm_", driver().devices > 0 ? capability(0) : usual_capability);
}

// Maximum shared memory that a block may request.
std::int64_t most_shared_bytes(std::string_view name) {
  struct Known {
    std::string_view name;
    std::int64_t kibibytes;
  };
  constexpr Known known[] = {
      {"sm_75", 64}, {"sm_80", 163}, {"sm_90", 227}, {"sm_100", 227}, {"sm_103", 227}};
  constexpr std::int64_t others = 99;
  const auto* it = std::ranges::find(known, name, &Known::name);
  return (it == std::end(known) ? others : it->kibibytes) << 10;
}

// Has clusters of blocks, and kernels that wait for the previous kernel.
bool is_hopper_or_later(std::string_view name) {
  return name != "sm_75" && !name.starts_with("sm_8");
}

// Maximum blocks per cluster. A partition of a shared device may allow fewer; loading a kernel
// reports it.
int most_cluster_blocks(std::string_view name) {
  if (!is_hopper_or_later(name)) return 1;
  constexpr std::string_view large[] = {"sm_90", "sm_100", "sm_103"};
  return std::ranges::find(large, name) != std::end(large)
             ? 16
             : static_cast<int>(portable_cluster_blocks);
}

TargetInfo target_info(std::string name) {
  TargetInfo out;
  out.name = std::move(name);
  out.vector_bits = 128;
  out.group_threads = 1024;
  out.group_bytes = most_shared_bytes(out.name) - std::int64_t{kept_shared_bytes};
  // Registers hold 32 elements of a thread.
  if (is_hopper_or_later(out.name))
    out.row_threads = out.group_threads * static_cast<int>(portable_cluster_blocks);
  out.row_blocks = most_cluster_blocks(out.name);
  out.multiplies_halves = out.name != "sm_75";  // only f16, in smaller pieces
  out.overlaps_launches = true;
  out.launch_us = 3;
  return out;
}

class CudaTarget final : public Target {
 public:
  explicit CudaTarget(std::string_view name) : info_(target_info(target_name(name))) {
    if (nvrtc_status().failure.empty()) version_ = cat("NVRTC ", nvrtc_status().version);
  }

  const TargetInfo& info() const override { return info_; }
  std::string_view version() const override { return version_; }

  std::vector<Proposal> candidates(const GroupSpec& spec) const override {
    std::vector<Proposal> out = Target::candidates(spec);
    // Libraries read pieces of 16 bytes.
    if (spec.is_aligned)
      for (Proposal& p : library_proposals(spec, info_)) out.push_back(std::move(p));
    return out;
  }

  std::vector<Binary> compile(std::span<const CompileJob> jobs, ThreadPool& pool) const override {
    std::vector<Binary> out(jobs.size());
    struct Shared {
      const CudaTarget& self;
      std::span<const CompileJob> jobs;
      std::vector<Binary>& out;
      std::mutex mutex;
      std::exception_ptr error;
    } shared{*this, jobs, out, {}, {}};
    pool.run(
        static_cast<std::int64_t>(jobs.size()),
        [](void* context, std::int64_t begin, std::int64_t end, int) {
          auto& s = *static_cast<Shared*>(context);
          try {
            for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
              s.out[i] = s.self.compile_one(s.jobs[i]);
          } catch (...) {
            const std::scoped_lock lock(s.mutex);
            if (!s.error) s.error = std::current_exception();
          }
        },
        &shared);
    if (shared.error) std::rethrow_exception(shared.error);
    return out;
  }

  Listing list(const CompileJob& job) const override {
    const Source source = source_of(*job.kernel);
    const std::vector<std::byte> ptx =
        nvrtc_compile(source.text, job.entry, "compute_" + info_.name.substr(3));
    return {source.text, std::string(reinterpret_cast<const char*>(ptx.data()))};
  }

 private:
  Binary compile_one(const CompileJob& job) const {
    Source source = source_of(*job.kernel);
    const std::vector<std::byte> cubin = nvrtc_compile(source.text, job.entry, info_.name);
    source.header.waits = is_hopper_or_later(info_.name);
    source.header.cubin_bytes = static_cast<std::uint32_t>(cubin.size());
    Binary out;
    out.target = info_.name;
    out.code.resize(sizeof source.header + cubin.size());
    std::memcpy(out.code.data(), &source.header, sizeof source.header);
    std::ranges::copy(cubin, out.code.begin() + sizeof source.header);
    out.entries.push_back({job.entry, 0});
    return out;
  }

  TargetInfo info_;
  std::string version_ = "no NVRTC";
};

}  // namespace

std::unique_ptr<Target> make_target(std::string_view name) {
  return std::make_unique<CudaTarget>(name);
}

}  // namespace hone::cuda
