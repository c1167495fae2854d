#include "compile/compile.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <map>
#include <set>

#include "backend/backend.h"
#include "base/file.h"
#include "compile/choose.h"
#include "compile/debug.h"
#include "compile/sample.h"
#include "compile/whole.h"
#include "pass/narrow.h"
#include "pass/unify.h"
#include "plan/audit.h"
#include "plan/plan_text.h"
#include "runtime/prepare.h"
#include "schedule/cost.h"
#include "schedule/plan_builder.h"

namespace hone {

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

const Backend& backend_of(const CompileOptions& options) {
  return options.backend ? *options.backend : backend("cpu");
}

bool has_device(const Backend& b) { return std::ranges::count(device_names(), b.name) > 0; }

}  // namespace

std::string absence_of(std::string_view strategy) {
  const std::span<const std::string_view> devices = device_names();
  if (strategy != "multi" || devices.size() > 1) return "";
  return cat("spreads parts of a model over devices, and there is one here: ", devices[0]);
}

namespace {

void check_options(const Source& source, const CompileOptions& options) {
  static constexpr std::string_view strategies[] = {"cpu", "onednn", "auto"};
  if (options.strategy == "multi")
    throw UserError("strategy 'multi' ", absence_of("multi"), "; choose auto");
  if (std::find(std::begin(strategies), std::end(strategies), options.strategy) ==
      std::end(strategies))
    throw UserError("strategy '", options.strategy,
                    "' does not compile; choose cpu, onednn or auto (ref interprets)");
  if (source.variants.empty()) throw UserError(source.name, ": nothing to compile");
  const Backend& b = backend_of(options);
  if (!has_device(b) && (options.measure || options.verification != Verification::none))
    throw UserError(source.name, ": backend '", b.name,
                    "' has no device to verify or time on; ask for neither");
  const std::size_t variants = source.variants.size() * options.targets.size();
  if (variants > options.most_variants)
    throw UserError(source.name, ": ", source.variants.size(), " size variants for ",
                    options.targets.size(), " targets are ", variants, " in all, the limit is ",
                    options.most_variants, "; give sizes with --dim or fewer targets");
}

std::set<std::string> symbols_of(const std::vector<Type>& types) {
  std::set<std::string> out;
  for (const Type& t : types)
    for (const Dim& d : t.shape.dims)
      for (const Dim& s : d.symbols()) out.insert(s.name());
  return out;
}

// What bodies ask of the sizes of inputs: elsewhere a run may leave the body out, a check may not.
void add_checks_of_bodies(const Function& f, const std::set<std::string>& known,
                          std::vector<Guard>& out) {
  const auto is_known = [&](const Dim& d) {
    return std::ranges::all_of(d.symbols(), [&](const Dim& s) { return known.contains(s.name()); });
  };
  for (NodeId n : live_nodes(f))
    for (const Attrs::Entry& e : f.graph().attrs(n).entries()) {
      const auto* body = std::get_if<FunctionRef>(&e.second);
      if (!body) continue;
      for (const DimCheck& c : (*body)->graph().checks())
        if (is_known(c.a) && is_known(c.b)) out.push_back({Guard::Kind::equal, c.a, c.b});
      add_checks_of_bodies(**body, known, out);
    }
}

// Beyond one tile if that is no great work, else two of a kind at least, else any.
std::optional<Sizing> odd_or_any_sizes(const Function& f, const std::vector<Guard>& conditions) {
  struct Attempt {
    std::int64_t least, most_flops;
  };
  constexpr Attempt attempts[] = {
      {19, 20'000'000}, {3, 1'000'000'000}, {2, std::numeric_limits<std::int64_t>::max()}};
  const std::vector<Type> types = f.param_types();
  std::optional<Dim> flops;
  for (const Attempt& a : attempts) {
    std::optional<Sizing> made = odd_sizes(types, conditions, a.least);
    if (!made) continue;
    if (made->empty()) return made;
    if (!flops) flops = flops_of(f);
    if (flops_at(*flops, *made) <= a.most_flops) return made;
  }
  return sample_sizes(types, conditions);
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
        code_(options.cache ? cache_directory() : "", "kernels"),
        verdicts_(options.cache ? cache_directory() : "", "verdicts"),
        builder_(plan_),
        debug_(cat(source.name, "-", options.strategy)) {}

  Plan run() {
    Clock::time_point start = Clock::now();
    describe();
    for (const std::string& isa : options_.targets) compile_target(isa);
    check_library();
    Clock::time_point prepare = Clock::now();
    if (device_) run_prepare(plan_, device_, pool_);
    drop_unread(plan_);
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
    plan_.params.reserve(f.params().size());
    for (const Function::Param& p : f.params())
      plan_.params.push_back({p.name, p.value.type(), p.donated, p.required});
    plan_.results.reserve(f.results().size());
    for (const Function::Result& r : f.results())
      plan_.results.push_back({r.name, r.value.type(), false});
    if (source_.variants.size() == 1)
      for (const DimCheck& c : first_checks(f)) plan_.checks.push_back({c.a, c.b, c.message});
    if (!options_.strip_graph)
      for (const SourceVariant& v : source_.variants)
        plan_.graph +=
            (plan_.graph.empty() ? "" : "next variant\n") + print(v.function, &plan_.graph_arrays);
  }

  void compile_target(const std::string& isa) {
    std::unique_ptr<Target> target = backend_.target(isa);
    KernelCompiler compile(*target, *pool_, code_.keeps() ? &code_ : nullptr);
    Chooser choose(backend_, options_, compile, device_, pool_, verdicts_, report_);
    builder_.start_target();
    for (std::size_t i = 0; i < source_.variants.size(); ++i) {
      if (options_.max_memory) check_memory(source_.variants[i]);
      compile_variant(source_.variants[i], compile, choose);
    }
    report_.compiled += compile.compiled();
    report_.from_cache += compile.from_cache();
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
    // Parameters, results and weights are needed whatever the plan: refuse before compiling.
    std::int64_t least = 0;
    for (const Type& t : v.function.param_types()) least += byte_count(t).low();
    if (least > *options_.max_memory)
      throw UserError(source_.name, ": the inputs alone need ", least, " bytes, the limit is ",
                      *options_.max_memory, "; raise --max-memory or give smaller sizes");
  }

  void compile_variant(const SourceVariant& source, KernelCompiler& compile, Chooser& choose) {
    const std::string name = cat(compile.target().info().name, "-variant-", plan_.variants.size());
    Clock::time_point start = Clock::now();
    Function f = passed(narrowed(source), name);
    report_.passes_ms += milliseconds_since(start);
    start = Clock::now();
    Schedule s = schedule(f, {.one_op_groups = options_.one_op_groups});
    report_.schedule_ms += milliseconds_since(start);
    if (options_.keep)
      for (const ScheduledGroup& g : s.groups)
        report_.variants.back().groups.emplace_back(g.nodes.begin(), g.nodes.end());
    const Sizing& check = check_sizes(source);
    const Sizing time = options_.measure ? sizes_for(source) : check;
    std::vector<Choice> choices =
        choose(s, {with_measured(check, s.measured), with_measured(time, s.measured)});
    std::vector<Candidate> chosen;
    for (const Choice& c : choices) chosen.push_back(c.candidate);
    std::vector<std::uint32_t> specs;
    specs.reserve(s.groups.size());
    for (const ScheduledGroup& g : s.groups) specs.push_back(g.spec);
    start = Clock::now();
    Variant v = builder_.add(std::move(s), chosen);
    report_.schedule_ms += milliseconds_since(start);
    start = Clock::now();
    fill_kernels(compile);
    report_.codegen_ms += milliseconds_since(start);
    v.target = compile.target().info().name;
    v.guards = source.guards;
    std::vector<std::shared_ptr<const std::vector<CandidateRecord>>> considered;
    for (Choice& c : choices)
      considered.push_back(
          std::make_shared<const std::vector<CandidateRecord>>(std::move(c.records)));
    for (std::size_t i = 0; i < specs.size(); ++i) {
      v.groups[i].reason = choices[specs[i]].reason;
      v.groups[i].considered = considered[specs[i]];
    }
    if (source_.variants.size() > 1) add_checks(v, source.function);
    if (debug_.wants(Debug::plan)) debug_.show(Debug::plan, name + "/plan.txt", variant_text(v));
    plan_.variants.push_back(std::move(v));
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

  // A variant serves only the sizes that its guards let in.
  static Function narrowed(const SourceVariant& v) {
    std::vector<SizeFact> facts;
    for (const Guard& g : v.guards)
      facts.push_back({static_cast<SizeFact::Kind>(g.kind), g.a, g.b});
    return narrow(v.function, facts);
  }

  // Checks of one variant hold for its sizes alone, so they are steps of it.
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

  // Who asks for the library by name is told when it computes nothing because it cannot be used.
  void check_library() const {
    if (options_.strategy != backend_.library || report_.library_groups > 0) return;
    for (const Variant& v : plan_.variants)
      for (const GroupRecord& g : v.groups)
        for (const CandidateRecord& c : g.candidates())
          if (c.name == backend_.library && !c.refused.empty())
            throw UserError(source_.name, ": strategy '", options_.strategy,
                            "' computes no part: ", c.refused, "; choose auto or cpu");
  }

  // What the checks of single kernels cannot see: what the passes did, and where and in which order
  // the plan runs what they left.
  void check_plan() {
    for (std::size_t i = 0; i < plan_.variants.size(); ++i) {
      const Sizing all = with_measured(check_sizes(source_.variants[i % source_.variants.size()]),
                                       plan_.variants[i].measured);
      audit(plan_, plan_.variants[i], [&](const Dim& d) { return size_of(d, all); });
      check_operands(plan_, plan_.variants[i], builder_.kernels());
    }
    std::optional<Hash128> contents;
    for (const SourceVariant& v : source_.variants) {
      const Sizing& sizes = check_sizes(v);
      if (!is_small(v.function, sizes)) continue;
      if (!contents) contents = contents_of(plan_);
      check_whole(v, sizes, whole_key(v.function, sizes, *contents));
    }
  }

  void check_whole(const SourceVariant& v, const Sizing& sizes, const Hash128& key) {
    if (verdicts_.find(key)) {
      ++report_.whole_from_cache;
      return;
    }
    if (!hone::check_whole(v.function, sizes, plan_, device_, pool_)) return;
    ++report_.whole;
    verdicts_.store(key, {});
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

  // Sizes to check at.
  const Sizing& check_sizes(const SourceVariant& v) {
    auto [it, fresh] = check_sizes_.try_emplace(&v);
    if (fresh) it->second = sizes_to_check(v);
    return it->second;
  }
  Sizing sizes_to_check(const SourceVariant& v) const {
    const std::vector<Guard> conditions = conditions_of(v);
    std::vector<Guard> all = conditions;
    add_checks_of_bodies(v.function, symbols_of(v.function.param_types()), all);
    std::optional<Sizing> made = odd_or_any_sizes(v.function, all);
    if (!made) made = odd_or_any_sizes(v.function, conditions);
    return made ? *made : sizes_for(v);
  }

  // Sizes at which candidates are timed: those of the sample inputs that this variant serves,
  // else made up.
  Sizing sizes_for(const SourceVariant& v) const {
    for (const std::vector<Array>& inputs : source_.samples) {
      std::vector<std::vector<std::int64_t>> dims;
      for (const Array& a : inputs) dims.push_back(a.dims());
      Sizing sizes = bind_sizes(v.function, dims);
      if (guards_hold(v.guards, sizes)) return sizes;
    }
    if (std::optional<Sizing> made = sample_sizes(v.function.param_types(), conditions_of(v)))
      return *made;
    throw UserError(source_.name,
                    ": no sizes were found that satisfy a variant's conditions; give "
                    "sample inputs with --inputs");
  }

  const Source& source_;
  const CompileOptions& options_;
  CompileReport& report_;
  const Backend& backend_;
  std::shared_ptr<Device> device_;
  std::shared_ptr<ThreadPool> pool_;
  CompileCache code_, verdicts_;
  std::map<const SourceVariant*, Sizing> check_sizes_;
  Plan plan_;
  PlanBuilder builder_;
  Debug debug_;
  std::size_t filled_ = 0;
};

}  // namespace

std::vector<Guard> conditions_of(const SourceVariant& v) {
  std::vector<Guard> out = v.guards;
  for (const DimCheck& c : first_checks(v.function)) out.push_back({Guard::Kind::equal, c.a, c.b});
  return out;
}

bool guards_hold(const std::vector<Guard>& guards, const Sizing& sizes) {
  for (const Guard& g : guards) {
    std::int64_t a = size_of(g.a, sizes), b = size_of(g.b, sizes);
    bool holds = g.kind == Guard::Kind::equal        ? a == b
                 : g.kind == Guard::Kind::not_equal  ? a != b
                 : g.kind == Guard::Kind::less_equal ? a <= b
                                                     : a > b;
    if (!holds) return false;
  }
  return true;
}

namespace {

// Variants share their parameters, so sizes are unified in all of them or in none.
Source unified(const Source& source) {
  Source out = source;
  for (SourceVariant& v : out.variants) v.function = unify_sizes(v.function);
  for (const SourceVariant& v : out.variants)
    if (v.function.param_types() != out.variants[0].function.param_types()) return source;
  return out;
}

}  // namespace

Plan compile(const Source& source, const CompileOptions& options, CompileReport* report) {
  CompileReport own;
  check_options(source, options);
  const Source with_fewer_sizes = unified(source);
  return Driver(with_fewer_sizes, options, report ? *report : own).run();
}

}  // namespace hone
