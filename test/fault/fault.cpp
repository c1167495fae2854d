#include "test/fault/fault.h"

#include "backend/backend.h"

namespace hone::test {

namespace {

const Fault* on = nullptr;  // the active fault

// The target of this machine with the active fault.
class FaultyTarget final : public Target {
 public:
  explicit FaultyTarget(std::unique_ptr<Target> good) : good_(std::move(good)) {}
  const TargetInfo& info() const override { return good_->info(); }
  std::string_view version() const override { return good_->version(); }
  Listing list(const CompileJob& job) const override { return good_->list(job); }

  std::vector<Binary> compile(std::span<const CompileJob> jobs, ThreadPool& pool) const override {
    std::vector<Kernel> kernels;
    kernels.reserve(jobs.size());
    std::vector<CompileJob> broken(jobs.begin(), jobs.end());
    for (CompileJob& job : broken) {
      kernels.push_back(*job.kernel);
      if (on->break_kernel && on->break_kernel(kernels.back())) ++fired;
      job.kernel = &kernels.back();
    }
    std::vector<Binary> out = good_->compile(broken, pool);
    if (on->break_binaries && !out.empty()) {
      ++fired;
      on->break_binaries(out);
    }
    return out;
  }

 private:
  std::unique_ptr<Target> good_;
};

std::unique_ptr<Target> faulty_target(std::string_view isa) {
  return std::make_unique<FaultyTarget>(backend("cpu").target(isa));
}

const Pass* broken_pass = nullptr;

Function run_broken(const Function& f, RuleLog* log) {
  return on->break_function(broken_pass->run(f, log));
}

}  // namespace

CompileOptions options_with(const Fault& fault) {
  static Backend faulty;
  static std::vector<Pass> passes;
  on = &fault;
  fired = 0;
  CompileOptions options{.strategy = "cpu", .cache = false};
  if (fault.break_kernel || fault.break_binaries) {
    faulty = backend("cpu");
    faulty.target = faulty_target;
    options.backend = &faulty;
  }
  if (fault.break_function) {
    passes.assign(pipeline().begin(), pipeline().end());
    for (std::size_t i = 0; i < passes.size(); ++i)
      if (passes[i].name == fault.after_pass) {
        broken_pass = &pipeline()[i];
        passes[i].run = run_broken;
      }
    options.passes.list = passes;
  }
  if (fault.break_plan) options.on_plan = [&fault](Plan& p) { fired += fault.break_plan(p); };
  return options;
}

}  // namespace hone::test
