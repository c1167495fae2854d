#include "compile/profile.h"

#include <algorithm>
#include <chrono>
#include <unordered_map>

#include "backend/backend.h"
#include "ref/evaluate.h"

namespace hone {

namespace {

using Clock = std::chrono::steady_clock;

double microseconds(Clock::duration d) {
  return std::chrono::duration<double, std::micro>(d).count();
}

// Measurements of one run.
struct Run {
  double us = 0;
  std::vector<Profile::Event> events;
  bool is_cut = false;
  std::vector<double> step_us;
  std::vector<int> calls;
};

class Profiler {
 public:
  Profiler(const std::shared_ptr<const Executable>& executable, const std::vector<Array>& inputs,
           const ProfileOptions& options)
      : executable_(executable), inputs_(inputs), options_(options) {}

  Profile run() {
    SessionOptions session;
    session.pool = make_thread_pool({.threads = options_.threads, .affinity = {}});
    session.trace = [this](const StepEvent& e) { note(e); };
    out_.threads = session.pool->threads();
    Session traced(executable_, session);
    run_once(traced);  // warms caches and finds the variant
    number_steps();
    collect(traced);
    summarize();
    out_.sizes = bound_sizes();
    out_.memory = memory(traced);
    const Backend& from = backend(executable_->device()->name());
    if (from.measure) out_.rates = from.measure(out_.threads);
    return std::move(out_);
  }

 private:
  void note(const StepEvent& e) {
    if (!first_step_) first_step_ = &e.step;
    if (numbers_.empty()) return;
    const std::uint32_t step = numbers_.at(&e.step);
    const double us = e.device_ms ? *e.device_ms * 1000 : microseconds(e.end - e.start);
    now_.step_us[step] += us;
    ++now_.calls[step];
    if (now_.events.size() < Profile::most_events)
      now_.events.push_back({step, microseconds(e.start - started_), us});
    else
      now_.is_cut = true;
  }

  void run_once(Session& session) {
    now_ = {};
    now_.step_us.assign(numbers_.size(), 0);
    now_.calls.assign(numbers_.size(), 0);
    started_ = Clock::now();
    session.run(inputs_);
    now_.us = microseconds(Clock::now() - started_);
  }

  void number_steps() {
    const Plan& plan = executable_->plan();
    for (std::uint32_t v = 0; v < plan.main().variants.size(); ++v) {
      numbers_.clear();
      for_each_step(plan.main().variants[v].steps, [&](const Step& s) {
        numbers_.emplace(&s, static_cast<std::uint32_t>(numbers_.size()));
      });
      out_.variant = v;
      if (!first_step_ || numbers_.contains(first_step_)) return;
    }
    HONE_ASSERT(false, "a profiled step is in no variant");
  }

  void collect(Session& session) {
    const Clock::time_point start = Clock::now();
    while (static_cast<int>(runs_.size()) < options_.runs &&
           (runs_.size() < 3 || microseconds(Clock::now() - start) < options_.most_seconds * 1e6)) {
      run_once(session);
      runs_.push_back(std::move(now_));
    }
  }

  void summarize() {
    out_.runs = static_cast<int>(runs_.size());
    out_.steps.resize(numbers_.size());
    std::vector<double> samples(runs_.size());
    for (std::size_t s = 0; s < out_.steps.size(); ++s) {
      for (std::size_t i = 0; i < runs_.size(); ++i) samples[i] = runs_[i].step_us[s] / 1000;
      out_.steps[s] = {median_interval(samples), runs_[0].calls[s]};
    }
    std::sort(runs_.begin(), runs_.end(), [](const Run& a, const Run& b) { return a.us < b.us; });
    out_.run_ms = runs_[runs_.size() / 2].us / 1000;
    out_.timeline = std::move(runs_[0].events);
    out_.timeline_is_cut = runs_[0].is_cut;
  }

  Sizing bound_sizes() const {
    Function f;
    for (const PlanParam& p : executable_->plan().main().params) f.add_param(p.type, p.name);
    std::vector<std::vector<std::int64_t>> dims;
    for (const Array& a : inputs_) dims.push_back(a.dims());
    return bind_sizes(f, dims);
  }

  MemoryReport memory(Session& session) const {
    for (std::size_t i = 0; i < inputs_.size(); ++i) session.bind_input(i, as_input(inputs_[i]));
    return session.memory();
  }

  const std::shared_ptr<const Executable>& executable_;
  const std::vector<Array>& inputs_;
  const ProfileOptions& options_;
  Profile out_;
  const Step* first_step_ = nullptr;
  std::unordered_map<const Step*, std::uint32_t> numbers_;
  Clock::time_point started_;
  Run now_;
  std::vector<Run> runs_;
};

}  // namespace

Profile profile(const std::shared_ptr<const Executable>& executable,
                const std::vector<Array>& inputs, const ProfileOptions& options) {
  return Profiler(executable, inputs, options).run();
}

}  // namespace hone
