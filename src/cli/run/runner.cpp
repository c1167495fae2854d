#include "cli/run/runner.h"

#include <utility>

#include "backend/devices/devices.h"
#include "runtime/prepare.h"

namespace hone::cli {

namespace {

class PlanRunner final : public Runner {
 public:
  PlanRunner(std::shared_ptr<const Plan> plan, const PlanLimits& limits) : plan_(std::move(plan)) {
    SessionOptions options;
    options.threads = limits.threads;
    if (limits.max_memory > 0) options.max_memory = limits.max_memory;
    session_ = std::make_unique<Session>(load_plan(plan_, open_devices(*plan_)), options);
    if (limits.deadline) session_->set_deadline(*limits.deadline);
  }

  std::vector<Array> run(std::span<const Array> inputs) override { return session_->run(inputs); }
  const std::vector<PlanParam>& params() const override { return plan_->main().params; }
  const std::vector<PlanParam>& results() const override { return plan_->main().results; }
  Session* session() override { return session_.get(); }
  const Plan* plan() const override { return plan_.get(); }

 private:
  std::shared_ptr<const Plan> plan_;
  std::unique_ptr<Session> session_;
};

}  // namespace

std::unique_ptr<Runner> plan_runner(std::shared_ptr<const Plan> plan, const PlanLimits& limits) {
  return std::make_unique<PlanRunner>(std::move(plan), limits);
}

}  // namespace hone::cli
