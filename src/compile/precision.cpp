#include "compile/precision.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "backend/devices/devices.h"
#include "base/amount.h"
#include "compile/compile.h"
#include "ref/evaluate.h"
#include "runtime/session.h"
#include "verify/model/made_inputs.h"
#include "verify/model/overflow.h"
#include "verify/model/whole.h"
#include "verify/sizes.h"

namespace hone {

namespace {

std::unique_ptr<Session> session_of(std::shared_ptr<const Plan> plan, int threads) {
  return std::make_unique<Session>(Executable::load(plan, open_devices(*plan)),
                                   SessionOptions{.threads = threads});
}

struct InputSet {
  std::size_t variant = 0;
  std::vector<Array> arrays;
  std::string name;
};

std::vector<InputSet> samples_of(const Source& source) {
  std::vector<InputSet> out;
  for (std::size_t s = 0; s < source.samples.size(); ++s)
    for (std::size_t v = 0; v < source.variants.size(); ++v)
      if (guards_hold(source.variants[v].guards, sizes_of(source.variants[v], source.samples[s]))) {
        out.push_back({v, source.samples[s], cat("set ", s + 1, " of the inputs")});
        break;
      }
  return out;
}

// Two sets, the second with the sizes at which kernels are checked; none that the function refuses.
void add_made_up(const Source& source, std::size_t variant, std::vector<InputSet>& out) {
  const SourceVariant& v = source.variants[variant];
  const auto add = [&](MadeInputs made) {
    if (made.problem.empty()) out.push_back({variant, std::move(made.arrays), "random inputs"});
  };
  if (auto made = made_inputs_and_sizes(v.function, conditions_of(v))) add(std::move(*made));
  try {
    const Sizing sizes = sizes_to_check(source, v);
    if (!sizes.empty()) add(made_inputs(v.function, sizes));
  } catch (const UserError&) {  // no sizes satisfy the conditions
  }
}

std::vector<InputSet> input_sets(const Source& source) {
  std::vector<InputSet> out = samples_of(source);
  for (std::size_t v = 0; v < source.variants.size(); ++v)
    if (std::ranges::count(out, v, &InputSet::variant) == 0) add_made_up(source, v, out);
  return out;
}

// Results of the model as given: reals in double precision where that is affordable, and whether
// an element is a number in the model's own types.
class Given {
 public:
  Given(const Source& source, const CompileOptions& options, double most_gmac)
      : source_(source), options_(options), gmac_left_(most_gmac) {
    evaluators_.resize(source.variants.size());
  }

  void run(const InputSet& set) {
    const SourceVariant& v = source_.variants[set.variant];
    const double gmac =
        static_cast<double>(flops_at(flops_of(v.function), sizes_of(v, set.arrays))) / 2e9;
    set_ = &set;
    strict_.reset();
    if (gmac > gmac_left_) {
      wide_.clear();
      for (const Array& a : compiled().run(set.arrays)) wide_.push_back(widen(a));
      strict_ = wide_;
      return;
    }
    gmac_left_ -= gmac;
    if (!evaluators_[set.variant])
      evaluators_[set.variant] = std::make_unique<Evaluator>(v.function);
    wide_ = evaluators_[set.variant]->in(Mode::wide, set.arrays);
  }

  const Wide& wide(std::size_t result) const { return wide_[result]; }
  bool is_finite(std::size_t result, std::size_t element) {
    if (!strict_) strict_ = evaluators_[set_->variant]->in(Mode::strict, set_->arrays);
    return std::isfinite((*strict_)[result].reals[element]);
  }

 private:
  Session& compiled() {
    if (!session_) {
      CompileOptions options = options_;
      options.verification = Verification::none;
      options.measure = options.tune = false;
      session_ =
          session_of(std::make_shared<const Plan>(compile(source_, options)), options.threads);
    }
    return *session_;
  }

  const Source& source_;
  const CompileOptions& options_;
  double gmac_left_;
  std::vector<std::unique_ptr<Evaluator>> evaluators_;  // by variant
  std::unique_ptr<Session> session_;
  const InputSet* set_ = nullptr;
  std::vector<Wide> wide_;
  std::optional<std::vector<Wide>> strict_;
};

void compare(const Array& got, std::size_t result, Given& given, PrecisionError& e) {
  const Wide& wide = given.wide(result);
  if (got.dims() != wide.dims) {
    e.other_sizes = cat(got.type(), " instead of ", narrow(wide).type());
    return;
  }
  for (std::size_t k = 0; k < wide.reals.size(); ++k) {
    const double expected = wide.reals[k], real = got.real(static_cast<std::int64_t>(k));
    if (!std::isfinite(expected)) continue;
    if (!std::isfinite(real)) {
      e.overflowed += given.is_finite(result, k) ? 1 : 0;
      continue;
    }
    e.largest_value = std::max(e.largest_value, std::fabs(expected));
    e.largest_error = std::max(e.largest_error, std::fabs(real - expected));
  }
}

std::string overflow_text(const PrecisionError& e, const InputSet& set, const Source& narrow) {
  std::string where = first_overflow(narrow.variants[set.variant].function, set.arrays);
  return cat("result '", e.name, "' is infinite or NaN in ",
             amount(e.overflowed, "element", "elements"), " for ", set.name,
             ", where the model as given has numbers",
             where.empty() ? "" : cat("; the first value that overflows is ", where));
}

}  // namespace

Source at_precision(const Source& source, Precision p) {
  Source out = source;
  for (SourceVariant& v : out.variants) v.function = with_precision(v.function, p);
  return out;
}

PrecisionReport precision_report(const Source& given, const Source& narrow, const Plan& plan,
                                 const CompileOptions& options, double most_gmac) {
  const auto session =
      session_of(std::shared_ptr<const Plan>(std::shared_ptr<void>(), &plan), options.threads);
  Given expected(given, options, most_gmac);
  PrecisionReport out;
  for (const PlanParam& r : plan.main().results) out.results.push_back({.name = r.name});
  for (const InputSet& set : input_sets(given)) {
    expected.run(set);
    const std::vector<Array> got = session->run(set.arrays);
    ++out.sets;
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (!is_float(got[i].dtype())) continue;
      PrecisionError& e = out.results[i];
      compare(got[i], i, expected, e);
      if (e.overflowed > 0 && out.overflow.empty()) out.overflow = overflow_text(e, set, narrow);
    }
  }
  std::erase_if(out.results, [](const PrecisionError& e) {
    return e.largest_value == 0 && e.largest_error == 0 && e.overflowed == 0 &&
           e.other_sizes.empty();
  });
  return out;
}

}  // namespace hone
