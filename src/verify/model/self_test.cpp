#include "verify/model/self_test.h"

#include <algorithm>
#include <cmath>

#include "backend/devices/devices.h"
#include "base/error.h"
#include "plan/content_hash.h"
#include "runtime/self_test.h"
#include "verify/model/contents.h"
#include "verify/sizes.h"

namespace hone {

namespace {

constexpr std::size_t most_given_bytes = std::size_t{64} << 10;
// The kind of integers. They may be indices; smaller ones are tried if the plan refuses.
struct Integers {
  Listed listed = Listed::no;
  double high = 0;  // for random integers
};
constexpr Integers integer_contents[] = {
    {.high = 7}, {.high = 1}, {.high = 0}, {Listed::counting}, {Listed::shape}};
constexpr std::int64_t most_listed = 64;  // elements of axes and shapes

// Empty if dtype, rank or size show that these are not axes or a shape.
std::optional<Array> listed_array(Listed listed, DType dtype,
                                  const std::vector<std::int64_t>& dims) {
  Array a = Array::zeros(dtype, dims);
  if (dims.size() > 1 || a.count() > most_listed || (dtype != DType::i64 && dtype != DType::i32))
    return std::nullopt;
  for (std::int64_t i = 0; i < a.count(); ++i) a.set_integer(i, listed_integer(listed, i));
  return a;
}

// Error allowed for libraries of other machines, relative to the largest |element|.
double usual_error(DType t) {
  return t == DType::f64 ? 1e-11 : t == DType::f32 ? 1e-4 : t == DType::f16 ? 2e-2 : 1e-1;
}

// Range of made-up reals. Bools are false in a range below zero, true in one above zero.
struct Range {
  double low = -1, high = 1;
};
// Conditions mostly test a sign, so numbers of one sign take one branch, and the others the other.
constexpr Range of_one_sign[] = {{-1, 0}, {0, 1}};

bool has_branches(const Variant& v) {
  bool has = false;
  for_each_step(v.steps, [&](const Step& s) { has = has || s.kind == Step::Kind::branch; });
  return has;
}

bool is_exact(const Variant& v) {
  bool exact = true;
  for_each_step(v.steps, [&](const Step& s) {
    exact &= s.kind != Step::Kind::library && s.kind != Step::Kind::host;
  });
  return exact;
}

double largest(const Array& a) {
  double most = 0;
  for (std::int64_t i = 0; i < a.count(); ++i)
    if (const double x = std::fabs(a.real(i)); std::isfinite(x)) most = std::max(most, x);
  return most;
}

class Recorder {
 public:
  Recorder(Plan& plan, std::span<const std::vector<Array>> samples, double relative_error)
      : plan_(plan), devices_(open_devices(plan)), relative_error_(relative_error) {
    for (const std::vector<Array>& inputs : samples) samples_.push_back(&inputs);
    std::ranges::stable_sort(samples_, {}, [](const auto* s) { return bytes_of(*s); });
    for (const PlanParam& p : plan.main().params) types_.push_back(p.type);
  }

  void run() {
    std::vector<SelfTest> all;
    for (std::uint32_t v = 0; v < plan_.main().variants.size(); ++v) {
      std::vector<SelfTest> tests = of_variant(v);
      std::ranges::move(tests, std::back_inserter(all));
    }
    plan_.main().self_tests = std::move(all);
    plan_.content = content_hash_when_read(plan_);
  }

 private:
  std::vector<SelfTest> of_variant(std::uint32_t v) {
    SelfTest none;
    none.variant = v;
    if (!has_plain_values(plan_.main().variants[v])) {
      none.missing = "an input or a result is a string tensor or not a tensor";
      return {none};
    }
    std::vector<SelfTest> out;
    const std::vector<Sizing> sizes = sizes_of_tests(v);
    if (std::optional<SelfTest> t = of_samples(v)) out.push_back(std::move(*t));
    for (const Sizing& s : sizes)
      if (out.size() < 2)
        if (std::optional<SelfTest> t = made_up(v, s, {}, none.missing))
          out.push_back(std::move(*t));
    if (!sizes.empty() && has_branches(plan_.main().variants[v]))
      for (const Range& r : of_one_sign)
        if (std::optional<SelfTest> t = made_up(v, sizes[0], r, none.missing))
          out.push_back(std::move(*t));
    if (!out.empty()) return out;
    if (none.missing.empty()) none.missing = "no sizes were found that the variant supports";
    return {none};
  }

  bool has_plain_values(const Variant& v) const {
    const auto is_plain = [](const Type& t) { return t.is_tensor() && t.dtype != DType::text; };
    return std::ranges::all_of(types_, is_plain) && std::ranges::all_of(v.results, is_plain);
  }

  // Guards, and the equalities that the plan and the variant check before anything else.
  std::vector<Guard> conditions(const Variant& v) const {
    std::vector<Guard> out = v.guards;
    for (const PlanCheck& c : plan_.main().checks) out.push_back({Guard::Kind::equal, c.a, c.b});
    for (const Step& s : v.steps)
      if (s.kind == Step::Kind::refuse && s.scalars.size() == 2 && knows(s.scalars[0]) &&
          knows(s.scalars[1]))
        out.push_back({Guard::Kind::equal, s.scalars[0], s.scalars[1]});
    return out;
  }
  bool knows(const Dim& d) const {
    return std::ranges::all_of(d.symbols(), [&](const Dim& s) {
      return std::ranges::any_of(types_, [&](const Type& t) {
        return std::ranges::any_of(
            t.shape.dims, [&](const Dim& of) { return of.is_symbol() && of.name() == s.name(); });
      });
    });
  }

  std::vector<Sizing> sizes_of_tests(std::uint32_t v) const {
    const std::vector<Guard> all = conditions(plan_.main().variants[v]);
    std::vector<Sizing> out;
    for (const std::optional<Sizing>& s : {odd_sizes(types_, all, 5), sample_sizes(types_, all)})
      if (s && std::ranges::find(out, *s) == out.end()) out.push_back(*s);
    return out;
  }

  // The smallest set of samples that the variant serves.
  std::optional<SelfTest> of_samples(std::uint32_t v) {
    for (const std::vector<Array>* inputs : samples_) {
      if (bytes_of(*inputs) > most_given_bytes) break;
      SelfTest t = started(v);
      for (const Array& a : *inputs)
        t.inputs.push_back({.dtype = a.dtype(), .dims = a.dims(), .given = a});
      try {
        record(t);
        return t;
      } catch (const UserError&) {
        // Another variant serves these sizes.
      }
    }
    return std::nullopt;
  }

  std::optional<SelfTest> made_up(std::uint32_t v, const Sizing& sizes, const Range& reals,
                                  std::string& refusal) {
    for (const Integers& integers : integer_contents) {
      SelfTest t = started(v);
      for (const PlanParam& p : plan_.main().params)
        t.inputs.push_back(made_up(p, sizes, reals, integers, t.inputs.size() + 1));
      try {
        record(t);
        return t;
      } catch (const UserError& e) {
        if (refusal.empty()) refusal = e.what();
      }
    }
    return std::nullopt;
  }

  static SelfTestInput made_up(const PlanParam& p, const Sizing& sizes, const Range& reals,
                               const Integers& integers, std::uint64_t seed) {
    SelfTestInput in{.dtype = p.type.dtype, .dims = {}, .seed = seed, .given = p.required};
    in.low = reals.low;
    in.high = reals.high;
    for (const Dim& d : p.type.shape.dims) in.dims.push_back(size_of(d, sizes));
    if (!is_float(in.dtype)) {
      const bool is_condition = in.dtype == DType::b1;
      in.low = is_condition && reals.low >= 0 ? 1 : 0;
      in.high = is_condition ? (reals.high > 0 ? 1 : 0) : integers.high;
      if (!in.given && integers.listed != Listed::no)
        in.given = listed_array(integers.listed, in.dtype, in.dims);
    }
    return in;
  }

  SelfTest started(std::uint32_t v) const {
    SelfTest t;
    t.variant = v;
    t.is_exact = is_exact(plan_.main().variants[v]);
    return t;
  }

  void record(SelfTest& t) const {
    for (const Array& a : self_test_run(plan_, plan_.main(), t, devices_)) {
      SelfTestResult r = self_test_result(a);
      if (is_float(a.dtype()) && !t.is_exact)
        r.allowed = largest(a) * std::max(usual_error(a.dtype()), 2 * relative_error_);
      t.results.push_back(std::move(r));
    }
  }

  Plan& plan_;
  Executable::Devices devices_;
  std::vector<const std::vector<Array>*> samples_;  // smallest first
  double relative_error_;
  std::vector<Type> types_;
};

}  // namespace

void record_self_tests(Plan& plan, std::span<const std::vector<Array>> samples,
                       double relative_error) {
  Recorder(plan, samples, relative_error).run();
}

}  // namespace hone
