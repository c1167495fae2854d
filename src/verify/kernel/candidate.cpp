#include "verify/kernel/candidate.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>

#include "ops/expand.h"
#include "ops/ops.h"
#include "pass/unify.h"
#include "ref/element.h"
#include "ref/enclosure.h"
#include "ref/expected.h"
#include "ref/rounding.h"
#include "schedule/cost.h"
#include "verify/kernel/chunks.h"
#include "verify/kernel/trial.h"
#include "verify/sizes.h"

namespace hone {

namespace {

using Clock = std::chrono::steady_clock;

// Groups with more work or elements than this are checked on sampled elements, fewer if each needs
// much work: the interpreter is slow, and a check should take at most a fifth of the compilation
// time.
constexpr std::int64_t most_whole_flops = 300'000, most_whole_elements = 1 << 20;
// A kernel is checked at up to ten other sizes that need no more work than this, and at some larger
// ones, on sampled elements.
constexpr std::int64_t most_other_flops = 100'000, most_larger_flops = 10'000'000;
constexpr std::int64_t most_larger_elements = 1 << 20, most_larger_weights = 4 << 20;
constexpr std::size_t most_larger_sizes = 2;
// The limit for all draws of extreme numbers together, in operations and in elements.
constexpr std::int64_t most_drawn = 100'000;
// Above this work, only some chunks are run, so that a check is a small part of the compilation
// time.
constexpr std::int64_t most_run_flops = 30'000'000;
// In that case one chunk in 4 to one in 64 is run, fewer for more work.
constexpr std::int64_t least_apart = 4, most_apart = 64;
// Above this work, negative, tiny and wide numbers are not tried: the work is in products, where
// signs and magnitudes do not matter.
constexpr std::int64_t most_varied_flops = 20'000'000;
// Above this work there are long sums, which extreme numbers turn into NaN, so only few numbers are
// special.
constexpr std::int64_t most_extreme_flops = 500'000'000;
// Above this work they are tried only if running some chunks is enough to show them.
constexpr std::int64_t most_rare_flops = 4'000'000'000;
// Enclosures of extreme numbers are used up to this work, and if casts to fewer bits round.
constexpr std::int64_t most_each_extreme_flops = 20'000;
constexpr std::uint64_t seed = 17;  // of the inputs
constexpr std::int64_t most_samples = 64, least_samples = 12, sampled_flops = 16'000,
                       sampled_reads = 200'000;

void keep_worst(Comparison& worst, const Comparison& c) {
  const bool was_ok = worst.ok;
  if (was_ok && !c.ok) worst = c;
  if (c.ok == was_ok && c.max_rel_error > worst.max_rel_error) worst = c;
}

// Whether every element lies in its interval. Elements with unknown bounds use the first rule,
// unless they depend on the order of operations. An open decision has few outcomes. Where sums of
// wide numbers cancel, a logarithm may be anything, so the intervals are enough there.
bool encloses(const Enclosure& e, const Wide& got, const Wide& strict, const Wide& wide,
              Fill fill) {
  if (!accept(got, e).ok) return false;
  if (!got.is_real() || fill == Fill::wide) return true;
  Wide judged = wide;
  for (std::size_t i = 0; i < judged.reals.size(); ++i) {
    const bool is_unknown =
        std::isnan(e.low.reals[i]) && !std::isnan(e.high.reals[i]) && !e.hangs_on_order(i);
    judged.reals[i] = is_unknown ? got.reals[i] : round_real(got.dtype, wide.reals[i]);
  }
  return accept(judged, strict, wide).ok;
}

// Checks that rounding explains every element, also small ones beside large ones.
Comparison accept_each(const Enclosure& e, const Wide& got, Comparison c) {
  const Comparison each = accept(got, e);
  return each.ok || !each.problem.empty() ? c : each;
}

// The reference for a group on the inputs of a trial. Functions are made at first use: a check at
// other sizes rarely needs them.
class GroupMeaning {
 public:
  // `rounded`: the function with the roundings that a candidate adds, or null.
  GroupMeaning(const GroupSpec& spec, const Trial& trial, const Sizing& sizes,
               const Function* rounded)
      : spec_(spec), trial_(trial), sizes_(sizes), rounded_(rounded) {}

  const Function& function() {
    if (!function_) function_ = with_numbers(spec_.function);
    return *function_;
  }
  Evaluator& evaluator() {
    if (!evaluator_) evaluator_.emplace(function());
    return *evaluator_;
  }
  std::vector<Enclosure> enclosures() {
    return enclose(rounded_ ? with_numbers(*rounded_) : function(), trial_.inputs());
  }

 private:
  // A size like n + 64 says nothing about n, so the reference gets numbers.
  Function with_numbers(const Function& f) const {
    return trial_.of_inputs(expand_composites(substitute_sizes(f, sizes_)));
  }

  const GroupSpec& spec_;
  const Trial& trial_;
  const Sizing& sizes_;
  const Function* rounded_;
  std::optional<Function> function_;
  std::optional<Evaluator> evaluator_;
};

// `each`: every element must lie in its own enclosure.
Comparison whole(GroupMeaning& meaning, const Trial& trial, Expected& expected, Fill fill,
                 bool each) {
  Comparison worst;
  const std::vector<Wide>& wide = expected.wide();
  std::vector<Wide> got, stepwise;
  for (const Array& a : trial.results()) got.push_back(widen(a));
  std::vector<Enclosure> enclosures;
  if (each) enclosures = meaning.enclosures();
  for (std::size_t i = 0; i < got.size(); ++i) {
    Comparison c = expected.accept(i, got[i]);
    // Intermediate numbers are rounded too: a running product may overflow.
    if (!c.ok && c.problem.empty()) {
      if (stepwise.empty()) stepwise = meaning.evaluator().in(Mode::stepwise, trial.inputs());
      if (const Comparison other = accept(got[i], stepwise[i], wide[i]); other.ok) c = other;
    }
    if (!c.ok && c.problem.empty()) {
      if (enclosures.empty()) enclosures = meaning.enclosures();
      c.ok = encloses(enclosures[i], got[i], expected.rounded()[i], wide[i], fill);
    }
    if (c.ok && each) c = accept_each(enclosures[i], got[i], c);
    keep_worst(worst, c);
  }
  return worst;
}

// `wanted` elements of a result are checked, fewer if each needs much work. If each needs little
// arithmetic, they are taken in runs of `beside` adjacent elements, which may share a reduced row.
struct SampleSize {
  std::int64_t wanted, beside;
};

// `reads`: number of elements that the reference reads to compute one. Random numbers show wrong
// places; faults that the other fills show are the same at every place, so they need fewer samples.
SampleSize samples_of(std::int64_t count, std::int64_t flops, std::int64_t reads, Fill fill) {
  const std::int64_t each = std::max<std::int64_t>(flops / std::max<std::int64_t>(count, 1), 1);
  // Elements of rows of millions: even few of them take most of the check.
  constexpr std::int64_t long_reads = 250'000, least_of_long = 6;
  const std::int64_t least = reads > long_reads ? least_of_long : least_samples;
  const std::int64_t wanted =
      std::clamp(std::min(sampled_flops / each, sampled_reads / reads), least, most_samples);
  return {fill == Fill::random ? wanted : std::max(wanted / 3, least),
          sampled_flops / each < most_samples ? 1 : 4};
}

// Both ends, and places in between that eventually cover every residue of a tile. In between only
// `usable` places, so there may be fewer than wanted.
template <class Usable>
std::vector<std::int64_t> sampled_places(std::int64_t count, SampleSize size, Usable usable) {
  const auto [all, beside] = size;
  const std::int64_t wanted = std::min(all, count);
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

// Empty when this needs more than `most` computed elements.
std::optional<Samples> at_places(const Array& got, std::size_t result,
                                 std::vector<std::int64_t> places, ElementEvaluator& reference,
                                 std::int64_t most) {
  const auto expected = reference.all_at(result, places, most);
  if (!expected) return std::nullopt;
  Samples s{std::move(places),
            {},
            listed(got.dtype(), *expected, &ElementOfModes::strict),
            listed(got.dtype(), *expected, &ElementOfModes::wide)};
  s.got = Wide(got.dtype(), s.wide.dims);
  for (std::size_t i = 0; i < s.places.size(); ++i)
    if (s.got.is_real())
      s.got.reals[i] = got.real(s.places[i]);
    else
      s.got.integers[i] = got.integer(s.places[i]);
  return s;
}

class Check {
 public:
  Check(const GroupSpec& spec, const Dim& flops, const Candidate& candidate, KernelCode& compile,
        const std::shared_ptr<TrialMemory>& memory, const Sizing& sizes, Fill first,
        const Function* rounded, Clock::time_point end)
      : flops_(size_of(flops, sizes)),
        end_(end),
        is_one_launch_(is_one_launch(candidate)),
        packs_some_(is_one_launch_ && flops_ > most_run_flops && chunks_->pack_for_some(candidate)),
        trial_(spec, candidate, compile, memory, chunks_, sizes, first, seed, Trial::Use::check),
        extreme_(extreme_of(memory->device()->limits().keeps_denormals)),
        meaning_(spec, trial_, sizes, rounded) {}

  Comparison all() {
    const Function& f = meaning_.function();
    is_small_ = flops_ <= most_whole_flops && elements_of(f) <= most_whole_elements;
    is_each_extreme_ = flops_ <= most_each_extreme_flops || has_narrowing_cast(f);
    most_elements_ = most_elements(f, flops_);
    Comparison worst = compared(Fill::random);
    if (is_out_of_time()) return worst;
    if (worst.ok && chunks_->were_several()) compare_backwards(Fill::random);
    for (Fill fill : {Fill::negative, Fill::tiny, Fill::wide, extreme_}) {
      if (is_out_of_time()) return worst;
      if (flops_ > (is_extreme(fill) ? most_extreme_flops : most_varied_flops)) continue;
      trial_.refill(fill, seed);
      keep_worst(worst, compared(fill));
    }
    if (is_small_) draw_again(worst);
    if (is_out_of_time()) return worst;
    if (trial_.has_mask() && flops_ <= most_extreme_flops) {
      trial_.refill(Fill::hiding, seed);
      keep_worst(worst, compared(Fill::hiding));
    }
    if (flops_ > most_extreme_flops && !is_out_of_time()) compare_rare(worst);
    return worst;
  }
  bool was_shortened() const { return was_shortened_; }

  // Compares sampled elements of one run, and its chunks in another order.
  Comparison once(Fill fill) {
    const Function& f = meaning_.function();
    is_small_ = flops_ <= most_whole_flops && elements_of(f) <= most_whole_elements;
    most_elements_ = most_elements(f, flops_);
    Comparison c = compared(fill);
    if (c.ok && chunks_->were_several()) compare_backwards(fill);
    return c;
  }

  // Compares one run on the initial contents of memory with the reference's results.
  Comparison once(Expected& expected, Fill fill) {
    run(Chunks::Which::all);
    return whole(meaning_, trial_, expected, fill, false);
  }

 private:
  // Small groups of few nodes take little time and show most.
  bool is_out_of_time() {
    constexpr std::size_t few_nodes = 2'000;
    const bool is_quick = is_small_ && meaning_.function().graph().node_count() <= few_nodes;
    was_shortened_ = was_shortened_ || (!is_quick && Clock::now() > end_);
    return was_shortened_;
  }

  // Such a cast may round to the wrong neighbor without showing in a sum of errors.
  static bool has_narrowing_cast(const Function& f) {
    return std::ranges::any_of(live_nodes(f), [&](NodeId n) {
      const Value v(&f.graph(), n);
      return v.is(ops::cast) && is_float(v.dtype()) && is_float(v.operand(0).dtype()) &&
             bit_size(v.dtype()) < bit_size(v.operand(0).dtype());
    });
  }

  static std::int64_t elements_of(const Function& f) {
    std::int64_t all = 0;
    for (NodeId n : live_nodes(f))
      for (std::size_t i = 0; i < f.graph().result_count(n); ++i)
        all += f.graph().type(n, i).shape.count().high();
    return all;
  }

  // Evaluating an element alone takes several times as long as one of many, and evaluating
  // everything takes as long as all nodes have elements, or as they have operations. So if a few
  // results need a large part of that, everything is evaluated, unless that takes much memory.
  static std::int64_t most_elements(const Function& f, std::int64_t flops) {
    constexpr std::int64_t most_wide_elements = 1 << 27;
    const std::int64_t elements = elements_of(f);
    return elements > most_wide_elements ? std::numeric_limits<std::int64_t>::max()
                                         : std::max({most_whole_flops, flops / 8, elements / 4});
  }

  Comparison compared(Fill fill) {
    if (is_one_launch_ && flops_ > most_run_flops) {
      run(Chunks::Which::some);
      if (std::optional<Comparison> c = sampled(fill, true)) return *c;
    }
    run(Chunks::Which::all);
    if (!is_small_)
      if (std::optional<Comparison> c = sampled(fill, false)) return *c;
    Expected expected(meaning_.evaluator(), trial_.inputs(), Mode::strict);
    return whole(meaning_, trial_, expected, fill,
                 is_small_ && (fill == Fill::random || (is_extreme(fill) && is_each_extreme_)));
  }

  void run(Chunks::Which which, Chunks::Order order = Chunks::Order::forwards) {
    ran_ = which;
    chunks_->set(which, order);
    if (packs_some_ && which == Chunks::Which::all) {
      packs_some_ = false;
      trial_.prepare();
    }
    trial_.run();
    trial_.check_untouched();
  }

  std::vector<Hash128> hashes() const {
    std::vector<Hash128> out;
    for (const Array& a : trial_.results()) out.push_back(hash128(a.bytes()));
    return out;
  }

  // Small operands hold few special numbers at once.
  void draw_again(Comparison& worst) {
    const std::int64_t each = std::max({flops_, elements_of(meaning_.function()), std::int64_t{1}}),
                       draws = std::min(trial_.extreme_draws(), 1 + most_drawn / each);
    for (std::int64_t draw = 1; draw < draws && worst.ok; ++draw) {
      trial_.refill(extreme_, seed, draw);
      keep_worst(worst, compared(extreme_));
    }
  }

  // Checks NaN and infinity; some chunks and some elements are enough for that.
  void compare_rare(Comparison& worst) {
    if (!is_one_launch_ && flops_ > most_rare_flops) return;
    trial_.refill(Fill::rare, seed);
    run(is_one_launch_ ? Chunks::Which::some : Chunks::Which::all);
    if (const std::optional<Comparison> c = sampled(Fill::rare, is_one_launch_))
      keep_worst(worst, *c);
  }

  // Results of a chunk must not depend on which chunks ran before it, or on which thread.
  void compare_backwards(Fill fill) {
    const std::vector<Hash128> before = hashes();
    trial_.refill(fill, seed);
    run(ran_, Chunks::Order::backwards);
    if (hashes() != before)
      throw UserError(
          "its results depend on the order of its chunks and on the thread that each "
          "runs on");
  }

  // A few elements may all be small because of cancellation. So a refused result is compared again
  // on enough elements to show its magnitude. Empty when some chunks wrote too few elements, or not
  // those at both ends, or when evaluating everything is as cheap.
  std::optional<Comparison> sampled(Fill fill, bool some_chunks) {
    constexpr std::int64_t many_samples = 1000;
    Comparison worst;
    const Function& f = meaning_.function();
    ElementEvaluator wide(f, trial_.inputs(), Mode::wide);
    std::optional<ElementEvaluator> both;
    std::vector<Array> got = trial_.results();
    for (std::size_t r = 0; r < got.size(); ++r) {
      const std::int64_t count = got[r].count();
      if (count == 0) continue;
      const std::int64_t before = wide.reads();
      if (!wide.all_at(r, std::array{std::int64_t{0}}, most_elements_)) return std::nullopt;
      const SampleSize size =
          samples_of(count, flops_, std::max<std::int64_t>(wide.reads() - before, 1), fill);
      const auto is_made = [&](std::int64_t at) {
        return !some_chunks || !Trial::is_unwritten(got[r], at);
      };
      const auto places = [&](SampleSize n) { return sampled_places(count, n, is_made); };
      std::vector<std::int64_t> few = places(size);
      if (std::ssize(few) < std::min(size.wanted, count) || !std::ranges::all_of(few, is_made))
        return std::nullopt;
      const auto at = [&](std::vector<std::int64_t> those, ElementEvaluator& by) {
        return at_places(got[r], r, std::move(those), by, most_elements_);
      };
      // Results that the wide mode alone accepts are accepted regardless of the other mode
      // (ref/expected.h).
      std::optional<Samples> first = at(few, wide);
      if (!first) return std::nullopt;
      Comparison c = first->accepted();
      if (!c.ok) {
        if (!both) both.emplace(f, trial_.inputs());
        first = at(std::move(few), *both);
        if (!first) return std::nullopt;
        c = first->accepted();
      }
      if (!c.ok) {
        std::vector<std::int64_t> many = places({many_samples, 4});
        std::erase_if(many, [&](std::int64_t i) { return !is_made(i); });
        const std::optional<Samples> more = at(many, *both);
        if (!more) return std::nullopt;
        c = more->accepted();
        // The rule estimates the error from few elements. Enclosures of all of them decide.
        if (!c.ok && flops_ <= most_varied_flops) return std::nullopt;
        // Too much work for enclosures, so the estimate includes the rounding of every addition.
        ElementEvaluator stepwise(f, trial_.inputs(), Mode::stepwise);
        if (!c.ok)
          if (const std::optional<Samples> rounded = at(std::move(many), stepwise)) {
            c = rounded->accepted();
            c.ok = c.ok || is_rounding(f, r, *rounded);
          }
      }
      keep_worst(worst, c);
    }
    return worst;
  }

  // Whether numbers that are rounded differently explain the samples, as where a logarithm enlarges
  // the rounding of a sum that cancels.
  bool is_rounding(const Function& f, std::size_t result, const Samples& s) const {
    constexpr std::int64_t most = 1 << 20;  // elements to compute, for all samples
    const auto evaluate = [&](const Function& g) -> std::vector<Wide> {
      const auto all = ElementEvaluator(g, trial_.inputs()).all_at(result, s.places, most);
      if (!all) return {};
      return {listed(s.got.dtype, *all, &ElementOfModes::strict)};
    };
    const std::vector<Wide> strict = {s.strict}, wide = {s.wide};
    return Rounding(f, evaluate, strict, wide).explains(0, s.got, {}, Rounding::few);
  }

  std::int64_t flops_;
  Clock::time_point end_;
  bool was_shortened_ = false;
  std::shared_ptr<Chunks> chunks_ =
      std::make_shared<Chunks>(std::clamp(flops_ / most_run_flops, least_apart, most_apart));
  bool is_one_launch_, packs_some_;
  Trial trial_;
  Fill extreme_;  // for this device
  GroupMeaning meaning_;
  Chunks::Which ran_ = Chunks::Which::all;  // in the last run
  bool is_small_ = false;
  bool is_each_extreme_ = false;    // also compares each element with its own enclosure there
  std::int64_t most_elements_ = 0;  // to compute one by one
};

// Results of a group on made-up inputs.
struct Given {
  Given(const GroupSpec& spec, Evaluator& evaluator, const Sizing& sizes, Fill fill)
      : inputs(Trial::sample_inputs(spec, sizes, fill, seed)),
        expected(evaluator, inputs, Mode::strict) {}

  std::vector<Array> inputs;
  Expected expected;
};

// The work of a group at other sizes, and the elements of its operands.
struct Amount {
  std::int64_t flops = 0, elements = 0, weights = 0;

  bool is_few() const {
    return flops <= most_other_flops && elements + weights <= most_whole_elements;
  }
  bool is_affordable() const {
    return flops <= most_larger_flops && elements <= most_larger_elements &&
           weights <= most_larger_weights;
  }
};

// Empty if it exceeds 64 bits.
std::optional<Amount> amount_at(const GroupSpec& spec, const Dim& flops, const Sizing& sizes) try {
  const Function& f = spec.function;
  Amount out{size_of(flops, sizes)};
  // Elements of the memory, which may have others in between.
  const auto add = [&](const Type& t, const Dims& strides, std::int64_t& to) {
    Dim last = 0;
    for (std::size_t i = 0; i < strides.size(); ++i)
      last = last + (t.shape.dims[i] - Dim(1)) * strides[i];
    to += std::max(size_of(t.shape.count(), sizes), size_of(last, sizes) + 1);
  };
  for (std::size_t i = 0; i < f.params().size(); ++i)
    add(f.param(i).type(), spec.param_strides[i],
        spec.param_is_weight[i] ? out.weights : out.elements);
  for (std::size_t i = 0; i < f.results().size(); ++i)
    add(f.result(i).type(), spec.result_strides[i], out.elements);
  return out;
} catch (const UserError&) {
  return std::nullopt;
}

// Empty if the reference refuses such sizes or data.
std::unique_ptr<Given> given_at(const GroupSpec& spec, Evaluator& evaluator, const Sizing& sizes,
                                Fill fill) try {
  return std::make_unique<Given>(spec, evaluator, sizes, fill);
} catch (const UserError&) {
  return nullptr;
}

// Whether no sizes and data are refused but by checks.
bool accepts_all(const Function& f) {
  return std::ranges::all_of(live_nodes(f), [&](NodeId n) { return f.graph().op(n).pure; });
}

// Those of the least and of the most work, of those that the checks allow.
std::vector<Sizing> larger_sizes(const Function& f, std::vector<std::pair<Amount, Sizing>> all) {
  std::erase_if(all, [&](const auto& a) { return !checks_hold(f.graph().checks(), a.second); });
  std::ranges::stable_sort(all, {}, [](const auto& a) { return a.first.flops; });
  std::vector<Sizing> out;
  const std::size_t taken = std::min(all.size(), most_larger_sizes);
  for (std::size_t k = 0; k < taken; ++k)
    out.push_back(all[taken == 1 ? 0 : k * (all.size() - 1) / (taken - 1)].second);
  return out;
}

// Whether operands of these sizes fit together.
bool is_allowed(const GroupSpec& spec, const Sizing& sizes) try {
  if (!checks_hold(spec.function.graph().checks(), sizes)) return false;
  static_cast<void>(expand_composites(substitute_sizes(spec.function, sizes)));
  return true;
} catch (const UserError&) {
  return false;
}

std::string sizes_text(const Function& f, const Sizing& sizes) {
  std::string out;
  for (const Dim& d : f.symbols()) {
    const std::string name(d.name());
    out += cat(out.empty() ? "" : ", ", name, " = ", size_of(d, sizes));
  }
  return out;
}

}  // namespace

std::optional<Sizing> allowed_sizes(const GroupSpec& spec, const Sizing& wanted,
                                    std::span<const Sizing> others) {
  const Dims symbols = spec.function.symbols();
  if (symbols.empty() || is_allowed(spec, wanted)) return wanted;
  for (const Sizing& other : others)
    if (is_allowed(spec, other)) return other;
  for (const std::int64_t equal : {4, 7, 1, 16, 2, 64}) {
    Sizing made = wanted;
    for (const Dim& s : symbols)
      made[std::string(s.name())] = std::clamp<std::int64_t>(equal, s.low(), s.high());
    if (is_allowed(spec, made)) return made;
  }
  return std::nullopt;
}

Comparison verify(const GroupSpec& spec, const Candidate& candidate, KernelCode& compile,
                  const std::shared_ptr<TrialMemory>& memory, const Sizing& sizes,
                  std::span<const Sizing> others, const Function* rounded, CheckTime* time) {
  const Dim flops = ideal_flops(spec.function);
  const Clock::time_point end = time ? Clock::now() + time->most : Clock::time_point::max();
  Check first(spec, flops, candidate, compile, memory, sizes, Fill::random, rounded, end);
  Comparison worst = first.all();
  if (time) time->is_shortened = first.was_shortened();
  if (spec.function.symbols().empty()) return worst;
  Evaluator evaluator(spec.function);
  const Fill fills[] = {Fill::random, Fill::negative,
                        extreme_of(memory->device()->limits().keeps_denormals)};
  std::vector<std::string> seen;
  std::vector<std::pair<Amount, Sizing>> larger;
  const auto check = [&](const Sizing& at, const auto& compare) {
    try {
      keep_worst(worst, compare());
    } catch (const UserError& e) {
      throw UserError("at ", sizes_text(spec.function, at), " ", e.what());
    }
    if (!worst.ok) worst.problem = cat("at ", sizes_text(spec.function, at), ": ", worst);
  };
  const auto check_at = [&](const Sizing& at, Fill fill) {
    return Check(spec, flops, candidate, compile, memory, at, fill, rounded, end);
  };
  for (const Sizing& other : others) {
    if (!worst.ok) return worst;
    if (std::ranges::find(seen, sizes_text(spec.function, other)) != seen.end()) continue;
    seen.push_back(sizes_text(spec.function, other));
    const std::optional<Amount> amount = amount_at(spec, flops, other);
    if (!amount || !amount->is_affordable()) continue;
    if (!amount->is_few()) {
      larger.emplace_back(*amount, other);
      continue;
    }
    const Fill fill = fills[seen.size() % std::size(fills)];
    if (const std::unique_ptr<Given> given = given_at(spec, evaluator, other, fill))
      check(other, [&] { return check_at(other, fill).once(given->expected, fill); });
  }
  if (!accepts_all(spec.function)) return worst;
  for (const Sizing& other : larger_sizes(spec.function, std::move(larger))) {
    const bool is_late = Clock::now() > end;
    if (time && is_late) time->is_shortened = true;
    if (worst.ok && !is_late)
      check(other, [&] { return check_at(other, Fill::random).once(Fill::random); });
  }
  return worst;
}

}  // namespace hone
