#include "compile/trial.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <unordered_set>

#include "ops/ops.h"
#include "pass/unify.h"
#include "ref/element.h"
#include "ref/enclosure.h"
#include "runtime/prepare.h"
#include "schedule/cost.h"
#include "schedule/plan_builder.h"

namespace hone {

namespace {

// Elements from the first to the last of a strided window.
std::int64_t extent(const std::vector<std::int64_t>& dims,
                    const std::vector<std::int64_t>& strides) {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0) return 0;
    last += (dims[i] - 1) * strides[i];
  }
  return last + 1;
}

std::vector<std::int64_t> numbers(const Dims& dims, const Sizes& sizes) {
  std::vector<std::int64_t> out;
  for (const Dim& d : dims) out.push_back(size_of(d, sizes));
  return out;
}

// Calls f(dense element, strided element) for every element: where neighbours in the one are not
// neighbours in the other, by squares of both axes, so that each line of memory is met once.
template <class F>
void for_each_place(const std::vector<std::int64_t>& dims, const std::vector<std::int64_t>& strides,
                    F f) {
  if (dims.empty()) return f(0, 0);
  constexpr std::int64_t side = 16;
  const std::size_t last = dims.size() - 1;
  const auto near = static_cast<std::size_t>(std::ranges::min_element(strides) - strides.begin());
  std::vector<std::int64_t> dense(dims.size(), 1);
  for (std::size_t k = last; k > 0; --k) dense[k - 1] = dense[k] * dims[k];
  const std::int64_t row = dims[last], beside = near == last ? 1 : dims[near];
  std::int64_t outer = 1;
  for (std::size_t k = 0; k < last; ++k) outer *= k == near ? 1 : dims[k];
  for (std::int64_t o = 0; o < outer; ++o) {
    std::int64_t from = 0, at = 0, rest = o;
    for (std::size_t k = last; k-- > 0;) {
      if (k == near) continue;
      from += rest % dims[k] * dense[k];
      at += rest % dims[k] * strides[k];
      rest /= dims[k];
    }
    for (std::int64_t first = 0; first < beside; first += side)
      for (std::int64_t i = 0; i < row; ++i)
        for (std::int64_t b = first; b < std::min(first + side, beside); ++b)
          f(from + b * dense[near] + i, at + b * strides[near] + i * strides[last]);
  }
}

// Calls f with an unsigned integer of as many bytes as an element has.
template <class F>
void with_element(DType t, F f) {
  switch (byte_size(t)) {
    case 1:
      return f(std::uint8_t{});
    case 2:
      return f(std::uint16_t{});
    case 4:
      return f(std::uint32_t{});
    default:
      HONE_ASSERT(byte_size(t) == 8, t, " has ", byte_size(t), " bytes");
      return f(std::uint64_t{});
  }
}

}  // namespace

// How the elements of one operand lie in its memory.
struct Trial::Place {
  DType dtype;
  std::vector<std::int64_t> dims, strides;

  std::int64_t bytes() const { return extent(dims, strides) * byte_size(dtype); }
};

namespace {

using Place = Trial::Place;

Place place_of(const Type& t, const Dims& strides, const Sizes& sizes) {
  return {t.dtype, numbers(t.shape.dims, sizes), numbers(strides, sizes)};
}

bool is_dense(const Place& p) {
  std::int64_t step = 1;
  for (std::size_t i = p.dims.size(); i-- > 0;) {
    if (p.dims[i] != 1 && p.strides[i] != step) return false;
    step *= p.dims[i];
  }
  return true;
}

void spread(const Array& dense, const Place& p, std::byte* to) {
  const std::byte* from = dense.bytes().data();
  if (is_dense(p)) {
    std::copy(from, from + dense.bytes().size(), to);
    return;
  }
  with_element(p.dtype, [&]<class E>(E) {
    for_each_place(p.dims, p.strides, [&](std::int64_t i, std::int64_t at) {
      reinterpret_cast<E*>(to)[at] = reinterpret_cast<const E*>(from)[i];
    });
  });
}

Array gather(const Place& p, const std::byte* from) {
  Array out = Array::zeros(p.dtype, p.dims);
  std::byte* to = out.writable_bytes().data();
  with_element(p.dtype, [&]<class E>(E) {
    for_each_place(p.dims, p.strides, [&](std::int64_t i, std::int64_t at) {
      reinterpret_cast<E*>(to)[i] = reinterpret_cast<const E*>(from)[at];
    });
  });
  return out;
}

// A schedule of this one group whose operands are flat inputs and outputs of the plan.
class TrialPlan {
 public:
  TrialPlan(const GroupSpec& spec, const Sizes& sizes) : spec_(spec), sizes_(sizes) {}

  Plan build(const Candidate& candidate, KernelCompiler& compile,
             const std::vector<Array>& weights) {
    Plan plan;
    plan.name = "trial";
    schedule_.specs.emplace_back().spec = spec_;
    for (std::size_t i = 0; i < spec_.function.params().size(); ++i) add_param(plan, i, weights[i]);
    for (std::size_t i = 0; i < spec_.function.results().size(); ++i) add_result(plan, i);
    Item item;
    item.group = 0;
    schedule_.items.push_back(item);
    schedule_.groups.push_back(group_);
    PlanBuilder builder(plan);
    plan.variants.push_back(builder.add(schedule_, std::span(&candidate, 1)));
    plan.variants[0].target = compile.target().info().name;
    std::vector<const Kernel*> kernels;
    for (const Kernel& k : builder.kernels()) kernels.push_back(&k);
    std::vector<KernelCompiler::Compiled> code = compile(kernels);
    for (std::size_t i = 0; i < code.size(); ++i) {
      plan.kernels[i] = {static_cast<std::uint32_t>(plan.binaries.size()), code[i].entry,
                         code[i].key};
      plan.binaries.push_back(*code[i].binary);
    }
    return plan;
  }

 private:
  View view(const Type& t, const Dims& strides) {
    return {static_cast<std::uint32_t>(schedule_.slots.size()), 0, t.dtype, t.shape.dims, strides};
  }
  Type flat(const Place& p) const { return {p.dtype, Shape{Dim(extent(p.dims, p.strides))}}; }

  void add_param(Plan& plan, std::size_t i, const Array& weight) {
    const Type t = spec_.function.param(i).type();
    const Place p = place_of(t, spec_.param_strides[i], sizes_);
    group_.views.push_back(view(t, spec_.param_strides[i]));
    ++group_.param_count;
    if (spec_.param_is_weight[i]) {
      schedule_.slots.push_back({PlanBuffer::Kind::weight,
                                 static_cast<std::uint32_t>(schedule_.weights.size()), p.bytes(),
                                 0});
      schedule_.weights.push_back({cat("weight", i), weight});
      return;
    }
    schedule_.slots.push_back(
        {PlanBuffer::Kind::param, static_cast<std::uint32_t>(plan.params.size()), p.bytes(), 0});
    plan.params.push_back({cat("param", i), flat(p), false});
  }

  void add_result(Plan& plan, std::size_t i) {
    const Type t = spec_.function.result(i).type();
    const Place p = place_of(t, spec_.result_strides[i], sizes_);
    group_.views.push_back(view(t, spec_.result_strides[i]));
    schedule_.slots.push_back(
        {PlanBuffer::Kind::result, static_cast<std::uint32_t>(plan.results.size()), p.bytes(), 0});
    plan.results.push_back({cat("result", i), flat(p), false});
    plan.result_alias.push_back(-1);
    schedule_.results.push_back(flat(p));
  }

  const GroupSpec& spec_;
  const Sizes& sizes_;
  Schedule schedule_;
  ScheduledGroup group_;
};

// Symbols cannot be bound by flat inputs: kernels of a trial get numbers.
Dims fixed(const Dims& dims, const Sizes& sizes) {
  Dims out;
  for (const Dim& d : dims) out.push_back(size_of(d, sizes));
  return out;
}

void fix_sizes(std::vector<Step>& steps, const Sizes& sizes) {
  for (Step& s : steps) {
    for (View& v : s.operands) {
      v.offset = size_of(v.offset, sizes);
      v.dims = fixed(v.dims, sizes);
      v.strides = fixed(v.strides, sizes);
    }
    s.scalars = fixed(s.scalars, sizes);
    s.chunks = size_of(s.chunks, sizes);
    s.scratch_bytes = size_of(s.scratch_bytes, sizes);
    fix_sizes(s.body, sizes);
    fix_sizes(s.otherwise, sizes);
  }
}

void fix_sizes(Plan& plan, const Sizes& sizes) {
  for (Variant& v : plan.variants) {
    for (PlanBuffer& b : v.buffers) {
      b.bytes = size_of(b.bytes, sizes);
      b.offset = size_of(b.offset, sizes);
    }
    fix_sizes(v.steps, sizes);
    fix_sizes(v.prepare, sizes);
    for (GroupRecord& g : v.groups) g.bytes = g.flops = 0;
    v.arena_bytes = size_of(v.arena_bytes, sizes);
    v.arena_lower_bound = size_of(v.arena_lower_bound, sizes);
    v.library_bytes = size_of(v.library_bytes, sizes);
  }
  for (PreparedBuffer& p : plan.prepared) p.type.shape.dims = fixed(p.type.shape.dims, sizes);
}

// What a kernel fails to write must not look like a result.
constexpr std::byte unwritten{0xa5};

bool is_unwritten(const std::byte* from, std::size_t bytes) {
  return bytes == 0 || (*from == unwritten && std::memcmp(from, from + 1, bytes - 1) == 0);
}

}  // namespace

// Memory of a device with a fence at both ends, for operands, arena and scratch.
class Trial::Fenced final : public Allocator {
 public:
  explicit Fenced(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  std::byte* alloc(std::size_t bytes) override {
    std::byte* all = device_->alloc(bytes + 2 * fence);
    std::memset(all, static_cast<int>(unwritten), bytes + 2 * fence);
    live_.emplace(all + fence, bytes);
    return all + fence;
  }
  void free(std::byte* data, std::size_t bytes) noexcept override {
    live_.erase(data);
    device_->free(data - fence, bytes + 2 * fence);
  }

  bool is_intact() const {
    return std::all_of(live_.begin(), live_.end(), [](const auto& m) {
      return is_unwritten(m.first - fence, fence) && is_unwritten(m.first + m.second, fence);
    });
  }

 private:
  static constexpr std::size_t fence = 16 << 10;
  std::shared_ptr<Device> device_;
  std::map<std::byte*, std::size_t> live_;
};

struct Trial::Operand {
  Place place;
  bool is_result = false;
  bool is_filter = false;  // always finite
  std::vector<std::int64_t> flat_dims;
  OwnedMemory memory;
  Hash128 before;  // of a parameter's memory

  std::byte* data() const { return memory.data(); }
  TensorRef ref() const { return {place.dtype, flat_dims, data()}; }
  std::size_t bytes() const { return static_cast<std::size_t>(place.bytes()); }
  Hash128 hash() const { return hash128({data(), bytes()}); }

  // The numbers as a dense array: a parameter that lies densely is that array.
  Array fill(Fill fill, std::uint64_t seed) {
    Array content = is_dense(place) ? dense() : Array::zeros(place.dtype, place.dims);
    if (is_dense(place)) {
      sample({data(), bytes()}, place.dtype, fill, seed);
    } else {
      sample(content.writable_bytes(), place.dtype, fill, seed);
      spread(content, place, data());
    }
    before = hash();
    return content;
  }
  void forget() { std::memset(data(), static_cast<int>(unwritten), bytes()); }
  Array dense() const {
    if (!is_dense(place)) return gather(place, data());
    return {place.dtype, place.dims, Storage(nullptr, {data(), bytes()})};
  }

  bool is_untouched() const {
    return is_result ? is_dense(place) || has_no_writes_between() : hash() == before;
  }
  bool has_no_writes_between() const {
    std::vector<std::byte> now(data(), data() + bytes());
    with_element(place.dtype, [&]<class E>(E mark) {
      std::memset(&mark, static_cast<int>(unwritten), sizeof mark);
      for_each_place(place.dims, place.strides, [&](std::int64_t, std::int64_t at) {
        reinterpret_cast<E*>(now.data())[at] = mark;
      });
    });
    return is_unwritten(now.data(), now.size());
  }
};

namespace {

// Zero times an infinite filter in a padded place is nobody's business.
std::unordered_set<NodeId> made_into_filters(const Function& f) {
  std::unordered_set<NodeId> out;
  std::vector<Value> open;
  for (NodeId n : live_nodes(f))
    if (&f.graph().op(n) == &ops::conv) open.push_back(f.graph().operands(n)[1]);
  while (!open.empty()) {
    const Value v = open.back();
    open.pop_back();
    if (!out.insert(v.node()).second) continue;
    for (std::size_t i = 0; i < v.operand_count(); ++i) open.push_back(v.operand(i));
  }
  return out;
}

}  // namespace

Trial::Trial(const GroupSpec& spec, const Candidate& candidate, KernelCompiler& compile,
             const std::shared_ptr<Device>& device, const std::shared_ptr<ThreadPool>& pool,
             const Sizes& sizes, Fill fill, std::uint64_t seed)
    : spec_(spec), sizes_(sizes), memory_(std::make_shared<Fenced>(device)) {
  std::vector<Array> weights(spec.function.params().size());
  std::vector<TensorRef> refs;
  const std::unordered_set<NodeId> filters = made_into_filters(spec.function);
  for (std::size_t i = 0; i < spec.function.params().size(); ++i) {
    const Value param = spec.function.param(i);
    const Type t = param.type();
    if (spec.param_is_weight[i]) {
      weights[i] = add_weight(place_of(t, spec.param_strides[i], sizes), seed + i);
    } else {
      Operand& o = add_operand(t, spec.param_strides[i], false);
      o.is_filter = filters.contains(param.node());
      inputs_.push_back(o.fill(o.is_filter ? Fill::random : fill, seed + i));
      refs.push_back(o.ref());
    }
  }
  auto plan = std::make_shared<Plan>(TrialPlan(spec, sizes).build(candidate, compile, weights));
  fix_sizes(*plan, sizes);
  run_prepare(*plan, device, pool);
  SessionOptions options;
  options.pool = pool;
  options.allocator = memory_;
  session_ = std::make_unique<Session>(Executable::load(plan, device), options);
  for (std::size_t i = 0; i < refs.size(); ++i) session_->bind_input(i, refs[i]);
  for (std::size_t i = 0; i < spec.function.results().size(); ++i)
    session_->bind_output(
        i, add_operand(spec.function.result(i).type(), spec.result_strides[i], true).ref());
}

Trial::~Trial() = default;

void Trial::refill(Fill fill, std::uint64_t seed) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (spec_.param_is_weight[i]) continue;
    Operand& o = *operands_[next++];
    if (!o.is_filter) inputs_[i] = o.fill(fill, seed + i);
  }
  for (; next < operands_.size(); ++next) operands_[next]->forget();
}

// Weights are finite: zero times an infinite weight in a padded place is nobody's business.
Array Trial::add_weight(const Place& p, std::uint64_t seed) {
  Array dense = Array::zeros(p.dtype, p.dims);
  sample(dense.writable_bytes(), p.dtype, Fill::random, seed);
  inputs_.push_back(dense);
  const std::vector<std::int64_t> flat = {extent(p.dims, p.strides)};
  if (is_dense(p)) return {p.dtype, flat, dense.storage()};
  Array spaced = Array::zeros(p.dtype, flat);
  spread(dense, p, spaced.writable_bytes().data());
  return spaced;
}

Trial::Operand& Trial::add_operand(const Type& t, const Dims& strides, bool is_result) {
  auto made = std::make_unique<Operand>();
  made->place = place_of(t, strides, sizes_);
  made->is_result = is_result;
  made->flat_dims = {extent(made->place.dims, made->place.strides)};
  made->memory = OwnedMemory(memory_, std::max<std::size_t>(made->bytes(), 1));
  return *operands_.emplace_back(std::move(made));
}

std::vector<Array> Trial::results() const {
  std::vector<Array> out;
  for (const auto& o : operands_)
    if (o->is_result) out.push_back(o->dense());
  return out;
}

void Trial::check_untouched() const {
  bool is_clean = memory_->is_intact();
  for (const auto& o : operands_) is_clean = is_clean && o->is_untouched();
  if (!is_clean) throw UserError("it writes to memory that is not its result's");
}

namespace {

// Groups of more work than this are checked on sampled elements, on fewer where each is much work:
// the interpreter is slow, and a check is to take a fifth of the time of a compilation at most.
constexpr std::int64_t most_whole_flops = 300'000;
// So much work is in long sums, of which extreme numbers leave nothing but NaN.
constexpr std::int64_t most_extreme_flops = 500'000'000;
constexpr std::int64_t most_samples = 64, least_samples = 12, sampled_flops = 16'000;

void keep_worst(Comparison& worst, const Comparison& c) {
  const bool was_ok = worst.ok;
  if (was_ok && !c.ok) worst = c;
  if (c.ok == was_ok && c.max_rel_error > worst.max_rel_error) worst = c;
}

// What explains a result that the first rule refuses.
class Explanation {
 public:
  Explanation(const Function& f, const Trial& trial) : f_(f), trial_(trial) {}

  // Numbers rounded on the way: a running product may overflow there.
  Comparison on_the_way(std::size_t i, const Array& got, const Wide& wide) {
    if (stepwise_.empty()) stepwise_ = evaluate_wide(f_, trial_.inputs(), Mode::stepwise);
    return accept(got, stepwise_[i], wide);
  }

  // Whether every element is enclosed. Of those of which nothing is known the first rule decides,
  // where strict and wide are: at the places, or everywhere when there are none; not of those that
  // hang on the order of operations. An open decision is one of few.
  bool encloses(std::size_t i, const Array& got, const Wide& strict, const Wide& wide,
                const std::vector<std::int64_t>& places) {
    if (enclosures_.empty()) enclosures_ = enclose(f_, trial_.inputs());
    const Enclosure& e = enclosures_[i];
    if (!accept(got, e).ok) return false;
    Wide judged = wide;
    for (std::size_t k = 0; k < judged.reals.size(); ++k) {
      const std::int64_t at = places.empty() ? static_cast<std::int64_t>(k) : places[k];
      const auto flat = static_cast<std::size_t>(at);
      const bool is_unknown = std::isnan(e.low.reals[flat]) && !std::isnan(e.high.reals[flat]) &&
                              !e.hangs_on_order(flat);
      judged.reals[k] = is_unknown ? got.real(at) : round_real(got.dtype(), wide.reals[k]);
    }
    return !is_float(got.dtype()) || accept(judged, strict, wide).ok;
  }

 private:
  const Function& f_;
  const Trial& trial_;
  std::vector<Wide> stepwise_;
  std::vector<Enclosure> enclosures_;
};

Comparison whole(const Function& f, const Trial& trial) {
  Comparison worst;
  std::vector<Wide> strict = evaluate_wide(f, trial.inputs(), Mode::strict);
  std::vector<Wide> wide = evaluate_wide(f, trial.inputs(), Mode::wide);
  std::vector<Array> got = trial.results();
  Explanation explanation(f, trial);
  for (std::size_t i = 0; i < got.size(); ++i) {
    Comparison c = accept(got[i], strict[i], wide[i]);
    if (!c.ok && c.problem.empty())
      if (const Comparison other = explanation.on_the_way(i, got[i], wide[i]); other.ok) c = other;
    if (!c.ok && c.problem.empty()) c.ok = explanation.encloses(i, got[i], strict[i], wide[i], {});
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
// little work some beside one another, which may share a row that was reduced.
std::vector<std::int64_t> sampled_places(std::int64_t count, std::int64_t wanted) {
  const std::int64_t beside = wanted < most_samples ? 1 : 4;
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < std::min(count, wanted / 4); ++i) {
    out.push_back(i);
    out.push_back(count - 1 - i);
  }
  std::uint64_t state = 12345;
  while (static_cast<std::int64_t>(out.size()) < std::min(wanted, count)) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    const auto first = static_cast<std::int64_t>((state >> 20) % static_cast<std::uint64_t>(count));
    for (std::int64_t i = first; i < std::min(first + beside, count); ++i) out.push_back(i);
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

Samples at_places(const Array& got, std::size_t result, std::vector<std::int64_t> places,
                  ElementEvaluator& strict, ElementEvaluator& wide) {
  const Wide none(got.dtype(), {static_cast<std::int64_t>(places.size())});
  Samples s{std::move(places), none, none, none};
  const std::vector<Element> of_strict = strict.all_at(result, s.places),
                             of_wide = wide.all_at(result, s.places);
  for (std::size_t i = 0; i < s.places.size(); ++i) {
    const std::int64_t at = s.places[i];
    set_element(s.got, i,
                {none.is_real() ? got.real(at) : 0, none.is_real() ? 0 : got.integer(at)});
    set_element(s.strict, i, of_strict[i]);
    set_element(s.wide, i, of_wide[i]);
  }
  return s;
}

// Few elements may all be small beside what cancelled in them. So a refused result is compared on
// as many elements as show its size and, where that is no great work, enclosed.
Comparison sampled(const Function& f, const Trial& trial, std::int64_t flops, Fill fill) {
  constexpr std::int64_t most_enclosed_flops = 50'000'000, many_samples = 1000;
  Comparison worst;
  ElementEvaluator strict(f, trial.inputs(), Mode::strict);
  ElementEvaluator wide(f, trial.inputs(), Mode::wide);
  Explanation explanation(f, trial);
  std::vector<Array> got = trial.results();
  for (std::size_t r = 0; r < got.size(); ++r) {
    const std::int64_t count = got[r].count(), wanted = samples_of(count, flops, fill);
    Comparison c = at_places(got[r], r, sampled_places(count, wanted), strict, wide).accepted();
    if (!c.ok) {
      const Samples many = at_places(got[r], r, sampled_places(count, many_samples), strict, wide);
      c = many.accepted();
      if (!c.ok && flops <= most_enclosed_flops)
        c.ok = explanation.encloses(r, got[r], many.strict, many.wide, many.places);
    }
    keep_worst(worst, c);
  }
  return worst;
}

}  // namespace

Comparison verify(const GroupSpec& spec, const Candidate& candidate, KernelCompiler& compile,
                  const std::shared_ptr<Device>& device, const std::shared_ptr<ThreadPool>& pool,
                  const Sizes& sizes) {
  const std::int64_t flops = size_of(ideal_flops(spec.function), sizes);
  // A size like n + 64 says nothing about n, so the reference gets numbers.
  std::map<std::string, Dim> numbers;
  for (const auto& [name, value] : sizes) numbers.emplace(name, value);
  const Function f = expand_all(substitute_sizes(spec.function, numbers));
  Comparison worst;
  Trial trial(spec, candidate, compile, device, pool, sizes, Fill::random, 17);
  for (Fill fill : {Fill::random, Fill::extreme}) {
    if (fill == Fill::extreme && flops > most_extreme_flops) break;
    if (fill != Fill::random) trial.refill(fill, 17);
    trial.run();
    trial.check_untouched();
    keep_worst(worst, flops <= most_whole_flops ? whole(f, trial) : sampled(f, trial, flops, fill));
  }
  return worst;
}

}  // namespace hone
