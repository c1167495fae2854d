#include "backend/cpu/target/cpu_target.h"

#include <mutex>

#include "backend/cpu/target/processor.h"
#include "codegen/llvm/blob.h"
#include "codegen/llvm/nest.h"
#include "codegen/llvm/object.h"

namespace hone::cpu {

namespace {

class CpuTarget final : public Target {
 public:
  explicit CpuTarget(std::string_view isa)
      : spec_(target_spec(isa)), info_(target_info(spec_.name)) {}

  const TargetInfo& info() const override { return info_; }

  std::string_view version() const override { return version_; }

  std::vector<Proposal> candidates(const GroupSpec& spec) const override {
    std::vector<Proposal> out = Target::candidates(spec);
    for (Candidate& c : onednn_candidates(spec, info_))
      out.push_back({std::move(c), std::string(library_names[0]), ""});
    return out;
  }

  // The copies of a buffer that fits the second-level cache and of one that fits no cache.
  void calibrate(const MachineRates& rates) override {
    info_.fma_gflops = rates.fma_gflops / rates.threads;
    for (const MachineRates::Copy& c : rates.copies) {
      const double gbytes = c.gbytes / rates.threads;
      if (c.bytes <= info_.l2_bytes) info_.cache_gbytes = gbytes;
      info_.memory_gbytes = gbytes;
    }
  }

  std::vector<Binary> compile(std::span<const CompileJob> jobs, ThreadPool& pool) const override {
    std::vector<Binary> out(jobs.size());
    // An Emitter belongs to one thread and costs more than a small kernel.
    std::vector<std::unique_ptr<llvm::Emitter>> emitters(static_cast<std::size_t>(pool.threads()));
    struct Shared {
      const CpuTarget& self;
      std::span<const CompileJob> jobs;
      std::vector<Binary>& out;
      std::vector<std::unique_ptr<llvm::Emitter>>& emitters;
      std::mutex mutex;
      std::exception_ptr error;
    } shared{*this, jobs, out, emitters, {}, {}};
    pool.run(
        static_cast<std::int64_t>(jobs.size()),
        [](void* context, std::int64_t begin, std::int64_t end, int thread) {
          auto& s = *static_cast<Shared*>(context);
          try {
            auto& emitter = s.emitters[static_cast<std::size_t>(thread)];
            if (!emitter) emitter = std::make_unique<llvm::Emitter>(s.self.spec_);
            for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
              s.out[i] = s.self.compile_one(s.jobs[i], *emitter);
          } catch (...) {
            std::lock_guard lock(s.mutex);
            if (!s.error) s.error = std::current_exception();
          }
        },
        &shared);
    if (shared.error) std::rethrow_exception(shared.error);
    return out;
  }

  Listing list(const CompileJob& job) const override {
    llvm::Emitter emitter(spec_);
    llvm::Module m(job.entry, spec_);
    llvm::emit_kernel(m, *job.kernel, job.entry);
    emitter.optimize(m);
    Listing out;
    out.ir = m.text();
    out.assembly = emitter.assembly(m);
    return out;
  }

 private:
  Binary compile_one(const CompileJob& job, const llvm::Emitter& emitter) const {
    llvm::Module m(job.entry, spec_);
    llvm::emit_kernel(m, *job.kernel, job.entry);
    std::vector<llvm::Object> objects = {emitter.compile(m)};
    return llvm::link_objects(objects, spec_.name);
  }

  llvm::TargetSpec spec_;
  TargetInfo info_;
  // LLVM's version and the processor that `native` is tuned for.
  std::string version_ = cat("llvm-19 ", spec_.processor, " ", spec_.tune, " ", spec_.features);
};

}  // namespace

std::unique_ptr<Target> make_target(std::string_view isa) {
  return std::make_unique<CpuTarget>(isa);
}

}  // namespace hone::cpu
