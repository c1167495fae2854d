#include "compile/optimize.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <list>
#include <map>

#include "backend/backend.h"
#include "base/json.h"
#include "base/machine.h"
#include "base/thread_pool.h"
#include "compile/blame.h"
#include "compile/build_id.h"
#include "compile/guilty.h"
#include "compile/memory_need.h"
#include "compile/stats.h"
#include "compile/store.h"
#include "compile/timed_run.h"
#include "ir/refusal.h"
#include "plan/content_hash.h"
#include "ref/expected.h"
#include "runtime/memory_limit.h"
#include "runtime/session.h"
#include "schedule/cost.h"
#include "verify/model/expansion.h"
#include "verify/model/explanation.h"
#include "verify/model/made_inputs.h"
#include "verify/model/repeat.h"
#include "verify/model/self_test.h"
#include "verify/model/special.h"
#include "verify/model/whole.h"
#include "verify/sample.h"
#include "verify/sizes.h"

namespace hone {

namespace {

struct Entry {
  StrategyRecord record;
  std::shared_ptr<Plan> plan;  // null: the interpreter, or failed
  std::shared_ptr<const Executable> executable;
  std::unique_ptr<Session> session;
  std::vector<double> times;
  std::vector<ResultError> errors;
  CompileReport report;
  Tried tried;
};

// The expected results, evaluated only if a result was not judged in an earlier run.
struct Reference {
  std::vector<Array> inputs;
  Sizing sizes;
  const SourceVariant* variant = nullptr;
  bool is_judge = false;
  bool is_made_up = false;  // in addition to the samples: other sizes
  bool was_run = false;
  std::string refused = {};  // why these made-up inputs are not valid
  std::unique_ptr<Evaluator> evaluator = {};
  std::optional<Expected> expected = {};

  void evaluate() {
    if (expected || !is_judge) return;
    evaluator = std::make_unique<Evaluator>(variant->function);
    expected.emplace(*evaluator, inputs, Mode::stepwise);
  }
};

Json to_json(const ResultError& e) {
  const Comparison& c = e.comparison;
  return Json::Object{{"sample", e.sample},       {"result", e.result},
                      {"largest", e.largest},     {"max_abs_error", c.max_abs_error},
                      {"undecided", c.undecided}, {"max_rel_error", c.max_rel_error},
                      {"limit", c.limit}};
}

ResultError result_error(const Json& j) {
  ResultError e;
  e.sample = static_cast<std::size_t>(j.at("sample").integer());
  e.result = static_cast<std::size_t>(j.at("result").integer());
  e.largest = j.at("largest").real();
  e.comparison.max_abs_error = j.at("max_abs_error").real();
  e.comparison.max_rel_error = j.at("max_rel_error").real();
  e.comparison.limit = j.at("limit").real();
  e.comparison.undecided = j.at("undecided").integer();
  return e;
}

class Optimizer {
 public:
  Optimizer(const Source& source, const OptimizeRequest& request)
      : source_(source),
        request_(request),
        store_(std::make_shared<CompileStore>(request.compile.cache)) {}

  Optimized run() {
    prepare_inputs();
    std::vector<std::string> names = request_.strategies;
    if (names.empty())
      for (std::string_view name : strategies())
        if (absence_of(name).empty() && other_backend(name).empty()) names.emplace_back(name);
    measuring_ = static_cast<int>(std::ranges::count_if(names, [&](const std::string& name) {
      return measures(name) && other_backend(name).empty();
    }));
    for (const std::string& name : names) entries_.push_back(make(name));
    time();
    return finish(choose());
  }

 private:
  static bool measures(const std::string& strategy) {
    return strategy == "auto" || (strategy == "multi" && absence_of(strategy).empty());
  }

  // Why a strategy cannot compile for the given targets; empty: it can.
  std::string other_backend(std::string_view strategy) const {
    if (request_.compile.targets.empty() && !request_.compile.backend) return "";
    const Backend& b = backend_of(request_.compile);
    if (strategy == "ref" || strategy == "auto" || strategy == b.name ||
        std::ranges::count(b.libraries, strategy) > 0)
      return "";
    return cat("the given targets are those of ", b.name);
  }

  void say(const std::string& line) const {
    if (request_.progress) request_.progress(line);
  }

  void prepare_inputs() {
    source_with_samples_ = source_;
    if (source_.samples.empty()) make_up_sample();
    for (const std::vector<Array>& inputs : source_with_samples_.samples) add_reference(inputs);
    add_other_sizes();
    check_definitions();
  }

  // For the first variant that accepts made-up inputs.
  void make_up_sample() {
    for (const SourceVariant& v : source_.variants) {
      std::optional<MadeInputs> made = made_inputs_and_sizes(v.function, conditions_of(v));
      if (made && made->problem.empty()) {
        no_inputs_.clear();
        source_with_samples_.samples.push_back(std::move(made->arrays));
        assumptions_ = std::move(made->assumptions);
        has_chosen_reals_ = made->has_chosen_reals;
        say("no sample inputs given: random data is used");
        return;
      }
      if (no_inputs_.empty())
        no_inputs_ = made ? "no valid inputs were found: " + made->problem
                          : "no sizes were found that it supports";
    }
  }

  // The first that a strategy was run on; null if there are none.
  const Reference* usual() const {
    const auto it = std::ranges::find_if(
        references_, [](const Reference& r) { return r.was_run && r.refused.empty(); });
    return it == references_.end() ? nullptr : &*it;
  }
  std::string why_not_run() const {
    if (usual()) return "";
    return references_.empty() ? no_inputs_
                               : "made-up inputs were refused: " + references_[0].refused;
  }

  // Checks at the sizes of each sample.
  void check_definitions() const {
    for (auto r = references_.begin(); r != references_.end(); ++r) {
      const auto is_same = [&](const Reference& other) {
        return other.variant == r->variant && other.sizes == r->sizes;
      };
      if (r->is_judge && !r->is_made_up && std::none_of(references_.begin(), r, is_same))
        check_expansions(r->variant->function, r->sizes);
    }
  }

  void add_reference(const std::vector<Array>& inputs) {
    std::vector<std::vector<std::int64_t>> dims;
    for (const Array& a : inputs) dims.push_back(a.dims());
    for (const SourceVariant& v : source_.variants) {
      Sizing sizes = bind_sizes(v.function, dims);
      if (!guards_hold(v.guards, sizes)) continue;
      const double gmac = static_cast<double>(flops_at(flops_of(v.function), sizes)) / 2e9;
      const bool is_asked_for = request_.compile.verification == Verification::model;
      const std::int64_t bytes = bytes_to_evaluate(v.function, sizes), most = most_bytes();
      std::string reason;
      if (gmac > request_.most_verified_gmac)
        reason = cat(gmac, " G multiply-adds are above ", request_.most_verified_gmac);
      else if (bytes > most)
        reason = cat("the reference needs ", bytes, " bytes, more than ", most);
      const bool is_judge = is_asked_for && reason.empty();
      if (is_asked_for && !is_judge) say("whole-model verification is skipped: " + reason);
      if (!reason.empty()) not_judged_ = std::move(reason);
      references_.push_back({inputs, sizes, &v, is_judge, false});
      return;
    }
  }

  // The memory that the reference may use: as much as the plan may, or a quarter of the machine's.
  std::int64_t most_bytes() const {
    return request_.compile.max_memory ? *request_.compile.max_memory : usable_memory() / 4;
  }

  // Adds one more set of sizes with made-up numbers for each variant with symbols. Skips inputs
  // that the function itself refuses.
  void add_other_sizes() {
    constexpr double most_gmac = 0.1;
    if (request_.compile.verification != Verification::model || !no_inputs_.empty()) return;
    const auto is_tried = [&](const SourceVariant& v, const Sizing& sizes) {
      return std::ranges::any_of(
          references_, [&](const Reference& r) { return r.variant == &v && r.sizes == sizes; });
    };
    for (const SourceVariant& v : source_.variants) {
      std::vector<Sizing> all = sizes_to_check_also(v);
      std::ranges::reverse(all);  // the largest that needs little work
      for (const Sizing& sizes : all) {
        if (is_tried(v, sizes) ||
            static_cast<double>(flops_at(flops_of(v.function), sizes)) / 2e9 > most_gmac)
          continue;
        try {
          Reference r{made_inputs(v.function, sizes).arrays, sizes, &v, true, true};
          r.evaluate();
          references_.push_back(std::move(r));
          break;
        } catch (const UserError&) {
          continue;
        }
      }
    }
  }

  Entry make(const std::string& strategy) {
    Entry e;
    e.record.name = strategy;
    try {
      if (strategy == "ref") return e;
      for (const std::string& why : {absence_of(strategy), other_backend(strategy)})
        if (!why.empty()) {
          e.record.failure = "skipped: " + why;
          return e;
        }
      say("compiling with strategy " + strategy);
      CompileOptions options = request_.compile;
      options.strategy = strategy;
      options.measure = options.tune = measures(strategy);
      options.budget = request_.budget * 2 / 3 / measuring_;
      // The row `multi` covers several devices.
      if (strategy == "auto" && measuring_ > 1) options.backend = &default_backend();
      options.slow_library = false;
      options.store = store_;
      options.progress = request_.progress;
      options.keep = request_.profile;
      options.is_written = true;
      e.plan = std::make_shared<Plan>(compile(source_with_samples_, options, &e.report));
      e.record.compile_ms = e.report.total_ms;
      if (names_library(strategy) && e.report.library_groups == 0) {
        e.plan = nullptr;
        e.record.failure = "skipped: it computes no part of this model";
        return e;
      }
      e.executable = Executable::load(e.plan, open_devices(*e.plan));
      state_memory(e);
      e.session =
          std::make_unique<Session>(e.executable, SessionOptions{.threads = options.threads});
      verify(e);
    } catch (const UserError& error) {
      e.plan = nullptr;
      e.session = nullptr;
      e.record.failure = error.what();
      tell_refusal(e.record);
    }
    return e;
  }

  void tell_refusal(const StrategyRecord& r) const {
    if (!request_.on_refusal || references_.empty() ||
        r.failure.find("refused: ") == std::string::npos)
      return;
    const Reference& first = references_[0];
    std::vector<Sizing> sizes;
    for (const Reference& ref : references_)
      if (ref.variant == first.variant) sizes.push_back(ref.sizes);
    request_.on_refusal({r.name, r.failure, first.variant->function, sizes, first.inputs});
  }

  void state_memory(Entry& e) const {
    const std::optional<std::int64_t> limit = request_.compile.max_memory;
    for (const Reference& r : references_) {
      if (r.is_made_up) continue;
      const MemoryReport m = memory_need(e.executable, r.inputs, request_.compile.threads, true);
      if (limit) check_memory_need(m, e.plan->name, *limit, true);
      e.record.peak_bytes = std::max(e.record.peak_bytes, static_cast<std::int64_t>(m.peak()));
    }
  }
  // Other sizes than those of the samples are tried as far as the limit allows.
  bool is_too_large(const Entry& e, const Reference& r) const {
    const std::optional<std::int64_t> limit = request_.compile.max_memory;
    return limit && r.is_made_up &&
           !fits(memory_need(e.executable, r.inputs, request_.compile.threads, false), *limit);
  }

  // The message names the faulty node.
  [[noreturn]] void refuse(const Entry& e, const Reference& r, std::size_t result,
                           const Comparison& c) const {
    CompileOptions options = request_.compile;
    options.strategy = e.record.name;
    const std::optional<Difference> d = first_difference(source_, options, r.inputs);
    throw UserError("refused: result ", result, " differs from the reference", at(r), ": ", c,
                    "; the first difference is ",
                    d ? cat("in ", d->where, ": ", d->comparison)
                      : "in no value that can be inspected; the difference may depend on timing or "
                        "on the thread count",
                    guilty_pass(*r.variant, options.passes, r.inputs));
  }

  std::string name_of(const Reference& r) const {
    const bool is_given = !r.is_made_up && !source_.samples.empty();
    return cat(is_given ? "given inputs" : "random inputs", at(r));
  }

  static std::string at(const Reference& r) {
    std::string out;
    for (const auto& [name, value] : std::map(r.sizes.begin(), r.sizes.end()))
      out += cat(out.empty() ? " for " : ", ", name, " = ", value);
    return out;
  }

  void verify(Entry& e) {
    const auto start = Clock::now();
    compare(e);
    e.tried.kernels = e.report.verified;
    e.tried.kernels_before = e.report.verified_from_cache;
    e.tried.kernels_shortly = e.report.verified_shortly;
    e.tried.kernels_ms = e.report.verify_ms;
    e.tried.model_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  }

  void compare(Entry& e) {
    std::optional<Hash128> contents;
    std::vector<Repeat> runs;
    std::string keys = "repeats";
    constexpr std::chrono::seconds most_repeated{1};
    Clock::duration slowest{};
    for (std::size_t sample = 0; sample < references_.size(); ++sample) {
      Reference& r = references_[sample];
      if (!r.refused.empty()) continue;
      if (is_too_large(e, r)) {
        say(cat("not tried, because it needs more memory than is allowed: ", name_of(r)));
        continue;
      }
      const Clock::time_point start = Clock::now();
      std::vector<Array> got;
      try {
        got = e.session->run(r.inputs);
      } catch (const OutOfMemory&) {
        throw;
      } catch (const UserError& refusal) {
        if (!may_be_refused(r)) throw;
        if (!r.is_made_up) r.refused = refusal.what();
        continue;
      }
      r.was_run = true;
      slowest = std::max(slowest, Clock::now() - start);
      if (!r.is_judge) continue;
      if (!contents) contents = contents_of(*e.plan);
      const Hash128 key = verdict_key(r, *contents);
      std::optional<std::vector<ResultError>> judged = known_verdict(key);
      keys += cat(" ", to_hex(key));
      if (!judged && !can_judge(r)) continue;
      if (!judged) judged = judge(e, r, sample, got, key);
      runs.push_back({r.inputs, got});
      e.tried.inputs.push_back(name_of(r));
      for (const ResultError& error : *judged) {
        const Comparison& c = error.comparison;
        e.record.max_error = std::max(e.record.max_error, c.max_rel_error);
        e.record.error_limit =
            std::max(e.record.error_limit, error.largest > 0 ? c.limit / error.largest : c.limit);
        if (!r.is_made_up) e.errors.push_back(error);
      }
    }
    if (runs.empty()) {
      e.tried.left_out = not_judged_;
      return;
    }
    if (slowest > most_repeated) {
      e.tried.left_out = "one run takes more than a second";
      say(cat("it is not run again on other threads and in other memory: ", e.tried.left_out));
      return;
    }
    // A plan that is right once may still fail in repeated runs.
    const Hash128 key = hash128(keys);
    if (const auto known = store_->verdicts.find(key)) {
      for (const std::byte threads : *known)
        e.tried.threads.push_back(std::to_integer<int>(threads));
      return;
    }
    add_extreme_run(e, runs);
    e.tried.threads =
        check_repeats(Executable::load(e.plan, open_devices(*e.plan)), runs, most_repeated);
    std::vector<std::byte> tried;
    for (const int threads : e.tried.threads) tried.push_back(static_cast<std::byte>(threads));
    store_->verdicts.store(key, tried);
  }

  // Whether a plan may refuse these inputs: made-up ones that no strategy accepted, if the
  // reference refuses them too, may decide otherwise by rounding, or is too slow to tell.
  bool may_be_refused(Reference& r) const {
    if (r.was_run || (!r.is_made_up && !source_.samples.empty())) return false;
    if (!r.is_judge) return true;
    try {
      r.evaluate();
    } catch (const InputRefusal&) {
      return true;
    }
    return r.expected->may_be_refused();
  }

  // Uses the first sizes. The reference computes only a few elements, because all may be too slow.
  // Few numbers are special, because long sums of many special numbers are always NaN.
  void add_extreme_run(const Entry& e, std::vector<Repeat>& runs) const {
    const Reference& r = *usual();
    const Function& f = r.variant->function;
    const bool keeps_denormals =
        std::ranges::all_of(e.session->executable().devices(),
                            [](const auto& d) { return d->limits().keeps_denormals; });
    std::optional<std::vector<Array>> inputs =
        special_like(f, r.inputs, is_medium(f, r.sizes) ? extreme_of(keeps_denormals) : Fill::rare);
    if (!inputs) return;
    std::vector<Array> got;
    std::string wrong;
    try {
      got = e.session->run(*inputs);
      wrong = wrong_special(f, *inputs, got);
    } catch (const UserError&) {
      return;  // an index computed from such numbers is refused
    }
    if (!wrong.empty())
      throw UserError("refused: ", wrong,
                      guilty_pass(*r.variant, request_.compile.passes, *inputs));
    runs.push_back({std::move(*inputs), std::move(got)});
  }

  Hash128 verdict_key(const Reference& r, const Hash128& contents) const {
    std::string text = cat("model ", to_hex(whole_key(r.variant->function, r.sizes, contents)));
    for (const Array& a : r.inputs) text += cat(" ", a.type(), " ", to_hex(hash128(a.bytes())));
    return hash128(text);
  }

  std::optional<std::vector<ResultError>> known_verdict(const Hash128& key) {
    const std::optional<std::vector<std::byte>> entry = store_->verdicts.find(key);
    if (!entry) return std::nullopt;
    try {
      std::vector<ResultError> out;
      const std::string_view text(reinterpret_cast<const char*>(entry->data()), entry->size());
      const Json all = Json::parse(text, "verdict");
      for (const Json& j : all.array()) out.push_back(result_error(j));
      return out;
    } catch (const UserError&) {
      return std::nullopt;  // not written by judge(): judge again and overwrite
    }
  }

  // False if the reference refuses made-up inputs that the plan accepts: rounding decided.
  bool can_judge(Reference& r) const try {
    r.evaluate();
    return true;
  } catch (const InputRefusal& refusal) {
    if (!source_.samples.empty() && !r.is_made_up) throw;
    r.refused = refusal.what();
    return false;
  }

  std::vector<ResultError> judge(const Entry& e, Reference& r, std::size_t sample,
                                 const std::vector<Array>& got, const Hash128& key) {
    Explanation rounding(r.variant->function, r.inputs, *r.expected);
    std::vector<ResultError> out;
    Json entry = Json::Array{};
    for (std::size_t i = 0; i < got.size(); ++i) {
      Comparison c = r.expected->accept(i, widen(got[i]));
      if (!c.ok) {
        const Function& f = r.variant->function;
        const bool is_explained = !c.problem.empty()      ? rounding.explains_sizes(i)
                                  : is_medium(f, r.sizes) ? rounding.explains(i, got[i])
                                                          : rounding.rounding_explains(
                                                                i, got[i], evaluations(f, r.sizes));
        if (!is_explained) refuse(e, r, i, c);
        c.limit = std::max(c.limit, c.max_abs_error);
      }
      out.push_back({sample, i, c, largest(r.expected->wide()[i])});
      entry.push(to_json(out.back()));
    }
    const std::string text = entry.text();
    store_->verdicts.store(key, std::as_bytes(std::span(text)));
    return out;
  }

  // To explain a difference by rounding: as many as take about as long as the first evaluation of
  // the largest function that is verified.
  static int evaluations(const Function& f, const Sizing& sizes) {
    constexpr std::int64_t most_flops = 10'000'000'000;
    const std::int64_t flops = std::max<std::int64_t>(flops_at(flops_of(f), sizes), 1);
    return static_cast<int>(std::clamp<std::int64_t>(most_flops / flops, 2, Rounding::all));
  }

  static double largest(const Wide& w) {
    double most = 0;
    for (double x : w.reals)
      if (std::isfinite(x)) most = std::max(most, std::fabs(x));
    return most;
  }

  // Times the first sample.
  void time() {
    if (!usual()) return;
    const Reference& r = *usual();
    for (const auto& [name, value] : std::map(r.sizes.begin(), r.sizes.end()))
      timing_.sizes += cat(timing_.sizes.empty() ? "" : ", ", name, " = ", value);
    timing_.threads =
        request_.compile.threads > 0 ? request_.compile.threads : default_thread_count();
    if (std::ranges::none_of(entries_, [](const Entry& e) { return bool(e.plan); })) return;
    for (Entry& e : entries_) {
      if (e.record.name != "ref") continue;
      try {
        set_times(e, {time_of_reference(r)});
      } catch (const OutOfMemory& o) {
        e.record.failure = o.what();
      }
    }
    time_plans(request_.rounds);
  }

  void time_plans(int rounds) {
    const Reference& r = *usual();
    std::list<TimedRun> timed;
    std::vector<std::function<void()>> runs;
    std::vector<Entry*> field;
    for (Entry& e : entries_) {
      if (!e.session) continue;
      field.push_back(&e);
      for (const std::shared_ptr<Device>& d : e.session->executable().devices())
        timing_.leaves_copies_out = timing_.leaves_copies_out || !d->shares_host_memory();
      runs.emplace_back(std::ref(timed.emplace_back(*e.session, r.inputs)));
    }
    if (field.empty()) return;
    say(cat("timing ", field.size(), " strategies, ", rounds, " interleaved rounds"));
    const BusyTime busy = busy_time();
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::vector<double>> times =
        time_interleaved(runs, {.rounds = rounds,
                                .least_sample_ms = 2,
                                .most_seconds = request_.budget / 3,
                                .drop_above = 3});
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    timing_.busy = share_of_others(busy, took.count());
    timing_.rounds = 0;
    for (std::size_t i = 0; i < field.size(); ++i) {
      timing_.rounds = std::max(timing_.rounds, static_cast<int>(times[i].size()));
      set_times(*field[i], std::move(times[i]));
    }
  }

  static void set_times(Entry& e, std::vector<double> times) {
    Interval t = median_interval(times);
    e.record.ms = t.median;
    e.record.low = t.low;
    e.record.high = t.high;
    e.times = std::move(times);
  }

  // The interpreter is slow, so one run is enough.
  static double time_of_reference(const Reference& r) {
    const auto start = std::chrono::steady_clock::now();
    evaluate(r.variant->function, r.inputs);
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
        .count();
  }

  // The default unless another is clearly faster; the choice of an earlier run is kept. If the
  // times contradict it, they are measured again in more rounds, because a busy machine is a
  // frequent cause.
  Entry* choose() {
    if (!usual()) return fastest();
    for (;;) {
      Entry* best = as_before(fastest());
      const Entry* rival = faster_than(*best);
      if (!rival || timing_.repeats == most_repeats) {
        keep_choice(*best);
        return best;
      }
      ++timing_.repeats;
      say(cat(rival->record.name, " was faster than ", best->record.name,
              ", which is chosen: timing again"));
      time_plans(std::max(request_.rounds, least_rounds) * (1 + timing_.repeats));
    }
  }

  Entry* fastest() {
    Entry* best = nullptr;
    for (Entry& e : entries_)
      if (e.plan && (!best || e.record.name == "auto")) best = &e;
    if (!best) throw UserError(source_.name, ": no strategy gave a plan", reasons());
    for (Entry& e : entries_)
      if (usual() && e.plan && &e != best && is_clearly_faster(e.times, best->times)) best = &e;
    return best;
  }

  // The fastest of those that took less than 0.97 of its time; null: none.
  Entry* faster_than(const Entry& best) {
    Entry* out = nullptr;
    for (Entry& e : entries_)
      if (e.plan && e.record.ms < 0.97 * best.record.ms && (!out || e.record.ms < out->record.ms))
        out = &e;
    return out;
  }

  Optimized finish(Entry* best) {
    best->record.chosen = true;
    Optimized out;
    out.plan = *best->plan;
    out.tried = best->tried;
    out.assumptions = assumptions_;
    for (const Reference& r : references_)
      if (!r.is_made_up) out.inputs.push_back(r.inputs);
    out.timing = timing_;
    out.not_run = why_not_run();
    if (!out.not_run.empty()) out.tried.left_out = out.not_run;
    if (request_.profile && usual()) {
      say("timing each step of the plan");
      out.profile = profile(Executable::load(best->plan, open_devices(*best->plan)),
                            usual()->inputs, {.threads = request_.compile.threads});
    }
    for (Entry& e : entries_) {
      if (!e.times.empty())
        e.record.ratio_to_best = e.times.size() == best->times.size()
                                     ? paired_ratio(e.times, best->times).median
                                     : e.record.ms / best->record.ms;
      out.plan.main().strategies.push_back(e.record);
      out.times.push_back(e.times);
      out.errors.push_back(std::move(e.errors));
      out.compiled.push_back(std::move(e.report));
    }
    say("recording what the plan computes");
    const bool are_needed = has_made_integers() || has_chosen_reals_;
    record_self_tests(out.plan, are_needed ? source_with_samples_.samples : source_.samples,
                      best->record.error_limit);
    return out;
  }

  // Keeps the choice of an earlier run among the same plans, unless another is faster by more than
  // noise can explain. So two runs on a noisy machine give the same plan.
  Entry* as_before(Entry* now) {
    constexpr double more_than_noise = 0.9;  // relative to the time of the earlier choice
    Entry* before = now;
    if (const std::optional<std::vector<std::byte>> known = store_->times.find(choice_key())) {
      const std::string name = chosen_name(*known);
      for (Entry& e : entries_)
        if (e.plan && e.record.name == name) before = &e;
      const bool can_compare = timing_.repeats == most_repeats &&
                               now->times.size() == before->times.size() &&
                               now->times.size() >= std::size_t{least_rounds};
      if (can_compare && paired_ratio(now->times, before->times).high < more_than_noise)
        before = now;
    }
    if (before != now) say(cat("the choice of an earlier run is kept: ", before->record.name));
    return before;
  }

  void keep_choice(const Entry& e) {
    const std::string entry = Json(Json::Object{{"chosen", e.record.name}}).text();
    store_->times.store(choice_key(), std::as_bytes(std::span(entry)));
  }

  // Integers other than those that a self-test finds by itself.
  bool has_made_integers() const {
    return source_.samples.empty() && !source_with_samples_.samples.empty() &&
           std::ranges::any_of(source_with_samples_.samples[0],
                               [](const Array& a) { return !is_float(a.dtype()); });
  }

  static std::string chosen_name(const std::vector<std::byte>& entry) {
    try {
      const std::string_view text(reinterpret_cast<const char*>(entry.data()), entry.size());
      return Json::parse(text, "choice").at("chosen").text_value();
    } catch (const UserError&) {
      return "";  // not written by as_before(): overwrite
    }
  }

  Hash128 choice_key() const {
    std::string text =
        cat("choice ", build_id(), " ", this_machine().processor, " ", request_.compile.threads);
    for (const Entry& e : entries_)
      if (e.plan) text += cat(" ", e.record.name, " ", to_hex(content_hash(*e.plan)));
    for (const Array& a : usual()->inputs) text += cat(" ", a.type());
    return hash128(text);
  }

  std::string reasons() const {
    std::string out;
    for (const Entry& e : entries_)
      if (!e.record.failure.empty()) out += cat("\n  ", e.record.name, ": ", e.record.failure);
    return out;
  }

  using Clock = std::chrono::steady_clock;

  const Source& source_;
  const OptimizeRequest& request_;
  std::shared_ptr<CompileStore> store_;
  Source source_with_samples_;
  std::vector<Reference> references_;
  std::vector<Entry> entries_;
  std::vector<std::string> assumptions_;  // of inputs that were made up
  bool has_chosen_reals_ = false;         // among them
  std::string no_inputs_;                 // why there are none
  std::string not_judged_;                // why the reference does not judge given inputs
  TimingRecord timing_;
  static constexpr int least_rounds = 10;  // enough to separate times from noise
  static constexpr int most_repeats = 2;   // of timing everything
  int measuring_ = 1;                      // strategies that choose by time
};

}  // namespace

Json to_json(const Tried& t) {
  Json inputs = Json::Array{}, threads = Json::Array{};
  for (const std::string& s : t.inputs) inputs.push(s);
  for (int n : t.threads) threads.push(n);
  return Json::Object{{"kernels", t.kernels},
                      {"kernels_known", t.kernels_before},
                      {"kernels_shortly", t.kernels_shortly},
                      {"kernels_ms", t.kernels_ms},
                      {"model_ms", t.model_ms},
                      {"inputs", inputs},
                      {"threads", threads},
                      {"left_out", t.left_out}};
}

Optimized optimize(const Source& source, const OptimizeRequest& request) {
  if (source.variants.empty())
    throw UserError("optimize: ", source.name.empty() ? "the source" : source.name,
                    " has no function; make it with source(function)");
  return Optimizer(source, request).run();
}

}  // namespace hone
