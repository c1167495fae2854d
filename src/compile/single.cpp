#include "compile/single.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <map>

#include "backend/backend.h"
#include "base/json.h"
#include "base/machine.h"
#include "compile/choose.h"
#include "compile/debug.h"
#include "compile/guilty.h"
#include "compile/rates.h"
#include "compile/size_ranges.h"
#include "pass/narrow.h"
#include "plan/audit.h"
#include "plan/plan_text.h"
#include "plan/prepared.h"
#include "runtime/prepare.h"
#include "schedule/cost.h"
#include "schedule/plan_builder.h"
#include "verify/model/whole.h"
#include "verify/sizes.h"

namespace hone {

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

class Driver {
 public:
  Driver(const Source& source, const CompileOptions& options, CompileReport& report)
      : source_(source),
        options_(options),
        report_(report),
        backend_(backend_of(options)),
        device_(has_device(backend_) ? open_device(backend_.name) : nullptr),
        pool_(make_thread_pool({.threads = options.threads, .affinity = {}})),
        store_(options.store ? options.store : std::make_shared<CompileStore>(options.cache)),
        budget_(options.budget),
        builder_(plan_),
        debug_(cat(source.name, "-", options.strategy)) {}

  Plan run() {
    Clock::time_point start = Clock::now();
    describe();
    for (const std::string& name : options_.targets) compile_target(name);
    if (options_.targets.empty()) compile_target(backend_.target_names[0]);
    check_library();
    Clock::time_point prepare = Clock::now();
    // Without a device the steps stay in the plan and run on the machine that loads it.
    if (device_) {
      run_prepare(plan_, device_, pool_);
      drop_unread(plan_);
    }
    report_.prepare_ms = milliseconds_since(prepare);
    if (options_.on_plan) options_.on_plan(plan_);
    Clock::time_point check = Clock::now();
    if (options_.verification != Verification::none) check_plan();
    report_.verify_ms += milliseconds_since(check);
    report_.total_ms = milliseconds_since(start);
    report_.kernels = static_cast<int>(plan_.kernels.size());
    if (debug_.wants(Debug::times)) debug_.show(Debug::times, "times.txt", summary());
    if (options_.keep) report_.kernels_made = builder_.kernels();
    return std::move(plan_);
  }

 private:
  void describe() {
    const Function& f = source_.variants[0].function;
    plan_.name = source_.name;
    plan_.strategy = options_.strategy;
    plan_.measured = options_.measure;
    static constexpr std::string_view levels[] = {"none", "kernels", "model"};
    plan_.verification = levels[static_cast<int>(options_.verification)];
    plan_.machine = Json(Json::Object{{"processor", this_machine().processor},
                                      {"device", device_ ? device_->description() : ""},
                                      {"threads", pool_->threads()},
                                      {"hone", HONE_VERSION}})
                        .text();
    plan_.main().params.reserve(f.params().size());
    for (const Function::Param& p : f.params())
      plan_.main().params.push_back({p.name, p.value.type(), p.donated, p.required, p.capacity});
    plan_.main().results.reserve(f.results().size());
    for (const Function::Result& r : f.results()) {
      PlanParam& made = plan_.main().results.emplace_back();
      made.name = r.name;
      made.type = r.value.type();
    }
    if (source_.variants.size() == 1)
      for (const DimCheck& c : first_checks(f))
        plan_.main().checks.push_back({c.a, c.b, c.message});
    if (!options_.strip_graph)
      for (const SourceVariant& v : source_.variants)
        plan_.main().graph += (plan_.main().graph.empty() ? "" : "next variant\n") +
                              print(v.function, &plan_.main().graph_arrays);
  }

  void compile_target(std::string_view name) {
    std::unique_ptr<Target> target = backend_.target(name);
    if (!targets_.insert(target->info().name).second) return;  // "native" is one of the others
    if (device_ && device_->description() == target->info().name) calibrate(*target);
    // Code for other machines can be neither checked nor timed here.
    CompileOptions options = options_;
    const bool runs_here = device_ && device_->rank(target->info().name) >= 0;
    if (!runs_here) options.verification = Verification::none;
    measures_ = options.measure = options_.measure && runs_here;
    options.tune = options_.tune && runs_here;
    KernelCompiler compile(*target, *pool_, store_->code);
    Chooser choose({backend_, options, compile, runs_here ? device_ : nullptr, pool_, *store_,
                    budget_, report_});
    builder_.start_target();
    for (std::size_t i = 0; i < source_.variants.size(); ++i) {
      if (options_.max_memory) check_memory(source_.variants[i]);
      compile_variant(source_.variants[i], compile, choose);
    }
    report_.compiled += compile.compiled();
    report_.from_cache += compile.from_cache();
  }

  // Measures rates only if measuring is allowed.
  void calibrate(Target& target) {
    std::optional<MachineRates> rates = known_rates(store_->times, backend_);
    if (!rates && options_.measure) rates = measured_rates(store_->times, backend_);
    if (rates) target.calibrate(*rates);
  }

  std::string summary() const {
    const CompileReport& r = report_;
    char text[400];
    std::snprintf(text, sizeof text,
                  "%.1f ms = passes %.1f + schedule %.1f + verify %.1f + measure %.1f + code %.1f "
                  "+ prepare %.1f; %d groups (%d by library), %d kernels (%d compiled, %d from "
                  "cache), %d verified (%d from cache)\n",
                  r.total_ms, r.passes_ms, r.schedule_ms, r.verify_ms, r.measure_ms, r.codegen_ms,
                  r.prepare_ms, r.groups, r.library_groups, r.kernels, r.compiled, r.from_cache,
                  r.verified, r.verified_from_cache);
    const std::string on =
        device_ ? cat(device_->name(), " ", device_->description()) : "no device";
    return cat("compile ", plan_.name, " (", options_.strategy, ") on ", on, ", ", pool_->threads(),
               " threads: ", text);
  }

  void check_memory(const SourceVariant& v) {
    // Every plan needs parameters, results and weights: refuse before compiling.
    std::int64_t least = 0;
    for (const Type& t : v.function.param_types()) least += byte_count(t).low();
    if (least > *options_.max_memory)
      throw UserError(source_.name, ": the inputs alone need ", least, " bytes, but the limit is ",
                      *options_.max_memory, "; raise --max-memory or give smaller sizes");
  }

  // Adds one variant, or several for ranges of sizes, each with a second one that needs no library.
  void compile_variant(const SourceVariant& source, KernelCompiler& compile, Chooser& choose) {
    const std::string name =
        cat(compile.target().info().name, "-variant-", plan_.main().variants.size());
    Clock::time_point start = Clock::now();
    Function f = passed(narrowed(source), name);
    report_.passes_ms += milliseconds_since(start);
    start = Clock::now();
    const bool has_groups = compile.target().info().group_threads > 0;
    Schedule s = schedule(f, {.one_op_groups = options_.one_op_groups,
                              .tells_alignment = has_groups,
                              .rows_into_products = has_groups && !options_.is_joined});
    report_.schedule_ms += milliseconds_since(start);
    if (options_.keep)
      for (const ScheduledGroup& g : s.groups)
        report_.variants.back().groups.emplace_back(g.nodes.begin(), g.nodes.end());
    std::vector<SizeRange> ranges = choices_for(source, s, choose);
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const SourceVariant* served = &source;
      if (!ranges[i].guards.empty()) {
        served = &parts_.emplace_back(source);
        std::ranges::copy(ranges[i].guards, std::back_inserter(parts_.back().guards));
        parts_.back().sizes = std::move(ranges[i].sizes);
        if (options_.keep && i > 0) report_.variants.push_back(report_.variants.back());
      }
      const bool is_last = i + 1 == ranges.size();
      add_variants(*served, is_last ? std::move(s) : Schedule(s), std::move(ranges[i].choices),
                   compile, ranges.size() == 1 ? name : cat(name, "-", i));
    }
  }

  // When measuring, checks whether other choices are faster at other sizes.
  std::vector<SizeRange> choices_for(const SourceVariant& source, const Schedule& s,
                                     Chooser& choose) {
    const Sizing& check = check_sizes(source);
    const auto choices_at = [&](const Sizing& time, bool is_usual) {
      std::vector<Sizing> also;
      for (const Sizing& sizes : sizes_to_check_also(source)) {
        Sizing all = with_measured(sizes, s.measured, s.checks);
        if (checks_hold(s.checks, all)) also.push_back(std::move(all));
      }
      if (!s.measured.empty())
        std::ranges::move(other_measured(check, s.measured, s.checks), std::back_inserter(also));
      return SizedChoices{time,
                          choose(s, {with_measured(check, s.measured, s.checks),
                                     with_measured(time, s.measured, s.checks), is_usual, also})};
    };
    if (!measures_) return size_ranges(source.function, {}, choices_at(check, true), {});
    const Sizing usual = sizes_to_time(source_, source);
    std::vector<SizedChoices> others;
    if (options_.strategy == "auto" && !options_.is_joined)
      for (const Sizing& sizes : sizes_beside(source.function, conditions_of(source), usual))
        others.push_back(choices_at(sizes, false));
    std::vector<std::uint32_t> specs;
    for (const ScheduledGroup& g : s.groups) specs.push_back(g.spec);
    return size_ranges(source.function, specs, choices_at(usual, true), others);
  }

  void add_variants(const SourceVariant& source, Schedule s, std::vector<Choice> choices,
                    KernelCompiler& compile, const std::string& name) {
    std::vector<std::shared_ptr<const std::vector<CandidateRecord>>> considered;
    for (Choice& c : choices)
      considered.push_back(
          std::make_shared<const std::vector<CandidateRecord>>(std::move(c.records)));
    const bool has_other = std::ranges::any_of(choices, &Choice::is_library) &&
                           std::ranges::all_of(choices, [](const Choice& c) {
                             return !c.is_library || c.without_library.has_value();
                           });
    std::optional<Schedule> other;
    if (has_other && options_.strategy == "auto") other = s;
    add_variant(source, std::move(s), choices, considered, compile, name);
    if (!other) return;
    // The same without the library, for machines that lack it.
    for (Choice& c : choices)
      if (c.is_library)
        c = {std::move(*c.without_library), "", "the library is missing", {}, {}, false};
    if (options_.keep) report_.variants.push_back(report_.variants.back());
    add_variant(source, std::move(*other), choices, considered, compile, name + "-kernels");
  }

  void add_variant(
      const SourceVariant& source, Schedule s, const std::vector<Choice>& choices,
      const std::vector<std::shared_ptr<const std::vector<CandidateRecord>>>& considered,
      KernelCompiler& compile, const std::string& name) {
    std::vector<Candidate> chosen;
    for (const Choice& c : choices) chosen.push_back(c.candidate);
    std::vector<std::uint32_t> specs;
    specs.reserve(s.groups.size());
    for (const ScheduledGroup& g : s.groups) specs.push_back(g.spec);
    Clock::time_point start = Clock::now();
    Variant v = builder_.add(std::move(s), chosen);
    report_.schedule_ms += milliseconds_since(start);
    start = Clock::now();
    fill_kernels(compile);
    report_.codegen_ms += milliseconds_since(start);
    v.devices[0].name = backend_.name;
    v.devices[0].target = compile.target().info().name;
    v.guards = source.guards;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      v.groups[i].reason = choices[specs[i]].reason;
      v.groups[i].considered = considered[specs[i]];
    }
    if (source_.variants.size() > 1) add_checks(v, source.function);
    if (debug_.wants(Debug::plan)) debug_.show(Debug::plan, name + "/plan.txt", variant_text(v));
    plan_.main().variants.push_back(std::move(v));
    source_of_.push_back(&source);
  }

  Function passed(const Function& imported, const std::string& name) {
    PassOptions options = options_.passes;
    options.keep = options.keep || options_.keep;
    debug_.imported(imported, name);
    if (debug_.wants(Debug::passes))
      options.watch = [&](const PassRecord& r) { debug_.pass(r, name); };
    const std::size_t first = report_.passes.size();
    Function f = run_passes(imported, options, &report_.passes);
    if (options_.keep)
      report_.variants.push_back(
          {imported,
           {report_.passes.begin() + static_cast<std::ptrdiff_t>(first), report_.passes.end()},
           {}});
    return f;
  }

  // Checks of a variant apply only to its sizes, so they are steps of it.
  static void add_checks(Variant& v, const Function& f) {
    std::vector<Step> checks;
    for (const DimCheck& c : first_checks(f)) {
      Step step;
      step.kind = Step::Kind::refuse;
      step.name = c.message;
      step.scalars = {c.a, c.b};
      checks.push_back(std::move(step));
    }
    v.steps.insert(v.steps.begin(), checks.begin(), checks.end());
  }

  // Reports an error when a library was requested by name and computes nothing because it is
  // unusable.
  void check_library() const {
    if (!names_library(options_.strategy) || report_.library_groups > 0) return;
    for (const Variant& v : plan_.main().variants)
      for (const GroupRecord& g : v.groups)
        for (const CandidateRecord& c : g.candidates())
          if (c.name == options_.strategy && !c.refused.empty())
            throw UserError(source_.name, ": strategy '", options_.strategy,
                            "' computes no part: ", c.refused, "; choose auto or ", backend_.name);
  }

  // Checks what single-kernel checks cannot see: the passes, and the places and order of the plan's
  // steps.
  void check_plan() {
    for (std::size_t i = 0; i < plan_.main().variants.size(); ++i) {
      if (!is_prepared(plan_, plan_.main().variants[i])) continue;  // for another machine
      const Sizing all =
          with_measured(check_sizes(*source_of_[i]), plan_.main().variants[i].measured,
                        source_of_[i]->function.graph().checks());
      audit(plan_, plan_.main(), plan_.main().variants[i],
            [&](const Dim& d) { return size_of(d, all); });
      check_operands(plan_, plan_.main().variants[i], builder_.kernels());
    }
    std::optional<Hash128> contents;
    std::set<const SourceVariant*> seen;
    for (const SourceVariant* part : source_of_) {
      if (!seen.insert(part).second) continue;
      const SourceVariant& v = *part;
      const Sizing& sizes = check_sizes(v);
      if (!is_medium(v.function, sizes)) continue;
      if (!contents) contents = contents_of(plan_);
      check_whole(v, sizes, whole_key(v.function, sizes, *contents));
    }
  }

  void check_whole(const SourceVariant& v, const Sizing& sizes, const Hash128& key) {
    if (store_->verdicts.find(key)) {
      ++report_.whole_from_cache;
      return;
    }
    const auto blame = [&](const std::vector<Array>& inputs) {
      return guilty_pass(v, options_.passes, inputs);
    };
    if (!hone::check_whole(v.function, sizes, {sizes_to_check_also(v), sizes_of_one_symbol(v)},
                           plan_, {device_}, pool_, blame))
      return;
    ++report_.whole;
    store_->verdicts.store(key, {});
  }

  void fill_kernels(KernelCompiler& compile) {
    std::vector<const Kernel*> missing;
    for (std::size_t i = filled_; i < builder_.kernels().size(); ++i)
      missing.push_back(&builder_.kernels()[i]);
    std::vector<KernelCompiler::Compiled> code = compile(missing);
    for (std::size_t i = 0; i < code.size(); ++i) {
      plan_.kernels[filled_ + i] = {static_cast<std::uint32_t>(plan_.binaries.size()),
                                    code[i].entry, code[i].key};
      plan_.binaries.push_back(*code[i].binary);
      debug_.kernel(*missing[i], compile.target(), code[i].entry);
    }
    filled_ = builder_.kernels().size();
  }

  const Sizing& check_sizes(const SourceVariant& v) {
    auto [it, fresh] = check_sizes_.try_emplace(&v);
    if (fresh) it->second = sizes_to_check(source_, v);
    return it->second;
  }

  const Source& source_;
  const CompileOptions& options_;
  CompileReport& report_;
  const Backend& backend_;
  std::shared_ptr<Device> device_;
  std::shared_ptr<ThreadPool> pool_;
  std::shared_ptr<CompileStore> store_;
  TimeBudget budget_;
  std::map<const SourceVariant*, Sizing> check_sizes_;
  Plan plan_;
  std::vector<const SourceVariant*> source_of_;  // by variant of the plan
  std::deque<SourceVariant> parts_;              // of variants, for ranges of their sizes
  PlanBuilder builder_;
  Debug debug_;
  std::size_t filled_ = 0;
  std::set<std::string> targets_;  // compiled so far
  bool measures_ = false;          // for the current target
};

}  // namespace

Plan compile_single(const Source& source, const CompileOptions& options, CompileReport& report) {
  return Driver(source, options, report).run();
}

}  // namespace hone
