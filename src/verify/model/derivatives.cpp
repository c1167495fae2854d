#include "verify/model/derivatives.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "verify/model/made_inputs.h"
#include "verify/model/whole.h"

namespace hone {

namespace {

constexpr std::int64_t most_flops = 200'000'000;  // of one evaluation
constexpr double most_work = 3e8;                 // of all for one Derivative
constexpr std::int64_t most_bytes = std::int64_t{1} << 30;

// The results as a function of the parameters, and of further ones in place of some values.
Function with_inputs(const Function& f, const Values& replaced, const Values& results) {
  Function out = clone_params(f);
  Copier copy(f, out);
  std::vector<Value> made;
  for (const Value& v : replaced) made.push_back(out.add_param(v.type(), cat("x", made.size())));
  const auto replace = [&](NodeId n) {
    for (std::size_t i = 0; i < replaced.size(); ++i) {
      if (replaced[i].node() != n) continue;
      std::vector<Value> all;
      for (std::size_t k = 0; k < f.graph().result_count(n); ++k) {
        const Value here(&f.graph(), n, static_cast<std::uint32_t>(k));
        const auto it = std::ranges::find(replaced, here);
        all.push_back(it == replaced.end() ? copy(here)
                                           : made[static_cast<std::size_t>(it - replaced.begin())]);
      }
      copy.set(n, all);
      return;
    }
  };
  for (const NodeId n : nodes_below(results)) {
    if (!copy.has(n)) copy.copy(n);
    replace(n);
  }
  for (const Value& r : results) out.add_result(copy(r));
  return out;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double scale_of(const std::vector<double>& x) {
  const double mean = x.empty() ? 0 : dot(x, x) / static_cast<double>(x.size());
  return std::isfinite(mean) && mean > 0 ? std::sqrt(mean) : 0.1;
}

// What is known about one x at one draw of the inputs.
enum class Verdict : std::uint8_t { agrees, differs, undecided };
struct Compared {
  Verdict verdict = Verdict::undecided;
  double by_differences = 0, by_derivative = 0;
};

// One Derivative, with its function of the xs.
class DerivativeJudge {
 public:
  DerivativeJudge(const Function& f, const Derivative& d, const Sizing& sizes,
                  const std::vector<std::optional<Array>>& starts)
      : d_(d),
        sizes_(sizes),
        starts_(starts),
        whole_(with_inputs(f, {}, all_of(d))),
        forward_(with_inputs(f, inputs_of(d), d.ys)),
        whole_evaluator_(whole_),
        forward_evaluator_(forward_) {
    for (const Value& x : d.xs) {
      const auto it = std::ranges::find(f.params(), x, &Function::Param::value);
      x_names_.push_back(it == f.params().end() ? origins_text(x) : cat("'", it->name, "'"));
    }
  }

  void run(JudgedDerivatives& out) {
    const std::int64_t flops = flops_at(flops_of(forward_), sizes_);
    if (flops > most_flops || bytes_to_evaluate(whole_, sizes_) > most_bytes) {
      give_up(out, cat(flops, " operations are too many for the reference"));
      return;
    }
    double one = 4 * static_cast<double>(flops);
    if (has_loop(forward_)) {
      // How often it runs is not counted.
      constexpr double flops_per_second = 1e8;
      const auto start = std::chrono::steady_clock::now();
      if (!at(1)) {
        give_up(out, refused_);
        return;
      }
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      one = std::max(one, 4 * flops_per_second * taken.count());
    }
    if (one > 4 * static_cast<double>(most_flops)) {
      give_up(out, "its loops take the reference too long");
      return;
    }
    const auto affordable = static_cast<std::size_t>(std::max(1.0, most_work / (one + 1)));
    const std::size_t apart = (d_.xs.size() + affordable - 1) / affordable;
    std::vector<Group> open;
    for (std::size_t i = 0; i < d_.xs.size(); i += apart) {
      open.emplace_back();
      for (std::size_t k = i; k < std::min(i + apart, d_.xs.size()); ++k)
        open.back().xs.push_back(k);
    }
    for (std::uint64_t draw = 1; draw <= most_draws && !open.empty(); ++draw) {
      if (!at(draw)) break;
      std::erase_if(open, [&](Group& g) {
        const Compared found = along(g.xs, draw);
        if (found.verdict == Verdict::agrees) out.agree += static_cast<int>(g.xs.size());
        if (found.verdict == Verdict::differs && ++g.differs == enough_draws) refuse(g.xs, found);
        return found.verdict == Verdict::agrees;
      });
    }
    for (const Group& g : open)
      for (const std::size_t i : g.xs)
        out.undecided.push_back(
            cat(x_names_[i], ": ", refused_.empty() ? "no step is small enough" : refused_));
  }

 private:
  static constexpr int enough_draws = 3;
  static constexpr std::uint64_t most_draws = 5;
  struct Group {
    std::vector<std::size_t> xs = {};
    int differs = 0;
  };

  static Values all_of(const Derivative& d) {
    Values out;
    for (const Values* list : {&d.dys, &d.dxs, &d.xs, &d.held})
      out.insert(out.end(), list->begin(), list->end());
    return out;
  }
  static Values inputs_of(const Derivative& d) {
    Values out = d.xs;
    out.insert(out.end(), d.held.begin(), d.held.end());
    return out;
  }

  void give_up(JudgedDerivatives& out, const std::string& why) const {
    for (const std::string& x : x_names_) out.undecided.push_back(cat(x, ": ", why));
  }

  // Known starts, moved a little where all elements are equal, so that nothing lies on a kink.
  static Array near(const Array& start, Random& random) {
    Wide w = widen(start);
    if (!w.is_real() || w.reals.empty()) return start;
    const bool is_flat = std::ranges::all_of(w.reals, [&](double x) { return x == w.reals[0]; });
    for (double& x : w.reals) x += is_flat ? random.real(0.01, 0.2) : 0;
    return narrow(w);
  }

  // Evaluates the derivative at new data. False if none is accepted.
  bool at(std::uint64_t draw) {
    Random random(draw);
    try {
      if (made_.arrays.empty()) made_ = made_inputs(whole_, sizes_);
      if (!made_.problem.empty()) {
        refused_ = "made-up inputs are refused: " + made_.problem;
        return false;
      }
      inputs_ = made_.arrays;
      for (std::size_t i = 0; i < inputs_.size(); ++i) {
        if (i < starts_.size() && starts_[i])
          inputs_[i] = near(*starts_[i], random);
        else if (is_float(inputs_[i].dtype()) && !made_.has_chosen_reals)
          inputs_[i] = sample_array(whole_.param(i).type(), sizes_, Fill::random, draw * 1000 + i);
      }
      std::vector<Wide> all = whole_evaluator_.in(Mode::wide, inputs_);
      auto next = all.begin();
      const auto take = [&](const Values& of) {
        std::vector<Wide> out(std::make_move_iterator(next),
                              std::make_move_iterator(next + std::ssize(of)));
        next += std::ssize(of);
        return out;
      };
      dys_ = take(d_.dys), dxs_ = take(d_.dxs), xs_ = take(d_.xs), held_ = take(d_.held);
      return true;
    } catch (const UserError& e) {
      refused_ = e.what();
      return false;
    }
  }

  // The weighted sum of all ys, with the xs of the group moved.
  double moved(const std::vector<std::size_t>& group, const std::vector<Wide>& to) {
    std::vector<Array> in = inputs_;
    for (std::size_t i = 0; i < xs_.size(); ++i) {
      const auto it = std::ranges::find(group, i);
      in.push_back(
          narrow(it == group.end() ? xs_[i] : to[static_cast<std::size_t>(it - group.begin())]));
    }
    for (const Wide& w : held_) in.push_back(narrow(w));
    const std::vector<Wide> ys = forward_evaluator_.in(Mode::wide, in);
    double sum = 0;
    for (std::size_t i = 0; i < ys.size(); ++i)
      for (std::size_t e = 0; e < ys[i].reals.size(); ++e) {
        const double part = ys[i].reals[e] * dys_[i].reals[e];
        sum += part;
        largest_ = std::max(largest_, std::fabs(part));
      }
    return sum;
  }

  // The change of the sum between two points around the xs, over the change that the derivative
  // says. The points are rounded to the dtype, and the direction is what is left between them.
  struct Slope {
    double by_differences = 0, by_derivative = 0, size = 0;
  };
  Slope slope(const std::vector<std::size_t>& group, const std::vector<std::vector<double>>& v,
              double step) {
    std::vector<Wide> up, down;
    Slope out;
    double squares = 0;
    for (std::size_t k = 0; k < group.size(); ++k) {
      const std::size_t i = group[k];
      up.push_back(xs_[i]), down.push_back(xs_[i]);
      for (std::size_t e = 0; e < v[k].size(); ++e) {
        up[k].reals[e] += step * v[k][e];
        down[k].reals[e] -= step * v[k][e];
      }
      round_to_dtype(up[k]), round_to_dtype(down[k]);
      for (std::size_t e = 0; e < v[k].size(); ++e) {
        const double part = dxs_[i].reals[e] * (up[k].reals[e] - down[k].reals[e]) / (2 * step);
        out.by_derivative += part;
        squares += part * part;
      }
    }
    out.by_differences = (moved(group, up) - moved(group, down)) / (2 * step);
    out.size =
        std::max({std::fabs(out.by_differences), std::fabs(out.by_derivative), std::sqrt(squares)});
    return out;
  }

  Compared along(const std::vector<std::size_t>& group, std::uint64_t draw) try {
    constexpr double step = 1.0 / 256, smaller = step / 4;
    Random random(draw * 7919 + group[0]);
    std::vector<std::vector<double>> v;
    for (const std::size_t i : group) {
      const double scale = scale_of(xs_[i].reals);
      v.emplace_back();
      for (std::size_t e = 0; e < xs_[i].reals.size(); ++e)
        v.back().push_back((random.chance(50) ? scale : -scale) * random.real(0.5, 1));
    }
    const Slope a = slope(group, v, step), b = slope(group, v, smaller);
    Compared out{Verdict::undecided, b.by_differences, b.by_derivative};
    const double doubt = 4 * std::fabs(a.by_differences - b.by_differences),
                 error = std::fabs(b.by_differences - b.by_derivative);
    // Of sums in double precision, divided by the step. A bias before a norm changes nothing more.
    const double rounding = 1e-9 * largest_;
    constexpr double most_doubt = 0.1, most_error = 1e-3;
    if (!std::isfinite(error) || !std::isfinite(doubt) || !std::isfinite(b.size)) return out;
    if (b.size > rounding && doubt > most_doubt * b.size) return out;
    out.verdict =
        error <= doubt + most_error * b.size + rounding ? Verdict::agrees : Verdict::differs;
    return out;
  } catch (const UserError&) {
    return {};  // the function refuses the moved numbers
  }

  [[noreturn]] void refuse(const std::vector<std::size_t>& group, const Compared& found) const {
    std::string xs, ys;
    for (const std::size_t i : group) xs += cat(xs.empty() ? "" : ", ", x_names_[i]);
    for (const Value& y : d_.ys) ys += cat(ys.empty() ? "" : ", ", origins_text(y));
    throw InternalError("refused: the derivative with respect to ", xs, ys.empty() ? "" : " of ",
                        ys, " is wrong: along a random direction the function changes by ",
                        found.by_differences, ", its derivative says ", found.by_derivative);
  }

  const Derivative& d_;
  const Sizing& sizes_;
  const std::vector<std::optional<Array>>& starts_;
  Function whole_, forward_;
  Evaluator whole_evaluator_, forward_evaluator_;
  std::vector<std::string> x_names_;
  MadeInputs made_;
  std::string refused_;
  std::vector<Array> inputs_;
  std::vector<Wide> dys_, dxs_, xs_, held_;
  double largest_ = 0;  // part of the weighted sum of the ys, of all draws
};

}  // namespace

JudgedDerivatives judge_derivatives(const Function& f, std::span<const Derivative> all,
                                    const Sizing& sizes,
                                    const std::vector<std::optional<Array>>& starts) {
  JudgedDerivatives out;
  for (const Derivative& d : all) DerivativeJudge(f, d, sizes, starts).run(out);
  return out;
}

}  // namespace hone
