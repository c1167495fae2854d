#include "compile/choose.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <unordered_set>

#include "base/error.h"
#include "base/log.h"
#include "compile/build_id.h"
#include "compile/stats.h"
#include "kernel/nest/cost.h"
#include "kernel/nest/nest_candidate.h"
#include "verify/kernel/candidate.h"
#include "verify/kernel/trial.h"

namespace hone {

namespace {

// What the cache holds for a candidate that passed.
struct Verdict {
  double error = 0;
  std::int64_t is_short = 0;  // whether inputs were left out because time was up
};

constexpr double least_tuning_seconds = 0.2;
constexpr std::string_view wrong = "differs from the reference: ";

class Timer {
 public:
  explicit Timer(double& total) : total_(total), start_(std::chrono::steady_clock::now()) {}
  ~Timer() {
    total_ += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_)
                  .count();
  }

 private:
  double& total_;
  std::chrono::steady_clock::time_point start_;
};

// Code depends on the ranges of symbols, also of those that occur only in strides and attributes.
std::string spec_text(const GroupSpec& spec, const Sizing& sizes) {
  std::string text = cat(std::hex, spec.function.hash(), std::dec);
  std::set<std::string> symbols;
  const auto note = [&](const Dims& dims) {
    for (const Dim& d : dims)
      for (const Dim& s : d.symbols()) {
        const auto it = sizes.find(s.name());
        symbols.insert(cat(" ", s.name(), "=", it == sizes.end() ? -1 : it->second, " of ", s.low(),
                           "..", s.high()));
      }
  };
  for (const auto* list : {&spec.param_strides, &spec.result_strides})
    for (const Dims& strides : *list) {
      text += cat(" ", Shape(strides));
      note(strides);
    }
  for (bool weight : spec.param_is_weight) text += weight ? 'w' : '-';
  if (spec.is_aligned) text += " aligned";
  if (spec.prepares) text += " prepares";
  for (auto [result, param] : spec.updates) text += cat(" ", result, "<-", param);
  note(spec.function.symbols());
  for (NodeId n : live_nodes(spec.function))
    for (const Attrs::Entry& e : spec.function.graph().attrs(n).entries())
      if (const auto* dims = std::get_if<Dims>(&e.second)) note(*dims);
  for (const std::string& s : symbols) text += s;
  return text;
}

double number_or(const Dim& d, const Sizing& sizes, double otherwise) {
  try {
    return static_cast<double>(size_of(d, sizes));
  } catch (const UserError&) {
    return otherwise;  // a body measures its own size
  }
}

// A cost for comparing groups: vector instructions, or cache lines from memory.
double work_of(const ScheduledSpec& s, const Sizing& sizes) {
  return std::max(number_or(s.flops, sizes, 0) / 16, number_or(s.bytes, sizes, 0) / 16) + 1000;
}

// Of its first kernel or library call.
std::string name_of(const Candidate& c) {
  if (c.steps.empty()) return "a group";
  const auto& first = c.steps.at(0).what;
  const auto* kernel = std::get_if<Kernel>(&first);
  return kernel ? kernel->name : std::get<std::string>(first);
}

bool has_symbols(const GroupSpec& spec) { return !spec.function.symbols().empty(); }

void ask_for_fast_library(Candidate& c) {
  for (Candidate::Step& s : c.steps)
    if (std::holds_alternative<std::string>(s.what)) s.settings.emplace_back(fast_only, 1);
}

void forget_wish(Candidate& c) {
  for (Candidate::Step& s : c.steps)
    std::erase_if(s.settings, [](const auto& setting) { return setting.first == fast_only; });
}

}  // namespace

std::vector<Hash128> kernels_of(const Candidate& c) {
  std::vector<Hash128> out;
  for (const Candidate::Step& s : c.steps)
    if (const auto* kernel = std::get_if<Kernel>(&s.what)) out.push_back(hash(*kernel));
  return out;
}

Chooser::Chooser(const Context& context)
    : c_(context),
      trial_memory_(std::make_shared<TrialMemory>(context.device)),
      times_(context.store.times, context.compile.target().version(), context.device.get(),
             context.pool->threads()),
      suspects_(context.store.verdicts) {}

std::vector<Choice> Chooser::operator()(const Schedule& schedule, const Trials& trials) {
  std::vector<std::string> keys;
  for (const ScheduledSpec& s : schedule.specs) keys.push_back(spec_text(s.spec, trials.time));
  std::vector<Contest> contests = new_contests(schedule, keys, trials);
  std::vector<Contest*> open;
  for (Contest& c : contests)
    if (is_open(c) && (c_.options.remeasure || !take_known_times(c))) open.push_back(&c);
  {
    Timer timer(c_.report.codegen_ms);
    compile_kernels(contests, false);
  }
  {
    Timer timer(c_.report.verify_ms);
    parallel_for(*c_.pool, static_cast<std::int64_t>(contests.size()),
                 [&](std::int64_t i) { settle(contests[static_cast<std::size_t>(i)], trials); });
  }
  if (c_.options.measure) measure(contests, std::move(open), trials);
  for (Contest& c : contests) made_.emplace(c.key, choice_of(c, trials));
  c_.report.verified = verified_;
  c_.report.verified_from_cache = verified_from_cache_;
  c_.report.verified_shortly = verified_shortly_;
  std::vector<Choice> out;
  for (const std::string& key : keys) out.push_back(made_.at(key));
  for (const ScheduledGroup& g : schedule.groups) {
    ++c_.report.groups;
    c_.report.library_groups += out[g.spec].is_library;
  }
  return out;
}

std::vector<Chooser::Contest> Chooser::new_contests(const Schedule& schedule,
                                                    const std::vector<std::string>& keys,
                                                    const Trials& trials) {
  std::vector<std::string_view> origins(schedule.specs.size());
  std::unordered_map<std::string_view, double> uses;
  for (std::size_t i = schedule.groups.size(); i-- > 0;) {
    origins[schedule.groups[i].spec] = schedule.groups[i].origins;
    ++uses[keys[schedule.groups[i].spec]];
  }
  std::vector<Contest> out;
  std::unordered_set<std::string_view> seen;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (made_.contains(keys[i]) || !seen.insert(keys[i]).second) continue;
    const ScheduledSpec& spec = schedule.specs[i];
    Contest& c = out.emplace_back();
    c.spec = &spec;
    c.origins = origins[i];
    c.key = keys[i];
    c.options = options_for(spec.spec);
    c.best = preferred(c.options);
    c.reason = c.options.size() == 1 ? "only candidate" : "predicted";
    c.work = uses[keys[i]] * work_of(spec, trials.time);
    if (c.options.size() > 1)
      for (Option& o : c.options) o.record.predicted_ms = prediction(o.candidate);
  }
  return out;
}

// Plain nests are the fallback when a target refuses all of its own proposals.
std::vector<Chooser::Option> Chooser::options_for(const GroupSpec& spec) const {
  std::vector<Option> out;
  bool has_nest = false;
  const bool wants_library = c_.options.strategy != c_.backend.name;
  for (Proposal& p : c_.compile.target().candidates(spec)) {
    if (!p.library.empty() && !wants_library) continue;
    Option& o =
        out.emplace_back(std::move(p.candidate), std::move(p.library), std::move(p.rounded));
    o.record.name = o.candidate.name;
    o.record.refused = std::move(p.refused);
    o.base = o.candidate.name;
    has_nest = has_nest || o.candidate.name == "nest";
    const auto count = std::ranges::count(out, o.candidate.name, [](const Option& other) {
      return std::string_view(other.candidate.name);
    });
    if (count > 1) o.record.name += cat(" ", count);
    if (!o.library.empty() && !c_.options.slow_library && !has_symbols(spec))
      ask_for_fast_library(o.candidate);
  }
  if (!has_nest) {
    Option& o = out.emplace_back(nest_candidate(spec, c_.compile.target().info()));
    o.record.name = o.base = o.candidate.name;
  }
  return out;
}

double Chooser::prediction(const Candidate& c) const {
  const bool calls_library = std::ranges::any_of(c.steps, [](const Candidate::Step& s) {
    return std::holds_alternative<std::string>(s.what);
  });
  return calls_library || c.steps.empty() ? -1 : predicted_ms(c, c_.compile.target().info());
}

bool Chooser::add_tuned(Contest& c, std::string_view base, const Tuning& tuning) const {
  std::optional<Candidate> made = c_.compile.target().tuned(c.spec->spec, base, tuning);
  if (!made) return false;
  const std::vector<Hash128> kernels = kernels_of(*made);
  if (std::ranges::any_of(c.options, [&](const Option& o) {
        return o.base == base && kernels_of(o.candidate) == kernels;
      }))
    return false;
  Option& o = c.options.emplace_back(std::move(*made));
  o.base = base;
  o.tuning = tuning;
  o.record.name = base;
  o.record.predicted_ms = prediction(o.candidate);
  for (const auto& [name, value] : tuning) o.record.name += cat(" ", name, "=", value);
  return true;
}

std::size_t Chooser::preferred(const std::vector<Option>& options) const {
  for (std::size_t i = 0; i < options.size(); ++i)
    if (!options[i].is_out() && !options[i].library.empty() &&
        options[i].library == c_.options.strategy)
      return i;
  for (bool may_call_library : {false, true})
    for (std::size_t i = 0; i < options.size(); ++i)
      if (!options[i].is_out() && (may_call_library || options[i].library.empty())) return i;
  return options.size();
}

// Compiles all at once, so that the threads share the work evenly.
void Chooser::compile_kernels(const std::vector<Contest>& contests, bool all) {
  std::vector<const Kernel*> kernels;
  for (const Contest& c : contests)
    for (std::size_t i = 0; i < c.options.size(); ++i) {
      if (c.options[i].is_out() || (!all && i != c.best)) continue;
      for (const Candidate::Step& s : c.options[i].candidate.steps)
        if (const auto* kernel = std::get_if<Kernel>(&s.what)) kernels.push_back(kernel);
    }
  c_.compile.try_all(kernels);
}

void Chooser::settle(Contest& c, const Trials& sizes) {
  try {
    while (c.best < c.options.size() && !passes(c.spec->spec, c.options[c.best], sizes))
      c.best = preferred(c.options);
  } catch (const OutOfMemory& e) {
    throw OutOfMemory(c.origins, ": ", e.what());
  }
  for (const Option& o : c.options)
    if (o.record.refused.starts_with(wrong))
      log_warning(cat("group '", c.spec->name, "' (", c.origins, "): candidate ", o.record.name,
                      " ", o.record.refused, "; it is not used"));
}

bool Chooser::passes(const GroupSpec& spec, Option& option, const Trials& sizes) {
  if (option.is_out() || option.is_checked) return !option.is_out();
  option.record.refused = c_.compile.why_not(option.candidate);
  if (!option.is_out() && c_.options.verification != Verification::none)
    verify_option(spec, option, sizes);
  option.is_checked = true;
  return !option.is_out();
}

void Chooser::verify_option(const GroupSpec& spec, Option& option, const Trials& sizes) {
  const Hash128 key = verdict_key(spec, option.candidate, sizes);
  if (std::optional<std::vector<std::byte>> known = c_.store.verdicts.find(key);
      known && known->size() == sizeof(Verdict)) {
    Verdict verdict;
    std::memcpy(&verdict, known->data(), sizeof verdict);
    option.record.error = verdict.error;
    ++verified_from_cache_;
    if (verdict.is_short != 0) ++verified_shortly_;
    return;
  }
  const std::optional<Sizing> check = allowed_sizes(spec, sizes.check, sizes.check_also);
  if (!check)
    return log_warning(cat("candidate ", option.record.name, " for ", name_of(option.candidate),
                           " is not verified: no sizes were found that its operands allow"));
  const auto start = std::chrono::steady_clock::now();
  CheckTime time{check_time_left()};
  try {
    suspects_.watch(suspect_key(spec, option), option.record.name, [&] {
      Comparison c = verify(spec, option.candidate, c_.compile, trial_memory_, *check,
                            sizes.check_also, option.rounded ? &*option.rounded : nullptr, &time);
      option.record.error = c.max_rel_error;
      if (!c.ok) option.record.refused = cat(wrong, c);
    });
  } catch (const OutOfMemory& e) {
    throw OutOfMemory("checking a kernel: ", e.what(), ", or leave the checks out (--verify none)");
  } catch (const UserError& e) {
    option.record.refused = e.what();
  }
  check_time_ += std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
  if (option.is_out()) return;
  ++verified_;
  if (time.is_shortened) ++verified_shortly_;
  const Verdict verdict{option.record.error, time.is_shortened};
  c_.store.verdicts.store(key, std::as_bytes(std::span(&verdict, 1)));
}

std::chrono::nanoseconds Chooser::check_time_left() const {
  constexpr std::chrono::seconds most_each{1}, most_together{20};
  const std::chrono::nanoseconds left = most_together - std::chrono::nanoseconds(check_time_);
  return std::clamp<std::chrono::nanoseconds>(left, std::chrono::nanoseconds(0), most_each);
}

Hash128 Chooser::suspect_key(const GroupSpec& spec, const Option& option) const {
  return hash128(spec_text(spec, {}) + kernels_text(option.candidate));
}

// What the candidate's steps run.
std::string Chooser::kernels_text(const Candidate& c) const {
  std::string text;
  for (const Candidate::Step& s : c.steps) {
    if (const auto* kernel = std::get_if<Kernel>(&s.what)) {
      text += " " + to_hex(c_.compile.key(*kernel));
    } else {
      text += " " + std::get<std::string>(s.what);
      for (const auto& [name, value] : s.settings) text += cat(" ", name, "=", value);
    }
  }
  return text;
}

Hash128 Chooser::verdict_key(const GroupSpec& spec, const Candidate& c, const Trials& sizes) const {
  std::string text =
      cat("verdict ", build_id(), " ", sample_seed(), " ", spec_text(spec, sizes.check));
  if (has_symbols(spec))
    for (const Sizing& also : sizes.check_also) text += " " + spec_text(spec, also);
  return hash128(text + kernels_text(c));
}

bool Chooser::is_open(const Contest& c) const {
  return c_.options.strategy == "auto" && c_.device && !c.spec->prepare;
}

// Without measuring, uses times of any sizes: a dynamic group is not timed at the sizes of its
// check.
bool Chooser::take_known_times(Contest& c) {
  std::optional<GroupTimes::Known> known = times_.find(c.key);
  if (!known) known = times_.find(key_of_unmeasured(c));
  if (!known && !c_.options.measure) known = times_.find(spec_text(c.spec->spec, {}));
  if (!known) return false;
  for (const GroupTimes::Form& f : known->forms) add_tuned(c, f.base, f.tuning);
  const auto winner = std::ranges::find(
      c.options, known->winner, [](const Option& o) { return std::string_view(o.record.name); });
  if (winner == c.options.end() || winner->is_out()) return false;
  if (!known->library.empty() && known->library != library_version(winner->library)) return false;
  for (const CandidateRecord& r : known->records)
    for (Option& o : c.options)
      if (o.record.name == r.name) {
        const double predicted = o.record.predicted_ms;
        o.record = r;
        o.record.predicted_ms = predicted;
      }
  c.best = static_cast<std::size_t>(winner - c.options.begin());
  if (winner->record.ms >= 0) c.reason = "measured before";
  return true;
}

// Two runs with the same budget must make the same plan, so the second does not measure a group
// that the first had no time for.
std::string Chooser::key_of_unmeasured(const Contest& c) const {
  return cat(c.key, "\nnot measured within ", c_.options.budget, " s");
}

void Chooser::measure(const std::vector<Contest>& contests, std::vector<Contest*> open,
                      const Trials& trials) {
  double work = 0;
  for (Contest* c : open) work += c->work;
  const double kept = trials.are_usual ? 0 : 0.75 * c_.budget.left();
  // A group with one candidate is worth timing only if there is time to try forms of it.
  std::erase_if(open, [&](const Contest* c) {
    const bool has_time = c_.budget.left() * c->work / work > least_tuning_seconds;
    if (c->options.size() > 1 || (c_.options.tune && trials.are_usual && has_time)) return false;
    if (c->best == 0) times_.store(key_of_unmeasured(*c), known_of(*c));
    return true;
  });
  if (open.empty()) return;
  const TimeBudget::Use use(c_.budget);
  Timer timer(c_.report.measure_ms);
  compile_kernels(contests, true);
  std::vector<std::pair<const GroupSpec*, Option*>> unchecked;
  work = 0;
  for (Contest* c : open) {
    work += c->work;
    for (Option& o : c->options) unchecked.emplace_back(&c->spec->spec, &o);
  }
  parallel_for(*c_.pool, std::ssize(unchecked), [&](std::int64_t i) {
    const auto& [spec, option] = unchecked[static_cast<std::size_t>(i)];
    passes(*spec, *option, trials);
  });
  std::ranges::stable_sort(open, std::greater(), &Contest::work);
  for (std::size_t i = 0; i < open.size(); ++i) {
    const double left = c_.budget.left() - use.seconds() - kept;
    if (c_.options.progress)
      c_.options.progress(cat("comparing candidates: group ", i + 1, " of ", open.size(), " (",
                              open[i]->spec->name, "), ", std::max(0.0, std::round(left)),
                              " s left"));
    if (left > 0) {
      measure(*open[i], trials, std::clamp(left * open[i]->work / work, 0.05, 5.0));
    } else {
      open[i]->reason = "predicted: the time for comparisons was used up";
      if (open[i]->best < open[i]->options.size())
        times_.store(key_of_unmeasured(*open[i]), known_of(*open[i]));
    }
    work -= open[i]->work;
  }
}

void Chooser::measure(Contest& c, const Trials& sizes, double seconds) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::size_t> field;
  if (c.best < c.options.size()) field.push_back(c.best);
  for (std::size_t i = 0; i < c.options.size(); ++i)
    if (i != c.best) field.push_back(i);
  const std::optional<std::size_t> best = best_of(c, field, sizes, seconds);
  c.best = best ? *best : preferred(c.options);
  if (!best) return;
  c.reason = "measured";
  const std::chrono::duration<double> used = std::chrono::steady_clock::now() - start;
  if (c_.options.tune && sizes.are_usual && used.count() < seconds)
    tune(c, sizes, seconds - used.count());
  remember(c, sizes);
}

std::optional<std::size_t> Chooser::best_of(Contest& c, std::span<const std::size_t> field,
                                            const Trials& sizes, double seconds) {
  const GroupSpec& spec = c.spec->spec;
  const std::optional<Sizing> at = allowed_sizes(spec, sizes.time, sizes.check_also);
  if (!at) return std::nullopt;
  std::vector<std::size_t> ready;
  std::vector<std::unique_ptr<Trial>> trials;
  std::vector<std::function<void()>> runs;
  for (std::size_t i : field) {
    if (c.options[i].is_out()) continue;
    Candidate candidate = c.options[i].candidate;
    if (!c_.options.slow_library && has_symbols(spec)) ask_for_fast_library(candidate);
    try {
      const Hash128 key = suspect_key(spec, c.options[i]);
      const std::string& name = c.options[i].record.name;
      suspects_.watch(key, name, [&] {
        auto trial = std::make_unique<Trial>(spec, candidate, c_.compile, trial_memory_, c_.pool,
                                             *at, Fill::random, 17, Trial::Use::time);
        trial->bind();
        trials.push_back(std::move(trial));
      });
      runs.push_back([this, run = trials.back().get(), key, name] {
        try {
          run->run();
        } catch (const DeviceLost& e) {
          suspects_.blame(key, name, e);
        }
      });
      ready.push_back(i);
    } catch (const UserError& e) {
      c.options[i].record.refused = e.what();
    }
  }
  if (ready.empty()) return std::nullopt;
  const std::vector<std::vector<double>> times = time_interleaved(runs, {.rounds = 15,
                                                                         .least_sample_ms = 0.1,
                                                                         .most_seconds = seconds,
                                                                         .drop_above = 3,
                                                                         .stops_when_clear = true});
  std::size_t best = 0;
  for (std::size_t k = 0; k < ready.size(); ++k) {
    CandidateRecord& r = c.options[ready[k]].record;
    const Interval t = median_interval(times[k]);
    r.ms = t.median;
    r.low = t.low;
    r.high = t.high;
    if (k > 0 && is_clearly_faster(times[k], times[best])) best = k;
  }
  return ready[best];
}

// Tries forms of the fastest candidate that uses only kernels: a few at a time, compared with the
// best so far. The winner is checked. Forms are compiled just before they are timed.
void Chooser::tune(Contest& c, const Trials& sizes, double seconds) {
  const auto start = std::chrono::steady_clock::now();
  for (const std::string& name : worth_tuning(c)) {
    const std::chrono::duration<double> used = std::chrono::steady_clock::now() - start;
    if (used.count() < seconds) tune(c, name, sizes, seconds - used.count());
  }
}

void Chooser::tune(Contest& c, const std::string& name, const Trials& sizes, double seconds) {
  constexpr std::size_t at_once = 3;
  const std::vector<Tuning> space = c_.compile.target().space(c.spec->spec, name);
  const auto start = std::chrono::steady_clock::now();
  auto left = [&] {
    return seconds -
           std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  for (std::size_t next = 0; next < space.size() && left() > 0;) {
    std::vector<std::size_t> field = {c.best};
    for (; next < space.size() && field.size() <= at_once; ++next)
      if (add_tuned(c, name, space[next])) field.push_back(c.options.size() - 1);
    std::vector<const Kernel*> kernels;
    for (std::size_t k = 1; k < field.size(); ++k)
      for (const Candidate::Step& s : c.options[field[k]].candidate.steps)
        if (const auto* kernel = std::get_if<Kernel>(&s.what)) kernels.push_back(kernel);
    c_.compile.try_all(kernels);
    if (field.size() == 1) return;
    const std::optional<std::size_t> best = best_of(c, field, sizes, std::max(left(), 0.05));
    if (best && (*best == c.best || passes(c.spec->spec, c.options[*best], sizes))) c.best = *best;
  }
}

// Kernel-only candidates that a better form could make the best, fastest first.
std::vector<std::string> Chooser::worth_tuning(const Contest& c) {
  constexpr double hopeless = 1.5;  // relative to the best time
  std::vector<const Option*> timed;
  for (const Option& o : c.options)
    if (o.library.empty() && !o.is_out() && o.record.ms >= 0 &&
        o.record.ms <= hopeless * c.options[c.best].record.ms)
      timed.push_back(&o);
  std::ranges::stable_sort(timed, {}, [](const Option* o) { return o->record.ms; });
  std::vector<std::string> out;
  for (const Option* o : timed)
    if (std::ranges::find(out, o->base) == out.end()) out.push_back(o->base);
  return out;
}

// Options that call no library, fastest first, those without a time last.
std::vector<std::size_t> Chooser::by_time_without_library(const std::vector<Option>& options) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < options.size(); ++i)
    if (options[i].library.empty()) out.push_back(i);
  std::ranges::stable_sort(out, {}, [&](std::size_t i) {
    const double ms = options[i].record.ms;
    return ms >= 0 ? ms : std::numeric_limits<double>::infinity();
  });
  return out;
}

GroupTimes::Known Chooser::known_of(const Contest& c) {
  const Option& winner = c.options[c.best];
  GroupTimes::Known known{.winner = winner.record.name};
  const auto keep_form = [&](const Option& o) {
    if (!o.tuning.empty()) known.forms.push_back({o.base, o.tuning});
  };
  keep_form(winner);
  if (!winner.library.empty()) {
    known.library = library_version(winner.library);
    for (std::size_t i : by_time_without_library(c.options)) {
      if (c.options[i].is_out()) continue;
      keep_form(c.options[i]);
      break;
    }
  }
  for (const Option& o : c.options) known.records.push_back(o.record);
  return known;
}

void Chooser::remember(const Contest& c, const Trials& sizes) const {
  const GroupTimes::Known known = known_of(c);
  times_.store(c.key, known);
  if (has_symbols(c.spec->spec) && sizes.are_usual)
    times_.store(spec_text(c.spec->spec, {}), known);
}

std::optional<Candidate> Chooser::without_library(Contest& c, const Trials& check) {
  for (std::size_t i : by_time_without_library(c.options))
    if (passes(c.spec->spec, c.options[i], check)) return c.options[i].candidate;
  return std::nullopt;
}

Choice Chooser::choice_of(Contest& c, const Trials& check) {
  if (c.best == c.options.size()) {
    std::string why;
    for (const Option& o : c.options) why += cat("; ", o.record.name, ": ", o.record.refused);
    throw UserError("group '", c.spec->name, "' (", c.origins,
                    ") has no candidate that computes it correctly", why);
  }
  const Option& best = c.options[c.best];
  Choice choice{.candidate = best.candidate,
                .base = best.tuning.empty() ? best.record.name : best.base,
                .reason = c.reason};
  choice.is_library = !c.options[c.best].library.empty();
  if (choice.is_library && c_.options.strategy == "auto")
    choice.without_library = without_library(c, check);
  choice.candidate.name = c.options[c.best].record.name;
  forget_wish(choice.candidate);
  for (const Option& o : c.options) choice.records.push_back(o.record);
  return choice;
}

}  // namespace hone
