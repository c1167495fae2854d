#include "compile/multi.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <list>
#include <map>

#include "backend/backend.h"
#include "base/error.h"
#include "base/log.h"
#include "compile/single.h"
#include "compile/spread.h"
#include "compile/stats.h"
#include "compile/store.h"
#include "compile/timed_run.h"
#include "ir/measured.h"
#include "plan/audit.h"
#include "runtime/session.h"
#include "verify/model/whole.h"
#include "verify/sizes.h"

namespace hone {

namespace {

using MultiClock = std::chrono::steady_clock;

double ms_since(MultiClock::time_point start) {
  return std::chrono::duration<double, std::milli>(MultiClock::now() - start).count();
}

// The fastest of a few runs, because disturbances only make a run longer.
double upload_ms(Stream& stream, DeviceMemory to, std::span<const std::byte> bytes) {
  double best = -1;
  for (int i = 0; i < 3; ++i) {
    const MultiClock::time_point start = MultiClock::now();
    stream.upload(to, bytes);
    stream.synchronize();
    const double ms = ms_since(start);
    best = best < 0 ? ms : std::min(best, ms);
  }
  return best;
}

CopyCost measured_copies(const std::shared_ptr<Device>& device) {
  constexpr std::size_t few = 64, many = 1 << 20;
  const OwnedMemory memory(device, many);
  const std::unique_ptr<Stream> stream = device->open_stream();
  const std::vector<std::byte> bytes(many);
  CopyCost out;
  out.ms = upload_ms(*stream, memory.at(), std::span(bytes).first(few));
  const double beyond = std::max(upload_ms(*stream, memory.at(), bytes) - out.ms, 1e-6);
  out.gbytes = static_cast<double>(many - few) / beyond * 1e-6;
  return out;
}

void add_numbers(CompileReport& to, const CompileReport& from) {
  using R = CompileReport;
  for (auto of : {&R::passes_ms, &R::schedule_ms, &R::codegen_ms, &R::verify_ms, &R::measure_ms,
                  &R::prepare_ms})
    to.*of += from.*of;
  for (auto of : {&R::compiled, &R::from_cache, &R::verified, &R::verified_from_cache,
                  &R::verified_shortly, &R::whole, &R::whole_from_cache, &R::library_groups})
    to.*of += from.*of;
}

class MultiCompiler {
 public:
  MultiCompiler(const Source& source, const CompileOptions& options, CompileReport& report)
      : source_(source),
        options_(options),
        report_(report),
        is_auto_(options.strategy == "auto"),
        pool_(make_thread_pool({.threads = options.threads, .affinity = {}})),
        store_(options.store ? options.store : std::make_shared<CompileStore>(options.cache)) {}

  Plan run() {
    const MultiClock::time_point start = MultiClock::now();
    compile_kinds();
    if (is_auto_) choose_alone();
    Plan plan = is_auto_ ? spread_or_alone() : spread_plan();
    collect_reports(plan.main().variants[0].devices.size() > 1 ? 0 : alone_);
    report_.total_ms = ms_since(start);
    report_.kernels = static_cast<int>(plan.kernels.size());
    if (options_.keep) {
      report_.kernels_made.clear();
      for (const PlanKernel& k : plan.kernels) report_.kernels_made.push_back(kernels_.at(k.hash));
    }
    return plan;
  }

 private:
  // The kind that shares the host's memory comes first. A kind for which compilation fails is
  // skipped.
  void compile_kinds() {
    std::vector<std::pair<const Backend*, std::shared_ptr<Device>>> all;
    for (const Backend* b : backends())
      if (has_device(*b)) all.emplace_back(b, open_device(b->name));
    std::ranges::stable_partition(all,
                                  [](const auto& k) { return k.second->shares_host_memory(); });
    // The first is always kept: inputs come from it.
    for (std::size_t i = all.size(); i-- > 1;)
      if (!named().empty() && count_wanted(all[i].first->name) == 0)
        all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
    plans_.reserve(all.size());
    const double budget = options_.budget / static_cast<double>(all.size() + 1);
    race_seconds_ = budget / 2 / static_cast<double>(source_.variants.size());
    std::exception_ptr first_error;
    for (const auto& [backend, device] : all) try {
        compile_kind(*backend, device, budget);
      } catch (const UserError& e) {
        if (plans_.empty() && !is_auto_) throw;
        if (!first_error) first_error = std::current_exception();
        log_warning(cat(source_.name, ": is not compiled for '", backend->name, "': ", e.what()));
        failures_ += cat("; ", backend->name, ": ", e.what());
      }
    if (plans_.empty()) std::rethrow_exception(first_error);
  }

  void compile_kind(const Backend& backend, const std::shared_ptr<Device>& device, double budget) {
    CompileOptions options = options_;
    options.strategy = "auto";
    options.backend = &backend;
    options.is_joined = !is_auto_;
    options.budget = budget;
    options.store = store_;
    options.on_plan = is_auto_ ? options_.on_plan : nullptr;
    CompileReport own;
    const bool is_first = plans_.empty();
    const Plan& plan = plans_.emplace_back(compile_single(source_, options, own));
    if (is_first) starts_at_host_ = device->shares_host_memory();
    for (std::size_t i = 0; i < own.kernels_made.size(); ++i)
      kernels_.emplace(plan.kernels[i].hash, own.kernels_made[i]);
    reports_.push_back(std::move(own));
    const CopyCost copies = options_.measure && !is_first ? measured_copies(device) : CopyCost{};
    const std::size_t wanted = count_wanted(backend.name);
    const std::size_t used = wanted > 0 ? wanted : device_count(backend.name);
    for (std::size_t i = 0; i < used; ++i) {
      if (wanted > 0) wanted_.push_back(static_cast<std::uint16_t>(of_devices_.size()));
      of_devices_.push_back(&plan);
      copies_.push_back(copies);
    }
  }

  // The kinds of devices that must each compute a part; auto uses the fastest.
  std::span<const std::string> named() const {
    return is_auto_ ? std::span<const std::string>() : options_.devices;
  }
  std::size_t count_wanted(std::string_view kind) const {
    return static_cast<std::size_t>(std::ranges::count(named(), kind));
  }

  // Reports the kind whose plan is returned, plus the work of all kinds.
  void collect_reports(std::size_t kind) {
    std::vector<WayReport> ways = std::move(report_.ways);
    const double verify_ms = report_.verify_ms;
    const int whole = report_.whole, whole_from_cache = report_.whole_from_cache;
    report_ = std::move(reports_[kind]);
    for (std::size_t k = 0; k < reports_.size(); ++k)
      if (k != kind) add_numbers(report_, reports_[k]);
    report_.ways = std::move(ways);
    report_.verify_ms += verify_ms;
    report_.whole += whole;
    report_.whole_from_cache += whole_from_cache;
  }

  // Finds the kind of device that computes the whole function fastest, at the sizes of all
  // variants; the first unless another is faster. Plans over several devices must beat it.
  void choose_alone() {
    if (plans_.size() < 2) return;
    std::vector<double> total(plans_.size(), 0);
    const std::size_t first = report_.ways.size();
    for (std::size_t s = 0; s < source_.variants.size(); ++s) {
      const SourceVariant& source = source_.variants[s];
      std::vector<WayReport> ways;
      std::vector<Plan> plans;
      for (const Plan& p : plans_) {
        ways.push_back({s, {}, p.main().variants[0].devices[0].name});
        plans.push_back(p);
      }
      race(ways, plans, inputs_to_time(source_, source, sizes_to_time(source_, source)));
      for (std::size_t k = 0; k < plans_.size(); ++k) total[k] += ways[k].ms;
      report_.ways.insert(report_.ways.end(), ways.begin(), ways.end());
    }
    constexpr double clearly = 0.98;
    for (std::size_t k = 1; k < plans_.size(); ++k)
      if (total[k] < clearly * total[alone_]) alone_ = k;
    for (std::size_t i = first; i < report_.ways.size(); ++i)
      report_.ways[i].is_chosen = (i - first) % plans_.size() == alone_;
  }

  // False if a plan has variants for ranges of sizes, or groups, that the other plans lack.
  bool can_be_joined() const {
    const auto same_groups = [](const Variant& a, const Variant& b) {
      return std::ranges::equal(a.groups, b.groups, {}, &GroupRecord::name, &GroupRecord::name);
    };
    return std::ranges::all_of(plans_, [&](const Plan& p) {
      return std::ranges::all_of(p.main().variants,
                                 [&](const Variant& v) { return source_for(v); }) &&
             std::ranges::equal(p.main().variants, plans_.front().main().variants, same_groups);
    });
  }

  Plan spread_or_alone() {
    try {
      if (starts_at_host_ && can_be_joined()) return spread_plan();
    } catch (const UserError& e) {
      log_warning(cat(source_.name, ": stays on one device: ", e.what()));
    }
    return std::move(plans_[alone_]);
  }

  Plan spread_plan() {
    chosen_.resize(plans_[0].main().variants.size());
    for (std::size_t v = 0; v < chosen_.size(); ++v) choose(v);
    // If another device alone is fastest, a variant that is not spread would run on the first
    // device instead.
    const bool leaves = alone_ > 0 && std::ranges::any_of(chosen_, &Assignment::empty);
    for (WayReport& w : report_.ways)
      if (leaves && !w.places.empty()) w.is_chosen = false;
    if (leaves || std::ranges::all_of(chosen_, &Assignment::empty)) {
      if (is_auto_) return std::move(plans_[alone_]);
      throw UserError(source_.name, ": no part of it can be computed on another device", failures_);
    }
    for (WayReport& w : report_.ways)
      if (w.places.empty() && !chosen_[w.variant].empty()) w.is_chosen = false;
    Plan plan = spread(of_devices_, chosen_);
    plan.strategy = options_.strategy;
    if (options_.on_plan) options_.on_plan(plan);
    const MultiClock::time_point start = MultiClock::now();
    if (options_.verification != Verification::none) verify_spread(plan);
    report_.verify_ms += ms_since(start);
    return plan;
  }

  const SourceVariant* source_for(const Variant& v) const {
    const auto found = std::ranges::find(source_.variants, v.guards, &SourceVariant::guards);
    return found == source_.variants.end() ? nullptr : &*found;
  }

  const SourceVariant& source_of(const Variant& v) const {
    const SourceVariant* source = source_for(v);
    HONE_ASSERT(source, source_.name, ": a plan has a variant of no function");
    return *source;
  }

  // For auto, uses several devices only if that is clearly faster than one, including copies.
  void choose(std::size_t v) {
    const Variant& variant = plans_[0].main().variants[v];
    const Sizing sizes = sizes_to_time(source_, source_of(variant));
    const std::vector<Assignment> ways = propose_assignments(
        of_devices_, v, copies_,
        with_measured(sizes, variant.measured, source_of(variant).function.graph().checks()),
        wanted_);
    if (ways.empty() && !wanted_.empty())
      throw UserError(source_.name, ": has too few parts for ", wanted_.size(),
                      " devices; name fewer, or compile with --one-op-groups");
    if (ways.empty()) return;
    std::vector<WayReport> reports;
    std::vector<Plan> plans;
    if (is_auto_) {
      reports.push_back({v, {}, plans_[alone_].main().variants[0].devices[0].name});
      plans.push_back(plans_[alone_]);
    }
    for (const Assignment& way : ways) {
      std::vector<Assignment> assigned = chosen_;
      assigned[v] = way;
      reports.push_back({v, way});
      plans.push_back(spread(of_devices_, assigned));
    }
    // A variant after another with equal guards is for machines that lack a library.
    const bool can_run = v == 0 || variant.guards != plans_[0].main().variants[v - 1].guards;
    std::size_t best = 0;
    if (options_.measure && can_run)
      best = race(reports, plans, inputs_to_time(source_, source_of(variant), sizes));
    reports[best].is_chosen = true;
    chosen_[v] = reports[best].places;
    report_.ways.insert(report_.ways.end(), reports.begin() + (is_auto_ ? 1 : 0), reports.end());
  }

  // The first unless another is clearly faster.
  std::size_t race(std::span<WayReport> ways, std::span<Plan> plans,
                   const std::vector<Array>& inputs) {
    std::vector<std::unique_ptr<Session>> sessions;
    std::list<TimedRun> timed;
    std::vector<std::function<void()>> runs;
    for (Plan& p : plans) {
      auto plan = std::make_shared<const Plan>(std::move(p));
      Executable::Devices devices = open_devices(*plan);
      sessions.push_back(std::make_unique<Session>(
          Executable::load(std::move(plan), std::move(devices)), SessionOptions{.pool = pool_}));
      timed.emplace_back(*sessions.back(), inputs)();  // the first run places memory
      runs.emplace_back(std::ref(timed.back()));
    }
    const std::vector<std::vector<double>> times = time_interleaved(
        runs, {.least_sample_ms = 2, .most_seconds = race_seconds_, .drop_above = 3});
    std::size_t best = 0;
    for (std::size_t i = 0; i < ways.size(); ++i) {
      ways[i].ms = median_interval(times[i]).median;
      if (is_clearly_faster(times[i], times[best])) best = i;
    }
    if (options_.progress)
      options_.progress(cat(source_.name, ": ", ways.size(), " ways over devices, ", ways[0].ms,
                            " ms as predicted best, ", ways[best].ms, " ms as chosen"));
    return best;
  }

  void verify_spread(const Plan& plan) {
    const Hash128 contents = contents_of(plan);
    for (const Variant& v : plan.main().variants) {
      const SourceVariant& source = source_of(v);
      const Sizing sizes = sizes_to_check(source_, source);
      const Sizing all = with_measured(sizes, v.measured, source.function.graph().checks());
      audit(plan, plan.main(), v, [&](const Dim& d) { return size_of(d, all); });
      if (!is_small(source.function, sizes)) continue;
      const Hash128 key = whole_key(source.function, sizes, contents);
      if (store_->verdicts.find(key)) {
        ++report_.whole_from_cache;
      } else if (check_whole(source.function, sizes,
                             {sizes_to_check_also(source), sizes_of_one_symbol(source)}, plan,
                             open_devices(plan), pool_, nullptr)) {
        ++report_.whole;
        store_->verdicts.store(key, {});
      }
    }
  }

  const Source& source_;
  const CompileOptions& options_;
  CompileReport& report_;
  const bool is_auto_;
  std::shared_ptr<ThreadPool> pool_;
  std::shared_ptr<CompileStore> store_;
  double race_seconds_ = 0;
  std::vector<Plan> plans_;              // per kind of device
  std::vector<CompileReport> reports_;   // likewise
  std::size_t alone_ = 0;                // the kind that is fastest alone
  bool starts_at_host_ = false;          // the first kind shares the host's memory
  std::vector<const Plan*> of_devices_;  // per device
  std::vector<CopyCost> copies_;         // per device
  std::vector<std::uint16_t> wanted_;    // of them; empty: the fastest
  std::vector<Assignment> chosen_;       // per variant
  std::map<Hash128, Kernel> kernels_;    // of all plans, if they are kept
  std::string failures_;
};

}  // namespace

bool is_spread(const CompileOptions& o) {
  if (o.strategy == "multi") return true;
  return o.strategy == "auto" && o.measure && !o.backend && o.targets.empty() &&
         absence_of("multi").empty();
}

Plan compile_multi(const Source& source, const CompileOptions& options, CompileReport& report) {
  return MultiCompiler(source, options, report).run();
}

}  // namespace hone
