#include "cli/run/runner.h"

#include <utility>

#include "backend/devices/devices.h"
#include "base/error.h"
#include "runtime/prepare.h"

namespace hone::cli {

namespace {

std::vector<PlanParam> copied(const std::vector<const PlanParam*>& all) {
  std::vector<PlanParam> out;
  for (const PlanParam* p : all) out.push_back(*p);
  return out;
}

class PlanRunner final : public Runner {
 public:
  PlanRunner(std::shared_ptr<const Plan> plan, const PlanLimits& limits) : plan_(std::move(plan)) {
    SessionOptions options;
    options.threads = limits.threads;
    options.entry = limits.entry;
    if (limits.max_memory > 0) options.max_memory = limits.max_memory;
    const auto executable = load_plan(plan_, open_devices(*plan_));
    if (!plan_->states.empty()) {
      state_.emplace(executable);
      if (!limits.state.empty()) state_->load(limits.state);
      options.states = {*state_};
    } else if (!limits.state.empty()) {
      throw UserError(plan_->name, ": has no states, so there is nothing to load them to");
    }
    session_ = std::make_unique<Session>(executable, options);
    params_ = copied(session_->inputs());
    results_ = copied(session_->outputs());
    if (limits.deadline) session_->set_deadline(*limits.deadline);
  }

  std::vector<Array> run(std::span<const Array> inputs) override { return session_->run(inputs); }
  const std::vector<PlanParam>& params() const override { return params_; }
  const std::vector<PlanParam>& results() const override { return results_; }
  Session* session() override { return session_.get(); }
  const Plan* plan() const override { return plan_.get(); }
  State* state() override { return state_ ? &*state_ : nullptr; }

 private:
  std::shared_ptr<const Plan> plan_;
  std::optional<State> state_;
  std::unique_ptr<Session> session_;
  std::vector<PlanParam> params_, results_;
};

}  // namespace

std::unique_ptr<Runner> plan_runner(std::shared_ptr<const Plan> plan, const PlanLimits& limits) {
  return std::make_unique<PlanRunner>(std::move(plan), limits);
}

}  // namespace hone::cli
