#include "verify/model/made_inputs.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "base/error.h"
#include "ir/measured.h"
#include "ir/refusal.h"
#include "ops/ops.h"
#include "schedule/cost.h"
#include "verify/model/contents.h"
#include "verify/model/input_moves.h"
#include "verify/model/refusing_part.h"
#include "verify/model/whole.h"
#include "verify/sizes.h"

namespace hone {

namespace {

constexpr std::size_t end_of_run = std::numeric_limits<std::size_t>::max();

// How far a run came.
struct Outcome {
  std::size_t place = 0;  // of the node that refused it; end_of_run: none did
  double excess = 0;      // by how much it did
  int empty_sizes = 0;    // data-dependent sizes that are 0: what has such a size is not tried
  std::string problem = {};

  bool is_accepted() const { return place == end_of_run; }
  bool is_better_than(const Outcome& o) const {
    return place != o.place     ? place > o.place
           : excess != o.excess ? excess < o.excess
                                : empty_sizes < o.empty_sizes;
  }
};

// Looks for inputs that the function accepts: makes one change after another that brings a run
// further, or reduces the number by which it is refused.
class InputSearch {
 public:
  // `guards`: sizes may change as far as these hold; null: they may not.
  InputSearch(const Function& f, Sizing sizes, const std::vector<Guard>* guards)
      : f_(f),
        part_(refusing_part(f)),
        evaluator_(part_),
        is_read_(read_params(part_)),
        has_measured_(!measured_sizes(part_.graph()).empty()),
        guards_(guards),
        state_{std::move(sizes), std::vector<Contents>(f.params().size())} {}

  MadeInputs run() {
    if (may_refuse(f_)) search();
    MadeInputs out{inputs(state_), {}, outcome_.is_accepted() ? "" : problem_};
    for (std::size_t i = 0; i < out.arrays.size(); ++i)
      out.assumptions.push_back(
          cat("'", f_.params()[i].name, "' ", out.arrays[i].type(), ": ",
              f_.params()[i].required ? "as the model requires"
                                      : contents_text(state_.contents[i], out.arrays[i].dtype())));
    for (std::size_t i = 0; i < out.arrays.size(); ++i)
      if (is_float(out.arrays[i].dtype()) && state_.contents[i].kind != Contents::Kind::random)
        out.has_chosen_reals = true;
    return out;
  }

 private:
  static constexpr double most_work = 2e9;
  // Evaluations: if sizes may change, if they may not, with a loop whose end depends on data, and
  // once inputs are accepted.
  static constexpr int most_tries = 1000, most_of_sizes = 300, most_of_loops = 60,
                       most_improvements = 64;

  bool is_open(std::size_t i) const { return is_read_[i] && !f_.params()[i].required; }
  bool has_open_integers() const {
    for (std::size_t i = 0; i < is_read_.size(); ++i)
      if (is_open(i) && !is_float(f_.param(i).dtype())) return true;
    return false;
  }

  void search() {
    outcome_ = {.place = end_of_run};
    take_required_ranges();
    const double work = cost();
    // The first inputs are tried only if that is cheap, unless their integers may be wrong.
    if (!has_open_integers() && work > most_work / 20) return;
    left_ = static_cast<int>(
        std::clamp(most_work / work, 1.0, guards_ ? double{most_tries} : double{most_of_sizes}));
    if (has_loop(part_)) left_ = std::min(left_, most_of_loops);
    outcome_ = judged(state_);
    problem_ = outcome_.problem;
    if (outcome_.is_accepted()) return improve();
    using Start = std::pair<InputState, Outcome>;
    std::vector<Start> starts = {{state_, outcome_}};
    const auto add = [&](const InputState& s) { starts.emplace_back(s, judged(s)); };
    if (const std::optional<InputState> members = with_members()) add(*members);
    if (const std::optional<InputState> image = with_image()) add(*image);
    for (const Contents& c : whole_contents(DType::i64, has_measured_ ? 16 : 4096))
      add(with_all(state_, c));
    std::ranges::stable_sort(
        starts, [](const Start& a, const Start& b) { return a.second.is_better_than(b.second); });
    for (auto& [state, outcome] : starts) {
      descend(state, outcome);
      if (!outcome.is_better_than(outcome_)) continue;
      state_ = std::move(state);
      outcome_ = std::move(outcome);
      if (outcome_.is_accepted()) return improve();
    }
  }

  // At usual data-dependent sizes; their upper bounds may be those of any data.
  double flops() const try {
    const Graph& graph = part_.graph();
    return static_cast<double>(size_of(
        ideal_flops(part_), with_measured(state_.sizes, measured_sizes(graph), graph.checks())));
  } catch (const UserError&) {
    return static_cast<double>(flops_at(flops_of(part_), state_.sizes));
  }

  double cost() const {
    double work = 1000 + flops();
    for (const Function::Param& p : f_.params())
      work += static_cast<double>(size_of(p.value.shape().count(), state_.sizes));
    return work;
  }

  void take_required_ranges() {
    constexpr std::int64_t more = 7;
    const std::vector<RequiredRange> ranges = required_ranges(part_, state_.sizes);
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      if (!ranges[i] || !is_open(i) || is_float(f_.param(i).dtype())) continue;
      const auto [low, high] = *ranges[i];
      const std::int64_t least = high >= 0 ? std::max<std::int64_t>(low, 0) : low,
                         most = std::min(high, least + more);
      if (least != 0 || most != more)
        state_.contents[i] = Contents::range(static_cast<double>(least), static_cast<double>(most));
    }
  }

  // Parameters that the model compares with fixed values get these.
  std::optional<InputState> with_members() {
    constexpr std::size_t most = 64;
    const std::vector<Values> compared = compared_with(part_);
    InputState out = state_;
    bool any = false;
    for (std::size_t i = 0; i < compared.size(); ++i) {
      if (!is_open(i) || is_float(f_.param(i).dtype()) || compared[i].empty()) continue;
      std::vector<std::int64_t> members;
      for (const Array& a : evaluated(part_, compared[i], inputs(state_)))
        for (std::int64_t k = 0; k < a.count() && members.size() < most; ++k)
          if (std::ranges::find(members, a.integer(k)) == members.end())
            members.push_back(a.integer(k));
      if (members.empty()) continue;
      any = true;
      out.contents[i] = {.kind = Contents::Kind::members, .members = std::move(members)};
    }
    return any ? std::optional(out) : std::nullopt;
  }

  // Bytes become those of an image, whose size is then that of a file.
  std::optional<InputState> with_image() const {
    InputState out = state_;
    bool any = false;
    for (std::size_t i = 0; i < is_read_.size(); ++i) {
      const Type t = f_.param(i).type();
      if (!is_open(i) || t.dtype != DType::u8 || t.rank() != 1) continue;
      any = true;
      out.contents[i] = {.kind = Contents::Kind::image};
      if (const Dim& n = t.shape.dims[0]; guards_ && n.is_symbol() && image_bytes() <= n.high())
        out.sizes[n.name()] = std::max(image_bytes(), n.low());
    }
    return any && (!guards_ || fits(out)) ? std::optional(out) : std::nullopt;
  }

  InputState with_all(InputState state, const Contents& c) const {
    for (std::size_t i = 0; i < state.contents.size(); ++i) {
      const DType t = f_.param(i).dtype();
      if (is_open(i) && !is_float(t) && t != DType::text && t != DType::b1) state.contents[i] = c;
    }
    return state;
  }

  void descend(InputState& state, Outcome& outcome) {
    for (bool is_better = true; is_better && left_ > 0;) {
      is_better = false;
      if (outcome.is_accepted() && outcome.empty_sizes == 0) return;
      for (const InputMove& m : moves(state, outcome)) {
        InputState next = moved(state, m);
        Outcome there = judged(next);
        if (!there.is_better_than(outcome)) continue;
        state = std::move(next);
        outcome = std::move(there);
        is_better = true;
        break;
      }
    }
  }

  std::vector<InputMove> moves(const InputState& state, const Outcome& outcome) const {
    std::vector<InputMove> out;
    for (std::size_t i = 0; i < is_read_.size(); ++i)
      if (is_open(i))
        add_moves(i, filled(f_.param(i).type(), state.sizes, state.contents[i], i + 1),
                  state.contents[i], outcome.excess, has_measured_, out);
    if (!guards_) return out;
    for (InputMove& m : size_moves(f_.symbols(), state.sizes, outcome.excess))
      if (fits(moved(state, m))) out.push_back(std::move(m));
    return out;
  }

  bool fits(const InputState& state) const {
    constexpr double most_elements = 0x1p24;
    double elements = 0;
    for (const Function::Param& p : f_.params()) {
      double count = 1;
      for (const Dim& d : p.value.shape().dims)
        count *= static_cast<double>(size_of(d, state.sizes));
      elements += count;
    }
    return elements <= most_elements && guards_hold(*guards_, state.sizes);
  }

  // Accepted inputs: less degenerate ones, if they are accepted too.
  void improve() {
    left_ = std::min(left_, most_improvements);
    descend(state_, outcome_);
    for (std::size_t i = 0; i < is_read_.size(); ++i) {
      const Contents& c = state_.contents[i];
      const DType t = f_.param(i).dtype();
      if (!is_open(i) || c.kind != Contents::Kind::range || c.low != c.high || is_float(t) ||
          t == DType::b1)
        continue;
      for (const double more : {7, 3, 1}) {
        InputState next = state_;
        next.contents[i].high = c.low + more;
        const Outcome there = judged(next);
        if (outcome_.is_better_than(there)) continue;
        state_ = std::move(next);
        outcome_ = there;
        break;
      }
    }
  }

  Outcome judged(const InputState& state) {
    if (left_-- <= 0) return {};
    try {
      Outcome out{.place = end_of_run};
      const std::vector<Wide> results = evaluator_.in(Mode::strict, inputs(state));
      for (std::size_t i = 0; i < results.size(); ++i)
        if (&part_.results()[i].value.op() == &ops::measure)
          out.empty_sizes += results[i].integers.at(0) == 0;
      return out;
    } catch (const InputRefusal& r) {
      return {r.place, r.excess, 0, r.what()};
    } catch (const UserError& e) {
      return {.problem = e.what()};
    }
  }

  std::vector<Array> inputs(const InputState& state) const {
    std::vector<Array> out;
    for (const Function::Param& p : f_.params()) {
      const std::size_t i = out.size();
      out.push_back(p.required ? *p.required
                               : filled(p.value.type(), state.sizes, state.contents[i], i + 1));
    }
    return out;
  }

  const Function& f_;
  const Function part_;
  Evaluator evaluator_;
  const std::vector<bool> is_read_;  // by the part
  const bool has_measured_;          // data-dependent sizes
  const std::vector<Guard>* guards_;
  InputState state_;  // the best so far
  Outcome outcome_ = {.place = end_of_run};
  std::string problem_;
  int left_ = 0;  // evaluations
};

}  // namespace

MadeInputs made_inputs(const Function& f, const Sizing& sizes) {
  return InputSearch(f, sizes, nullptr).run();
}

std::optional<MadeInputs> made_inputs_and_sizes(const Function& f,
                                                const std::vector<Guard>& guards) {
  const std::optional<Sizing> first = sample_sizes(f.param_types(), guards);
  if (!first) return std::nullopt;
  return InputSearch(f, *first, &guards).run();
}

MadeInputs made_inputs_of(std::string_view model, const Function& f,
                          const std::vector<Guard>& guards, std::string_view instead) {
  std::optional<MadeInputs> made = made_inputs_and_sizes(f, guards);
  if (!made) throw UserError(model, ": no sizes were found that it supports; ", instead);
  if (!made->problem.empty())
    throw UserError(model, ": no valid inputs were found for it: ", made->problem, "; ", instead);
  return std::move(*made);
}

}  // namespace hone
