#include "compile/optimize.h"

#include <algorithm>
#include <cmath>

#include "backend/backend.h"
#include "compile/difference.h"
#include "compile/sample.h"
#include "compile/stats.h"
#include "compile/whole.h"
#include "ref/compare.h"
#include "runtime/session.h"
#include "schedule/cost.h"

namespace hone {

namespace {

struct Entry {
  StrategyRecord record;
  std::shared_ptr<Plan> plan;  // null: the interpreter, or failed
  std::unique_ptr<Session> session;
  std::vector<double> times;
  std::vector<ResultError> errors;
  CompileReport report;
};

// What the compiled results are held against.
struct Reference {
  std::vector<Array> inputs;
  std::vector<Wide> strict, wide;
  const SourceVariant* variant = nullptr;
};

class Race {
 public:
  Race(const Source& source, const OptimizeRequest& request) : source_(source), request_(request) {}

  Optimized run() {
    prepare_inputs();
    for (const std::string& strategy : request_.strategies) entries_.push_back(make(strategy));
    time();
    return choose();
  }

 private:
  void say(const std::string& line) const {
    if (request_.progress) request_.progress(line);
  }

  void prepare_inputs() {
    source_with_samples_ = source_;
    if (source_with_samples_.samples.empty()) {
      const SourceVariant& v = source_.variants[0];
      std::optional<Sizing> sizes = sample_sizes(v.function.param_types(), conditions_of(v));
      if (!sizes)
        throw UserError(source_.name, ": no sizes fit the model; give sample inputs with --inputs");
      std::vector<Array> inputs;
      for (const Type& t : v.function.param_types())
        inputs.push_back(sample_array(t, *sizes, Fill::random, inputs.size() + 1));
      source_with_samples_.samples.push_back(inputs);
      say("no sample inputs given: random data is used");
    }
    for (const std::vector<Array>& inputs : source_with_samples_.samples) add_reference(inputs);
  }

  void add_reference(const std::vector<Array>& inputs) {
    std::vector<std::vector<std::int64_t>> dims;
    for (const Array& a : inputs) dims.push_back(a.dims());
    for (const SourceVariant& v : source_.variants) {
      Sizing sizes = bind_sizes(v.function, dims);
      if (!guards_hold(v.guards, sizes)) continue;
      Reference r{inputs, {}, {}, &v};
      const double gmac = static_cast<double>(flops_at(flops_of(v.function), sizes)) / 2e9;
      if (request_.compile.verification == Verification::model &&
          gmac <= request_.most_verified_gmac) {
        r.strict = evaluate_wide(v.function, inputs, Mode::stepwise);
        r.wide = evaluate_wide(v.function, inputs, Mode::wide);
      } else if (request_.compile.verification == Verification::model) {
        say(cat("whole-model verification is left out: ", gmac, " G multiply-adds are above ",
                request_.most_verified_gmac));
      }
      references_.push_back(std::move(r));
      return;
    }
  }

  Entry make(const std::string& strategy) {
    Entry e;
    e.record.name = strategy;
    try {
      if (strategy == "ref") return e;
      if (const std::string why = absence_of(strategy); !why.empty()) {
        e.record.failure = "no part taken: " + why;
        return e;
      }
      say("compiling with strategy " + strategy);
      CompileOptions options = request_.compile;
      options.strategy = strategy;
      options.measure = strategy == "auto";
      options.keep = request_.profile;
      e.plan = std::make_shared<Plan>(compile(source_with_samples_, options, &e.report));
      e.record.compile_ms = e.report.total_ms;
      if (strategy == "onednn" && e.report.library_groups == 0) {
        e.plan = nullptr;
        e.record.failure = "no part taken";
        return e;
      }
      e.session = std::make_unique<Session>(Executable::load(e.plan, open_device("cpu")),
                                            SessionOptions{.threads = options.threads});
      verify(e);
    } catch (const UserError& error) {
      e.plan = nullptr;
      e.session = nullptr;
      e.record.failure = error.what();
    }
    return e;
  }

  // With the node that is to blame.
  [[noreturn]] void refuse(const Entry& e, const Reference& r, std::size_t result,
                           const Comparison& c) const {
    CompileOptions options = request_.compile;
    options.strategy = e.record.name;
    const std::optional<Difference> d = first_difference(source_, options, r.inputs);
    throw UserError("refused: result ", result, " differs from the reference: ", c,
                    "; the first difference is ",
                    d ? cat("in ", d->where, ": ", d->comparison)
                      : "in no value that can be looked at; does it come with timing or threads?");
  }

  void verify(Entry& e) {
    for (std::size_t sample = 0; sample < references_.size(); ++sample) {
      const Reference& r = references_[sample];
      std::vector<Array> got = e.session->run(r.inputs);
      e.record.peak_bytes = std::max(e.record.peak_bytes, peak(*e.session, r.inputs));
      if (r.wide.empty()) continue;
      for (std::size_t i = 0; i < got.size(); ++i) {
        Comparison c = accept(got[i], r.strict[i], r.wide[i]);
        e.record.max_error = std::max(e.record.max_error, c.max_rel_error);
        const double most = largest(r.wide[i]);
        e.record.error_limit = std::max(e.record.error_limit, most > 0 ? c.limit / most : c.limit);
        e.errors.push_back({sample, i, c, most});
        if (!c.ok) refuse(e, r, i, c);
      }
    }
  }

  static double largest(const Wide& w) {
    double most = 0;
    for (double x : w.reals)
      if (std::isfinite(x)) most = std::max(most, std::fabs(x));
    return most;
  }

  static std::int64_t peak(Session& session, const std::vector<Array>& inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      session.bind_input(i, {inputs[i].dtype(), inputs[i].dims(),
                             const_cast<std::byte*>(inputs[i].bytes().data())});
    return static_cast<std::int64_t>(session.memory().peak());
  }

  // The first sample is what is timed.
  void time() {
    const Reference& r = references_.at(0);
    std::vector<std::function<void()>> runs;
    std::vector<Entry*> field;
    for (Entry& e : entries_) {
      if (e.record.name == "ref") {
        time_reference(e, r);
      } else if (e.session) {
        field.push_back(&e);
        runs.push_back([session = e.session.get(), &r] { session->run(r.inputs); });
      }
    }
    if (field.empty()) return;
    say(cat("timing ", field.size(), " strategies, ", request_.rounds, " interleaved rounds"));
    std::vector<std::vector<double>> times =
        race(runs, {.rounds = request_.rounds, .least_sample_ms = 2, .most_seconds = 20});
    for (std::size_t i = 0; i < field.size(); ++i) set_times(*field[i], std::move(times[i]));
  }

  static void set_times(Entry& e, std::vector<double> times) {
    Interval t = median_interval(times);
    e.record.ms = t.median;
    e.record.low = t.low;
    e.record.high = t.high;
    e.times = std::move(times);
  }

  // The interpreter is slow; three runs say enough.
  void time_reference(Entry& e, const Reference& r) {
    std::function<void()> once = [&] { evaluate(r.variant->function, r.inputs); };
    std::vector<std::vector<double>> times =
        race(std::span(&once, 1), {.rounds = 3, .least_sample_ms = 0, .most_seconds = 3});
    set_times(e, std::move(times[0]));
  }

  Optimized choose() {
    Entry* best = nullptr;
    for (Entry& e : entries_)
      if (e.plan && (!best || e.record.name == "auto")) best = &e;
    if (!best) throw UserError(source_.name, ": no strategy gave a plan", reasons());
    for (Entry& e : entries_)
      if (e.plan && &e != best && is_clearly_faster(e.times, best->times)) best = &e;
    best->record.chosen = true;
    Optimized out;
    out.plan = *best->plan;
    if (request_.profile) {
      say("timing each step of the plan");
      out.profile = profile(Executable::load(best->plan, open_device("cpu")), references_[0].inputs,
                            {.threads = request_.compile.threads});
    }
    for (Entry& e : entries_) {
      if (!e.times.empty())
        e.record.ratio_to_best = e.times.size() == best->times.size()
                                     ? paired_ratio(e.times, best->times).median
                                     : e.record.ms / best->record.ms;
      out.plan.strategies.push_back(e.record);
      out.times.push_back(e.times);
      out.errors.push_back(std::move(e.errors));
      out.compiled.push_back(std::move(e.report));
    }
    return out;
  }

  std::string reasons() const {
    std::string out;
    for (const Entry& e : entries_)
      if (!e.record.failure.empty()) out += cat("\n  ", e.record.name, ": ", e.record.failure);
    return out;
  }

  const Source& source_;
  const OptimizeRequest& request_;
  Source source_with_samples_;
  std::vector<Reference> references_;
  std::vector<Entry> entries_;
};

}  // namespace

Optimized optimize(const Source& source, const OptimizeRequest& request) {
  return Race(source, request).run();
}

}  // namespace hone
