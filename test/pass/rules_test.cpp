// Every rule with expressions on both sides keeps values as its class promises, on random and on
// extreme numbers.
#include "evaluate.h"
#include "ops/common.h"
#include "pass/rewrite.h"
#include "pass/simplify.h"

namespace hone {
namespace {

void find_holes(const Pattern& p, std::vector<std::string>& out) {
  if (!p.hole.empty() && std::find(out.begin(), out.end(), p.hole) == out.end())
    out.push_back(p.hole);
  for (const Pattern& q : p.operands) find_holes(q, out);
}

// The value of a hole: a parameter of this dtype, or a constant.
struct Filling {
  DType dtype;
  std::optional<double> number;
};

std::vector<Filling> fillings() {
  std::vector<Filling> out;
  for (DType t : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i32, DType::i8,
                  DType::i64, DType::u8, DType::u64, DType::b1})
    out.push_back({t, {}});
  for (double x : {0.0, -0.0, 1.0, 4.0, 3.0, double{INFINITY}, -double{INFINITY}})
    out.push_back({DType::f32, x});
  for (double x : {0.0, -0.0, 8.0}) out.push_back({DType::f16, x});
  for (double x : {0.0, 1.0}) out.push_back({DType::i32, x});
  for (double x : {0.0, 1.0}) out.push_back({DType::b1, x});
  return out;
}

using Holes = std::map<std::string, Value>;

// The pattern as a graph; empty if the types do not fit. Casts go to `target`.
Value instantiate(const Pattern& p, const Holes& holes, DType target) {
  if (!p.hole.empty()) return holes.at(p.hole);
  Values operands;
  for (const Pattern& q : p.operands)
    operands.push_back(q.constant ? Value() : instantiate(q, holes, target));
  Value sibling;
  for (const Value& v : operands)
    if (v) sibling = v;
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (!operands[i]) operands[i] = constant_like(sibling, *p.operands[i].constant);
  Attrs attrs = p.attrs;
  if (p.op == &ops::cast) attrs.set("dtype", p.operands[0].op == &ops::cast ? target : DType::f32);
  return apply(*p.op, operands, attrs);
}

class RuleTrial {
 public:
  explicit RuleTrial(const Rule& rule)
      : rule_(rule), set_({&rule, 1}, Order::inputs_first, RuleClass::unsafe) {
    find_holes(rule.match, names_);
  }

  int run() {
    std::vector<Filling> choice(names_.size());
    fill(0, choice);
    return fired_;
  }

 private:
  void fill(std::size_t at, std::vector<Filling>& choice) {
    if (at == names_.size()) {
      for (DType target : {DType::f32, DType::f16}) try_one(choice, target);
      return;
    }
    for (const Filling& f : fillings()) {
      choice[at] = f;
      fill(at + 1, choice);
    }
  }

  void try_one(const std::vector<Filling>& choice, DType target) {
    Function f;
    Holes holes;
    const Shape shape{3, 37};
    for (std::size_t i = 0; i < names_.size(); ++i) {
      Type t(choice[i].dtype, shape);
      holes[names_[i]] = choice[i].number
                             ? broadcast_to(scalar(f.graph(), *choice[i].number, t.dtype), shape)
                             : f.add_param(t, names_[i]);
    }
    try {
      f.add_result(instantiate(rule_.match, holes, target));
    } catch (const UserError&) {
      return;  // the op does not take these types
    }
    RuleLog log;
    Function g = rewrite(f, set_, &log);
    if (log.firings.empty()) return;
    ++fired_;
    std::mt19937 rng(7);
    std::vector<Wide> inputs;
    for (const Type& t : f.param_types()) inputs.push_back(random_wide(t, rng));
    EXPECT_TRUE(same_values(evaluate_function(f, inputs)[0], evaluate_function(g, inputs)[0],
                            rule_.safety == RuleClass::exact))
        << rule_.name << "\n"
        << print(f) << "->\n"
        << print(g);
  }

  const Rule& rule_;
  RuleSet set_;
  std::vector<std::string> names_;
  int fired_ = 0;
};

TEST(Rules, ArithmeticRulesKeepValues) {
  for (const Rule& rule : arithmetic_rules()) {
    if (rule.safety == RuleClass::unsafe) continue;
    EXPECT_GT(RuleTrial(rule).run(), 0) << rule.name << " never fired";
  }
}

// A rule is unsafe because some input shows it.
TEST(Rules, NamesAreUnique) {
  std::map<std::string_view, int> seen;
  for (const Rule& rule : arithmetic_rules()) ++seen[rule.name];
  for (auto& [name, count] : seen) EXPECT_EQ(count, 1) << name;
}

}  // namespace
}  // namespace hone
