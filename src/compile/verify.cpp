#include "compile/verify.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "compile/trial.h"
#include "ops/expand.h"
#include "pass/unify.h"
#include "ref/element.h"
#include "ref/enclosure.h"
#include "schedule/cost.h"

namespace hone {

namespace {

// Groups of more work than this are checked on sampled elements, on fewer where each is much work:
// the interpreter is slow, and a check is to take a fifth of the time of a compilation at most.
constexpr std::int64_t most_whole_flops = 300'000;
// Of more work than this some chunks are run, so that a check is a small part of what a compilation
// takes.
constexpr std::int64_t most_run_flops = 300'000'000;
// So much work is in long sums, of which extreme numbers leave nothing but NaN.
constexpr std::int64_t most_extreme_flops = 500'000'000;
constexpr std::int64_t most_samples = 64, least_samples = 12, sampled_flops = 16'000;

void keep_worst(Comparison& worst, const Comparison& c) {
  const bool was_ok = worst.ok;
  if (was_ok && !c.ok) worst = c;
  if (c.ok == was_ok && c.max_rel_error > worst.max_rel_error) worst = c;
}

// Whether every element is enclosed in intervals. Of those of which nothing is known the first rule
// decides, but for those that hang on the order of operations. An open decision is one of few.
bool encloses(const Enclosure& e, const Array& got, const Wide& strict, const Wide& wide) {
  if (!accept(got, e).ok) return false;
  if (!is_float(got.dtype())) return true;
  Wide judged = wide;
  for (std::size_t i = 0; i < judged.reals.size(); ++i) {
    const bool is_unknown =
        std::isnan(e.low.reals[i]) && !std::isnan(e.high.reals[i]) && !e.hangs_on_order(i);
    judged.reals[i] = is_unknown ? got.real(static_cast<std::int64_t>(i))
                                 : round_real(got.dtype(), wide.reals[i]);
  }
  return accept(judged, strict, wide).ok;
}

Comparison whole(const Function& f, const Trial& trial) {
  Comparison worst;
  std::vector<Wide> strict = evaluate_wide(f, trial.inputs(), Mode::strict);
  std::vector<Wide> wide = evaluate_wide(f, trial.inputs(), Mode::wide);
  std::vector<Array> got = trial.results();
  std::vector<Wide> stepwise;
  std::vector<Enclosure> enclosures;
  for (std::size_t i = 0; i < got.size(); ++i) {
    Comparison c = accept(got[i], strict[i], wide[i]);
    // Numbers are rounded on the way as well: a running product may overflow there.
    if (!c.ok && c.problem.empty()) {
      if (stepwise.empty()) stepwise = evaluate_wide(f, trial.inputs(), Mode::stepwise);
      if (const Comparison other = accept(got[i], stepwise[i], wide[i]); other.ok) c = other;
    }
    if (!c.ok && c.problem.empty()) {
      if (enclosures.empty()) enclosures = enclose(f, trial.inputs());
      c.ok = encloses(enclosures[i], got[i], strict[i], wide[i]);
    }
    keep_worst(worst, c);
  }
  return worst;
}

void set_element(Wide& w, std::size_t i, const Element& e) {
  if (w.is_real())
    w.reals[i] = e.real;
  else
    w.integers[i] = e.integer;
}

// How many elements of a result to check, by the work in each. Places are found by random numbers;
// extreme ones need few.
std::int64_t samples_of(std::int64_t count, std::int64_t flops, Fill fill) {
  const std::int64_t each = std::max<std::int64_t>(flops / std::max<std::int64_t>(count, 1), 1);
  const std::int64_t wanted = std::clamp(sampled_flops / each, least_samples, most_samples);
  return fill == Fill::extreme ? std::max(wanted / 3, least_samples) : wanted;
}

// Both ends, and places in between that meet every residue of a tile sooner or later: where each is
// little work some beside one another, which may share a row that was reduced. Of those between
// only the `usable` ones, and fewer than wanted where few are.
template <class Usable>
std::vector<std::int64_t> sampled_places(std::int64_t count, std::int64_t wanted, Usable usable) {
  const std::int64_t beside = wanted < most_samples ? 1 : 4;
  wanted = std::min(wanted, count);
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < wanted / 4; ++i) {
    out.push_back(i);
    out.push_back(count - 1 - i);
  }
  std::uint64_t state = 12345;
  for (std::int64_t left = 16 * wanted; left > 0 && std::ssize(out) < wanted; --left) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    const auto first = static_cast<std::int64_t>((state >> 20) % static_cast<std::uint64_t>(count));
    for (std::int64_t i = first; i < std::min(first + beside, count); ++i)
      if (usable(i)) out.push_back(i);
  }
  return out;
}

struct Samples {
  std::vector<std::int64_t> places;
  Wide got, strict, wide;

  Comparison accepted() const {
    Comparison c = accept(got, strict, wide);
    if (c.first_bad >= 0) c.first_bad = places[static_cast<std::size_t>(c.first_bad)];
    return c;
  }
};

// Nothing when more than `most` elements are computed for them.
std::optional<Samples> at_places(const Array& got, std::size_t result,
                                 std::vector<std::int64_t> places, ElementEvaluator& strict,
                                 ElementEvaluator& wide, std::int64_t most) {
  const Wide none(got.dtype(), {static_cast<std::int64_t>(places.size())});
  Samples s{std::move(places), none, none, none};
  const auto of_strict = strict.all_at(result, s.places, most);
  if (!of_strict) return std::nullopt;
  const auto of_wide = wide.all_at(result, s.places, most);
  if (!of_wide) return std::nullopt;
  for (std::size_t i = 0; i < s.places.size(); ++i) {
    const std::int64_t at = s.places[i];
    set_element(s.got, i,
                {none.is_real() ? got.real(at) : 0, none.is_real() ? 0 : got.integer(at)});
    set_element(s.strict, i, (*of_strict)[i]);
    set_element(s.wide, i, (*of_wide)[i]);
  }
  return s;
}

// Runs all chunks of a launch, or the first, the last and some between.
class SomeChunks final : public ThreadPool {
 public:
  explicit SomeChunks(std::shared_ptr<ThreadPool> pool) : pool_(std::move(pool)) {}

  void leave_out(bool some) { leaves_out_ = some; }
  int threads() const override { return pool_->threads(); }
  void run(std::int64_t chunks, Body body, void* context) override {
    if (!leaves_out_) return pool_->run(chunks, body, context);
    for (std::int64_t i = 0; i < chunks; ++i)
      if (i == 0 || i == chunks - 1 || i % 4 == 2) body(context, i, i + 1, 0);
  }

 private:
  std::shared_ptr<ThreadPool> pool_;
  bool leaves_out_ = false;
};

// Whether nothing that the candidate runs reads what it ran before.
bool is_one_launch(const Candidate& c) {
  const auto runs = [](const Candidate::Step& s) { return !s.prepare; };
  return std::ranges::count_if(c.steps, runs) == 1 &&
         std::holds_alternative<Kernel>(std::ranges::find_if(c.steps, runs)->what);
}

class Check {
 public:
  Check(const GroupSpec& spec, const Candidate& candidate, KernelCompiler& compile,
        const std::shared_ptr<TrialMemory>& memory, const std::shared_ptr<ThreadPool>& pool,
        const Sizing& sizes)
      : flops_(size_of(ideal_flops(spec.function), sizes)),
        function_(with_numbers(spec.function, sizes)),
        chunks_(std::make_shared<SomeChunks>(pool)),
        trial_(spec, candidate, compile, memory, chunks_, sizes, Fill::random, seed),
        most_elements_(most_elements(function_, flops_)),
        is_one_launch_(is_one_launch(candidate)) {}

  Comparison operator()() {
    Comparison worst;
    for (Fill fill : {Fill::random, Fill::extreme}) {
      if (fill == Fill::extreme && flops_ > most_extreme_flops) break;
      if (fill != Fill::random) trial_.refill(fill, seed);
      keep_worst(worst, compared(fill));
    }
    return worst;
  }

 private:
  static constexpr std::uint64_t seed = 17;

  // A size like n + 64 says nothing about n, so the reference gets numbers.
  static Function with_numbers(const Function& f, const Sizing& sizes) {
    std::map<std::string, Dim> numbers;
    for (const auto& [name, value] : sizes) numbers.emplace(name, value);
    return expand_composites(substitute_sizes(f, numbers));
  }

  // An element alone takes several times as long as one of many. So where a few of the results need
  // a good part of all that is computed, everything is evaluated, unless that takes much memory.
  static std::int64_t most_elements(const Function& f, std::int64_t flops) {
    constexpr std::int64_t most_wide_elements = 1 << 27;
    std::int64_t all = 0;
    for (NodeId n : live_nodes(f))
      for (std::size_t i = 0; i < f.graph().result_count(n); ++i)
        all += f.graph().type(n, i).shape.count().high();
    return all > most_wide_elements ? std::numeric_limits<std::int64_t>::max()
                                    : std::max(most_whole_flops, flops / 8);
  }

  Comparison compared(Fill fill) {
    if (is_one_launch_ && flops_ > most_run_flops) {
      run(true);
      if (std::optional<Comparison> c = sampled(fill, true)) return *c;
    }
    run(false);
    if (flops_ > most_whole_flops)
      if (std::optional<Comparison> c = sampled(fill, false)) return *c;
    return whole(function_, trial_);
  }

  void run(bool some_chunks) {
    chunks_->leave_out(some_chunks);
    trial_.run();
    trial_.check_untouched();
  }

  // Few elements may all be small beside what cancelled in them. So a refused result is compared on
  // as many elements as show its size. Nothing when some chunks wrote too few elements, or not
  // those at both ends, or when that is as much work as to evaluate everything.
  std::optional<Comparison> sampled(Fill fill, bool some_chunks) {
    constexpr std::int64_t many_samples = 1000;
    Comparison worst;
    ElementEvaluator strict(function_, trial_.inputs(), Mode::strict);
    ElementEvaluator wide(function_, trial_.inputs(), Mode::wide);
    std::vector<Array> got = trial_.results();
    for (std::size_t r = 0; r < got.size(); ++r) {
      const std::int64_t count = got[r].count(), wanted = samples_of(count, flops_, fill);
      const auto is_made = [&](std::int64_t at) {
        return !some_chunks || !Trial::is_unwritten(got[r], at);
      };
      const auto places = [&](std::int64_t n) { return sampled_places(count, n, is_made); };
      std::vector<std::int64_t> few = places(wanted);
      if (std::ssize(few) < std::min(wanted, count) || !std::ranges::all_of(few, is_made))
        return std::nullopt;
      const auto at = [&](std::vector<std::int64_t> those) {
        return at_places(got[r], r, std::move(those), strict, wide, most_elements_);
      };
      const std::optional<Samples> first = at(std::move(few));
      if (!first) return std::nullopt;
      Comparison c = first->accepted();
      if (!c.ok) {
        const std::optional<Samples> many = at(places(many_samples));
        if (!many) return std::nullopt;
        c = many->accepted();
      }
      keep_worst(worst, c);
    }
    return worst;
  }

  std::int64_t flops_;
  Function function_;
  std::shared_ptr<SomeChunks> chunks_;
  Trial trial_;
  std::int64_t most_elements_;  // to compute one by one
  bool is_one_launch_;
};

}  // namespace

Comparison verify(const GroupSpec& spec, const Candidate& candidate, KernelCompiler& compile,
                  const std::shared_ptr<TrialMemory>& memory,
                  const std::shared_ptr<ThreadPool>& pool, const Sizing& sizes) {
  return Check(spec, candidate, compile, memory, pool, sizes)();
}

}  // namespace hone
