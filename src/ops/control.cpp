// Control flow over closed Functions, and `refuse`, a value that must never be reached.
#include <algorithm>
#include <limits>

#include "base/amount.h"
#include "ir/function.h"
#include "ir/measured.h"
#include "ir/refusal.h"
#include "ops/check.h"
#include "ops/eval.h"
#include "ops/samples.h"

namespace hone {

namespace {

// Body symbols are bound by the arguments: a symbol that is a complete size of a parameter is bound
// there, and all other sizes must then agree. Unbound symbols are the caller's.
using Binding = std::vector<std::pair<std::string, Dim>>;

const Dim* bound(const Binding& b, const Dim& symbol) {
  for (auto& [name, d] : b)
    if (name == symbol.name()) return &d;
  return nullptr;
}

Dim resolve(const Dim& d, const Binding& b) {
  return d.substitute([&](const Dim& symbol) -> std::optional<Dim> {
    const Dim* to = bound(b, symbol);
    return to ? std::optional(*to) : std::nullopt;
  });
}

Binding bind_params(const Call& c, const Function& body, std::size_t first, AttrName which) {
  if (body.params().size() != c.operands.size() - first)
    throw UserError(c.op.name, ": '", which.text(), "' takes ", body.params().size(),
                    " values, got ", c.operands.size() - first);
  Binding b;
  for (std::size_t i = 0; i < body.params().size(); ++i) {
    const Type &want = body.param(i).type(), &have = c.type(first + i);
    if (want.dtype != have.dtype || want.rank() != have.rank() || !want.is_tensor())
      throw UserError(c.op.name, ": parameter ", i, " of '", which.text(), "' is ", want, ", got ",
                      have);
    for (int k = 0; k < want.rank(); ++k)
      if (want.shape[k].is_symbol() && !bound(b, want.shape[k]))
        b.emplace_back(want.shape[k].name(), have.shape[k]);
  }
  for (std::size_t i = 0; i < body.params().size(); ++i)
    for (int k = 0; k < body.param(i).rank(); ++k)
      equal_sizes(c, c.type(first + i).shape[k], resolve(body.param(i).shape()[k], b),
                  "sizes at axis ", k, " of parameter ", i, " of ", which.text());
  return b;
}

std::vector<Type> results_of(const Function& body, const Binding& b) {
  std::vector<Type> types = body.result_types();
  for (Type& t : types)
    for (Dim& d : t.shape.dims) d = resolve(d, b);
  return types;
}

// A data-dependent size of the body has no meaning outside it.
void expect_no_own_sizes(const Call& c, const Function& body, AttrName which) {
  for (const DimBound& own : measured_sizes(body.graph()))
    for (std::size_t i = 0; i < body.results().size(); ++i)
      for (const Dim& d : body.result(i).shape().dims)
        for (const Dim& s : d.is_number() ? Dims() : d.symbols())
          if (s.name() == own.symbol.name())
            throw UserError(c.op.name, ": result ", i, " of '", which.text(), "' is ",
                            body.result(i).type(), ", whose size ", s,
                            " depends on data inside it; give results whose sizes "
                            "are known outside");
}

std::vector<Type> infer_body(const Call& c, AttrName which, std::size_t first) {
  const Function& body = *attr<FunctionRef>(c, which);
  expect_no_own_sizes(c, body, which);
  return results_of(body, bind_params(c, body, first, which));
}

bool same_type(const Type& a, const Type& b) {
  if (a.dtype != b.dtype || a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i)
    if (prove_equal(a.shape[i], b.shape[i]) != true) return false;
  return true;
}

std::vector<Type> infer_if(const Call& c) {
  expect_operands(c, 1, ~std::size_t{0});
  expect_dtype(c, 0, Accept::boolean);
  expect_rank(c, 0, 0);
  std::vector<Type> yes = infer_body(c, "then", 1), no = infer_body(c, "else", 1);
  if (yes.size() != no.size() || yes.empty())
    throw UserError("if_else: the branches have ", yes.size(), " and ", no.size(),
                    " results, expected equal numbers, at least one");
  for (std::size_t i = 0; i < yes.size(); ++i)
    if (!same_type(yes[i], no[i]))
      throw UserError("if_else: result ", i, " is ", yes[i], " in one branch and ", no[i],
                      " in the other, expected equal types");
  return yes;
}

std::vector<Type> infer_while(const Call& c) {
  expect_operands(c, 1, ~std::size_t{0});
  std::vector<Type> go = infer_body(c, "condition", 0), next = infer_body(c, "body", 0);
  if (go.size() != 1 || go[0] != b1(Shape{}))
    throw UserError("while_loop: the condition has ", amount(go.size(), "result", "results"),
                    go.empty() ? "" : cat(", the first ", go[0]), ", expected one bool[]");
  if (next.empty() || next.size() > c.operands.size())
    throw UserError("while_loop: the body has ", amount(next.size(), "result", "results"),
                    ", expected 1 to ", c.operands.size(), ", one for each carried value");
  for (std::size_t i = 0; i < next.size(); ++i)
    if (!same_type(next[i], c.type(i)))
      throw UserError("while_loop: carried value ", i, " is ", c.type(i), " before and ", next[i],
                      " after an iteration; its type must not change");
  std::vector<Type> out;
  for (std::size_t i = 0; i < next.size(); ++i) out.push_back(c.type(i));
  return out;
}

std::vector<Wide> copies(std::span<const Wide* const> inputs) {
  std::vector<Wide> out;
  for (const Wide* w : inputs) out.push_back(*w);
  return out;
}

std::vector<Wide> eval_if(const Evaluation& e) {
  bool yes = e.inputs[0]->integers.at(0) != 0;
  const FunctionRef& body =
      yes ? e.attrs.get<FunctionRef>("then") : e.attrs.get<FunctionRef>("else");
  return e.call(*body, copies(e.inputs.subspan(1)));
}

std::vector<Wide> eval_while(const Evaluation& e) {
  const Function &condition = *e.attrs.get<FunctionRef>("condition"),
                 &body = *e.attrs.get<FunctionRef>("body");
  std::vector<Wide> values = copies(e.inputs);
  while (e.call(condition, values).at(0).integers.at(0) != 0) {
    std::vector<Wide> next = e.call(body, values);
    std::move(next.begin(), next.end(), values.begin());
  }
  values.resize(e.result_types.size());
  return values;
}

// Branches of the samples: x + 1 and x * y.
Samples if_samples() {
  Samples out;
  for (const Type& t : {f32({2, 3}), f16({4}), i64({}), f32({sample_symbol()})}) {
    auto yes = std::make_shared<Function>(), no = std::make_shared<Function>();
    for (Function* f : {yes.get(), no.get()}) f->add_param(t, "x"), f->add_param(t, "y");
    yes->add_result(yes->param(0) + 1.0);
    no->add_result(no->param(0) * no->param(1));
    out.push_back({{b1({}), t, t}, {{"then", FunctionRef(yes)}, {"else", FunctionRef(no)}}});
  }
  return out;
}

// Doubles x and counts until the count reaches operand 2 (not carried).
Samples while_samples() {
  Samples out;
  for (const Type& t : {f32({3}), f16({2, 2})}) {
    auto go = std::make_shared<Function>(), body = std::make_shared<Function>();
    for (Function* f : {go.get(), body.get()})
      f->add_param(i64({}), "count"), f->add_param(t, "x"), f->add_param(i64({}), "end");
    go->add_result(ops::lt(go->param(0), go->param(2)));
    body->add_result(ops::add(body->param(0), integer_like(body->param(0), 1)));
    body->add_result(body->param(1) + body->param(1));
    out.push_back(
        {{i64({}), t, i64({})}, {{"condition", FunctionRef(go)}, {"body", FunctionRef(body)}}});
  }
  return out;
}

}  // namespace

constinit const Op ops::if_else = {
    .name = "if_else",
    .doc =
        "The results of attribute then where operand 0 (bool scalar) holds, else of attribute "
        "else. Both are closed Functions of all further operands and give equal types; only "
        "the one taken is evaluated.",
    .kind = OpKind::control,
    .infer = infer_if,
    .eval = eval_if,
    .samples = if_samples,
};

constinit const Op ops::while_loop = {
    .name = "while_loop",
    .doc =
        "While attribute condition holds of the operands, the results of attribute body replace "
        "the first operands. Both are closed Functions of all operands; the body gives as many "
        "results as values are carried, of unchanged types, and those are the results; operands "
        "after them are constant.",
    .kind = OpKind::control,
    .infer = infer_while,
    .eval = eval_while,
    .samples = while_samples,
    .low = 0,
    .high = 6,
};

constinit const Op ops::refuse = {
    .name = "refuse",
    .doc =
        "No operands: a value of attributes dtype and shape that must not be asked for; reaching "
        "it is an error with attribute message. Stands for a branch that cannot be typed; never "
        "folded.",
    .kind = OpKind::control,
    .infer = [](const Call& c) -> std::vector<Type> {
      expect_operands(c, 0);
      attr<std::string>(c, "message");
      const Dims& shape = attr<Dims>(c, "shape");
      return {Type(attr<DType>(c, "dtype"), Shape(sizes_attr(c, "shape", shape.size(), 0)))};
    },
    .eval = [](const Evaluation& e) -> std::vector<Wide> {
      throw UserError(e.attrs.get<std::string>("message"));
    },
    .samples = []() -> Samples {
      return {{{},
               {{"message", std::string("branch: not to be reached")},
                {"dtype", DType::f32},
                {"shape", Dims{2}}}}};
    },
};

constinit const Op ops::require = {
    .name = "require",
    .doc =
        "An effect: a run in which the operand (an i64 scalar) is not 0 is refused, with attribute "
        "message, that number, and the range from attribute low to attribute high (one size each) "
        "that it must be in. Never dropped. Gives the operand.",
    .kind = OpKind::control,
    .infer = [](const Call& c) -> std::vector<Type> {
      expect_operands(c, 1);
      expect_rank(c, 0, 0);
      if (c.type(0).dtype != DType::i64)
        throw UserError("require: the operand is ", c.type(0), ", expected one i64");
      attr<std::string>(c, "message");
      sizes_attr(c, "low", 1, std::numeric_limits<std::int64_t>::min());
      sizes_attr(c, "high", 1, std::numeric_limits<std::int64_t>::min());
      return {c.type(0)};
    },
    .eval = [](const Evaluation& e) -> std::vector<Wide> {
      const std::int64_t n = e.inputs[0]->integers.at(0);
      if (n == 0) return {*e.inputs[0]};
      const std::int64_t low = e.size(e.attrs.dims("low").at(0)),
                         high = e.size(e.attrs.dims("high").at(0));
      const double outside = std::max(static_cast<double>(low) - static_cast<double>(n),
                                      static_cast<double>(n) - static_cast<double>(high));
      throw InputRefusal(outside, e.attrs.get<std::string>("message"), " is ", n, ", expected ",
                         low, " to ", high, "; check the values of the inputs");
    },
    .pure = false,
    .samples = []() -> Samples {
      return {
          {{i64({})}, {{"message", std::string("index")}, {"low", Dims{-3}}, {"high", Dims{2}}}}};
    },
    .low = 0,
    .high = 0,
};

}  // namespace hone
