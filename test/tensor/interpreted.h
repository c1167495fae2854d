// Runs a program's entries on the reference interpreter: what a program means, without a compiler.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/program.h"
#include "ref/evaluate.h"
#include "tensor/functions.h"
#include "tensor/grad.h"
#include "tensor/program.h"

namespace hone::test {

inline Array floats(std::vector<std::int64_t> dims, const std::vector<float>& numbers) {
  return Array::of<float>(DType::f32, std::move(dims), numbers);
}
inline Array integers(std::vector<std::int64_t> dims, const std::vector<std::int64_t>& numbers) {
  return Array::of<std::int64_t>(DType::i64, std::move(dims), numbers);
}
using List = std::vector<double>;
inline List numbers(const Array& a) {
  List out;
  for (std::int64_t i = 0; i < a.count(); ++i) out.push_back(a.real(i));
  return out;
}

class Interpreted {
 public:
  explicit Interpreted(const Program& p) : graph_(p.graph()) {
    for (const StateVariable& s : graph_.states) states[s.name] = *s.start;
  }

  // The caller's results, by name, for its inputs, in order.
  std::map<std::string, Array> run(const std::string& entry, std::vector<Array> inputs = {}) {
    const ProgramEntry& e = *std::ranges::find(graph_.entries, entry, &ProgramEntry::name);
    std::vector<Array> all;
    std::size_t next = 0;
    for (std::size_t i = 0; i < e.states.size(); ++i)
      all.push_back(e.states[i] < 0 ? inputs.at(next++) : states.at(state_name(e, i)));
    const std::vector<Array> got = evaluate(e.function, all);
    std::map<std::string, Array> out;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const Function::Result& r = e.function.results()[i];
      if (r.stored_to)
        states[state_name(e, *r.stored_to)] = got[i];
      else
        out[r.name] = got[i];
    }
    return out;
  }

  std::map<std::string, Array> states;

 private:
  std::string state_name(const ProgramEntry& e, std::size_t param) const {
    return graph_.states[static_cast<std::size_t>(e.states[param])].name;
  }
  ProgramGraph graph_;
};

// The results of a function of constants, without states.
inline List computed(const std::function<Tensor()>& f) {
  Program p("p");
  p.entry("f", {}, [&] { return Results{{"y", f()}}; });
  return numbers(Interpreted(p).run("f").at("y"));
}

// A loss of any tensor: its elements, each with a weight of its own.
inline Tensor weighed(const Tensor& y) {
  const Tensor flat = reshape(y, {-1});
  return sum(flat * cos(cast(arange(flat.size(0)), y.dtype()) + 1));
}

// Compares d loss / d x of every float argument and state of a program's only entry, whose results
// are the loss and then a derivative for each name in `of`, with differences of the loss.
inline void expect_differences(const Program& p, const std::vector<std::string>& of,
                               const std::map<std::string, Array>& arguments) {
  const ProgramGraph graph = p.graph();
  const ProgramEntry& e = graph.entries.at(0);
  std::vector<Wide> in;
  for (std::size_t i = 0; i < e.states.size(); ++i) {
    const std::string& name = e.function.params()[i].name;
    in.push_back(widen(e.states[i] < 0
                           ? arguments.at(name)
                           : *graph.states[static_cast<std::size_t>(e.states[i])].start));
  }
  const auto run = [&](const std::vector<Wide>& at) {
    return evaluate_in(e.function, at, {}, Mode::wide);
  };
  const std::vector<Wide> got = run(in);
  for (std::size_t k = 0; k < of.size(); ++k) {
    const auto& params = e.function.params();
    const auto at = static_cast<std::size_t>(
        std::ranges::find(params, of[k], &Function::Param::name) - params.begin());
    ASSERT_LT(at, params.size()) << of[k];
    const Wide& d = got.at(k + 1);
    for (std::size_t i = 0; i < std::min<std::size_t>(d.reals.size(), 10); ++i) {
      const std::size_t element = i * 7919 % d.reals.size();
      const auto loss_at = [&](double step) {
        std::vector<Wide> moved = in;
        moved[at].reals[element] += step;
        return run(moved)[0].reals[0];
      };
      const double h = 1e-5, slope = (loss_at(h) - loss_at(-h)) / (2 * h);
      EXPECT_NEAR(d.reals[element], slope, 1e-4 * std::max(1.0, std::fabs(slope)))
          << "by " << of[k] << " element " << element;
    }
  }
}

}  // namespace hone::test
