#include "runtime/self_test.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "plan/content_hash.h"
#include "plan/plan_text.h"
#include "runtime/memory_limit.h"

namespace hone {

namespace {

std::vector<Array> inputs_of(const SelfTest& t) {
  std::vector<Array> out;
  out.reserve(t.inputs.size());
  for (const SelfTestInput& in : t.inputs) {
    std::int64_t bytes = byte_size(in.dtype);
    for (std::int64_t d : in.dims) {
      if (d < 0) throw UserError("self-test: an input has size ", d);
      bytes = checked_mul(bytes, d);
    }
    if (bytes > default_memory_limit())
      throw UserError("self-test: an input of ", bytes, " bytes does not fit the memory");
    out.push_back(self_test_array(in));
  }
  return out;
}

// For messages: integers without a decimal point.
std::string value_text(const Array& a, std::int64_t i) {
  return is_float(a.dtype()) ? cat(a.real(i)) : cat(a.integer(i));
}

// For comparisons of samples.
double value_of(const Array& a, std::int64_t i) {
  return is_float(a.dtype()) ? a.real(i) : static_cast<double>(a.integer(i));
}

std::int64_t first_difference(const Array& a, const Array& b) {
  const auto size = static_cast<std::size_t>(byte_size(a.dtype()));
  const auto [x, y] = std::ranges::mismatch(a.bytes(), b.bytes());
  static_cast<void>(y);
  return static_cast<std::int64_t>(static_cast<std::size_t>(x - a.bytes().begin()) / size);
}

bool is_near(double got, double expected, double allowed) {
  if (std::isnan(got) || std::isnan(expected)) return std::isnan(got) && std::isnan(expected);
  return got == expected || std::fabs(got - expected) <= allowed;
}

// The plan with only this variant of this entry.
Plan only_variant(const Plan& plan, const PlanEntry& entry, std::uint32_t variant) {
  Plan out = plan;
  out.entries = {entry};
  out.main().variants = {entry.variants.at(variant)};
  out.main().self_tests.clear();  // they name variants by their places in the whole entry
  return out;
}

class Tester {
 public:
  Tester(std::shared_ptr<const Plan> plan, const Executable::Devices& devices,
         const SelfTestOptions& options)
      : plan_(std::move(plan)), devices_(devices), options_(options) {}

  std::vector<SelfTestOutcome> run() {
    const auto has_none = [](const PlanEntry& e) { return e.self_tests.empty(); };
    if (std::ranges::all_of(plan_->entries, has_none)) return {};
    if (options_.checks_content && plan_->content) check_content();
    whole_ = Executable::load(plan_, devices_);
    std::vector<SelfTestOutcome> out;
    for (const LoadedEntry& e : whole_->entries()) {
      loaded_ = &e;
      entry_ = e.plan;
      if (options_.max_memory >= 0) check_memory();
      for (const SelfTest& t : entry_->self_tests) out.push_back(run(t));
    }
    return out;
  }

 private:
  void check_content() const {
    if (const Hash128 now = content_hash(*plan_); now != *plan_->content)
      throw SelfTestFailure(plan_->name, ": self-test: the plan's content is ", to_hex(now),
                            ", but ", to_hex(*plan_->content),
                            " was verified: steps, code or weights were changed since; compile the "
                            "model again");
  }

  // What the largest test needs, so that the message has a limit that is enough for all.
  void check_memory() const {
    std::size_t most = 0;
    bool all_fit = true;
    for (const SelfTest& t : entry_->self_tests) {
      std::string skipped;
      const auto executable = t.missing.empty() ? executable_for(t, skipped) : nullptr;
      if (!executable) continue;
      const std::vector<Array> inputs = inputs_of(t);
      for (int threads : options_.threads) {
        Session session(executable, options_for(executable, threads));
        for (std::size_t i = 0; i < inputs.size(); ++i) session.bind_input(i, as_input(inputs[i]));
        const MemoryReport m = session.memory();
        most = std::max(most, m.peak());
        all_fit = all_fit && fits(m, options_.max_memory);
      }
    }
    if (!all_fit)
      throw UserError(plan_->name, ": its self-tests need ", most,
                      " bytes of memory, but the limit is ", options_.max_memory,
                      "; raise the limit (max_memory, --max-memory)");
  }

  SelfTestOutcome run(const SelfTest& t) {
    const Variant& v = entry_->variants[t.variant];
    SelfTestOutcome out{entry_->name, t.variant, targets_text(v), {}, inputs_text(*entry_, t),
                        t.missing,    {}};
    for (const Guard& g : v.guards)
      out.guards += cat(out.guards.empty() ? "" : ", ", guard_text(g));
    if (!t.missing.empty()) return out;
    const std::shared_ptr<const Executable> executable = executable_for(t, out.skipped);
    if (!executable) return out;
    std::vector<Array> first;
    for (int threads : options_.threads) {
      std::vector<Array> got = results(executable, t, threads);
      if (first.empty())
        compare(t, first = std::move(got), out);
      else
        compare_threads(t, first, got, threads);
    }
    return out;
  }

  // Whether the plan runs code for a better target at these sizes. Each target has its own ranges.
  bool prefers_another_target(const SelfTest& t) const {
    const auto value = [&](std::string_view name) -> std::int64_t {
      for (std::size_t i = 0; i < t.inputs.size(); ++i) {
        const Dims& dims = entry_->params[i].type.shape.dims;
        for (std::size_t k = 0; k < std::min(dims.size(), t.inputs[i].dims.size()); ++k)
          if (dims[k].is_symbol() && dims[k].name() == name) return t.inputs[i].dims[k];
      }
      throw UserError("self-test: no input has size ", name);
    };
    for (const std::uint32_t i : loaded_->variants) {
      const Variant& v = entry_->variants[i];
      if (i == t.variant) return false;
      if (std::ranges::all_of(
              v.guards, [&](const Guard& g) { return holds(g, g.a.eval(value), g.b.eval(value)); }))
        return targets_text(v) != targets_text(entry_->variants[t.variant]);
    }
    return true;
  }

  // The whole plan if it runs the variant, else the variant alone; null if neither runs here.
  std::shared_ptr<const Executable> executable_for(const SelfTest& t, std::string& skipped) const {
    const bool has_it = std::ranges::count(loaded_->variants, t.variant) > 0;
    if (has_it && !prefers_another_target(t)) return whole_;
    try {
      return Executable::load(
          std::make_shared<const Plan>(only_variant(*plan_, *entry_, t.variant)), devices_);
    } catch (const UserError& e) {
      if (options_.is_same_machine) throw SelfTestFailure(failed(t), e.what());
      skipped = e.what();
      return nullptr;
    }
  }

  std::string failed(const SelfTest& t) const {
    const std::string entry = plan_->entries.size() > 1 ? cat("entry '", entry_->name, "', ") : "";
    return cat(plan_->name, ": self-test of ", entry, "variant ", t.variant, " with ",
               inputs_text(*entry_, t), ": ");
  }

  // Made only when needed, because it names every input.
  std::string failed(const SelfTest& t, std::size_t result) const {
    return cat(failed(t), "result '", entry_->results[result].name, "' ");
  }

  std::vector<Array> results(const std::shared_ptr<const Executable>& executable, const SelfTest& t,
                             int threads) const {
    try {
      SessionOptions options = options_for(executable, threads);
      options.max_memory = options_.max_memory;
      Session session(executable, options);
      const std::vector<Array> inputs = inputs_of(t);
      std::vector<Array> out = session.run(inputs);
      const std::uint32_t ran = session.variant();
      if (executable == whole_ && ran != t.variant)
        throw SelfTestFailure(failed(t), "the plan runs variant ", ran, " for these sizes");
      return out;
    } catch (const SelfTestFailure&) {
      throw;
    } catch (const UserError& e) {
      throw SelfTestFailure(failed(t), "the plan refuses to run with ", threads,
                            " threads: ", e.what());
    }
  }

  void compare(const SelfTest& t, const std::vector<Array>& got, SelfTestOutcome& out) const {
    for (std::size_t i = 0; i < got.size(); ++i) {
      const SelfTestResult& expected = t.results[i];
      const Array& a = got[i];
      if (a.dims() != expected.dims)
        throw SelfTestFailure(failed(t, i), "is ", a.type(), ", expected dims ",
                              Shape(Dims(expected.dims.begin(), expected.dims.end())));
      if (hash128(a.bytes()) == expected.digest) continue;
      const bool needs_bits = t.is_exact || options_.is_same_machine;
      // A library's rounding may change an integer by one, and an index by any amount.
      if (!needs_bits && !is_float(a.dtype())) {
        out.sizes_only.push_back(entry_->results[i].name);
        continue;
      }
      compare_samples(t, i, a, needs_bits ? 0 : expected.allowed);
      if (needs_bits)
        throw SelfTestFailure(failed(t, i),
                              "differs from what was verified in elements between the ",
                              expected.places.size(), " that are kept");
    }
  }

  void compare_samples(const SelfTest& t, std::size_t i, const Array& a, double allowed) const {
    const SelfTestResult& expected = t.results[i];
    for (std::size_t k = 0; k < expected.places.size(); ++k) {
      const std::int64_t at = expected.places[k];
      if (at < 0 || at >= a.count())
        throw SelfTestFailure(failed(t, i), "has no element ", at, " of ", a.count());
      if (is_near(value_of(a, at), expected.values[k], allowed)) continue;
      throw SelfTestFailure(failed(t, i), "element ", at, ": got ", value_text(a, at),
                            ", expected ", expected.values[k], ", allowed difference ", allowed);
    }
  }

  void compare_threads(const SelfTest& t, const std::vector<Array>& first,
                       const std::vector<Array>& got, int threads) const {
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (std::ranges::equal(first[i].bytes(), got[i].bytes())) continue;
      const std::string result = cat(failed(t), "result '", entry_->results[i].name, "' ");
      if (first[i].dims() != got[i].dims())
        throw SelfTestFailure(result, "is ", got[i].type(), " with ", threads, " threads, ",
                              first[i].type(), " with ", options_.threads[0]);
      const std::int64_t at = first_difference(first[i], got[i]);
      throw SelfTestFailure(result, "element ", at, ": got ", value_text(got[i], at), " with ",
                            threads, " threads, ", value_text(first[i], at), " with ",
                            options_.threads[0]);
    }
  }

  SessionOptions options_for(const std::shared_ptr<const Executable>& executable,
                             int threads) const {
    SessionOptions out{.threads = threads, .states_are_inputs = true};
    if (executable == whole_) out.entry = entry_->name;
    return out;
  }

  std::shared_ptr<const Plan> plan_;
  const LoadedEntry* loaded_ = nullptr;  // under test, of whole_
  const PlanEntry* entry_ = nullptr;
  const Executable::Devices& devices_;
  const SelfTestOptions& options_;
  std::shared_ptr<const Executable> whole_;
};

}  // namespace

std::string inputs_text(const PlanEntry& entry, const SelfTest& t, std::size_t most) {
  std::string out;
  const std::size_t count = t.inputs.size(), shown = count <= most ? count : most;
  for (std::size_t i = 0; i < shown; ++i) {
    const SelfTestInput& in = t.inputs[i];
    out += cat(i == 0 ? "" : ", ", entry.params[i].name, " ", in.dtype,
               Shape(Dims(in.dims.begin(), in.dims.end())));
  }
  if (shown < count) out += cat(" and ", count - shown, " more");
  return out.empty() ? "no inputs" : out;
}

std::vector<SelfTestOutcome> run_self_tests(const std::shared_ptr<const Plan>& plan,
                                            const Executable::Devices& devices,
                                            const SelfTestOptions& options) {
  return Tester(plan, devices, options).run();
}

std::vector<Array> self_test_run(const Plan& plan, const PlanEntry& entry, const SelfTest& t,
                                 const Executable::Devices& devices) {
  const auto one = std::make_shared<const Plan>(only_variant(plan, entry, t.variant));
  Session session(Executable::load(one, devices), {.threads = 1, .states_are_inputs = true});
  return session.run(inputs_of(t));
}

}  // namespace hone
