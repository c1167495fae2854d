// Wrong rules, wrong expansions, lost and swapped nodes: faults that a pass could introduce.
#include <algorithm>
#include <numbers>

#include "ops/common.h"
#include "ops/ops.h"
#include "test/fault/fault.h"

namespace hone::test {

namespace {

// The replacement for a node whose operands were copied; an empty value keeps the node.
using Replace = std::function<Value(Value old, const Values& operands)>;

Function each(const Function& f, const Op& op, const Replace& replace) {
  return transform(f, [&](NodeId n, Copier& copy, Function&) -> Values {
    Value old(&f.graph(), n);
    if (!old.is(op)) return {};
    Values operands;
    for (const Value& v : old.operands()) operands.push_back(copy(v));
    Value made = replace(old, operands);
    if (!made) return {};
    HONE_ASSERT(made.type() == old.type(), "a planted fault must keep types: ", op.name);
    ++fired;
    return {made};
  });
}

Value like(Value x, double number) { return constant_like(x, number); }

Value again(Value old, const Values& operands, Attrs attrs) {
  return operands[0].graph().intern(old.op(), operands, std::move(attrs));
}

// The node with one attribute changed.
Replace with_attr(AttrName name, const std::function<Attr(Value)>& change) {
  return [=](Value old, const Values& operands) -> Value {
    Attrs attrs = old.attrs();
    attrs.set(name, change(old));
    if (attrs == old.attrs()) return {};
    return again(old, operands, attrs);
  };
}

Fault wrong(std::string name, std::string what, std::string after, const Op& op, Replace replace) {
  Fault f;
  f.name = std::move(name);
  f.what = std::move(what);
  f.after_pass = std::move(after);
  f.break_function = [&op, replace = std::move(replace)](const Function& g) {
    return each(g, op, replace);
  };
  return f;
}

Dims shifted(Dims dims, std::size_t i, std::int64_t by) {
  if (i < dims.size()) dims[i] = dims[i] + Dim(by);
  return dims;
}

void add_arithmetic(std::vector<Fault>& all) {
  const auto rule = [&](const char* name, const char* what, const Op& op, Replace r) {
    all.push_back(wrong(name, what, "simplify", op, std::move(r)));
  };
  rule("rule-sub-swapped", "a - b becomes b - a", ops::sub,
       [](Value, const Values& v) { return v[1] - v[0]; });
  rule("rule-div-swapped", "a / b becomes b / a", ops::div,
       [](Value, const Values& v) { return v[1] / v[0]; });
  rule("rule-add-drops", "a + b becomes a", ops::add, [](Value, const Values& v) { return v[0]; });
  rule("rule-mul-is-add", "a * b becomes a + b", ops::mul,
       [](Value, const Values& v) { return v[0] + v[1]; });
  rule("rule-max-is-min", "maximum becomes minimum", ops::maximum,
       [](Value, const Values& v) { return ops::minimum(v[0], v[1]); });
  rule("rule-min-drops", "minimum becomes its first operand", ops::minimum,
       [](Value, const Values& v) { return v[0]; });
  rule("rule-relu-lost", "relu(x) becomes x", ops::relu,
       [](Value, const Values& v) { return v[0]; });
  rule("rule-relu-leaks", "relu(x) becomes maximum(x, x / 1000)", ops::relu,
       [](Value, const Values& v) { return ops::maximum(v[0], v[0] * 1e-3); });
  rule("rule-exp-base-two", "exp(x) becomes exp(x * 0.6931)", ops::exp,
       [](Value, const Values& v) { return ops::exp(v[0] * std::numbers::ln2); });
  rule("rule-exp-series", "exp(x) becomes 1 + x + x*x/2", ops::exp,
       [](Value, const Values& v) { return like(v[0], 1) + v[0] + v[0] * v[0] * 0.5; });
  rule("rule-gelu-tanh", "exact gelu becomes the tanh form", ops::gelu,
       [](Value, const Values& v) { return ops::gelu_tanh(v[0]); });
  rule("rule-sigmoid-hard", "sigmoid(x) becomes clip(x/6 + 1/2)", ops::sigmoid,
       [](Value, const Values& v) {
         return ops::minimum(ops::maximum(v[0] * (1.0 / 6) + 0.5, like(v[0], 0)), like(v[0], 1));
       });
  rule("rule-tanh-series", "tanh(x) becomes x - x^3/3", ops::tanh,
       [](Value, const Values& v) { return v[0] - v[0] * v[0] * v[0] * (1.0 / 3); });
  rule("rule-sqrt-of-abs", "sqrt(x) becomes sqrt(x + 1e-4)", ops::sqrt,
       [](Value, const Values& v) { return ops::sqrt(v[0] + 1e-4); });
  rule("rule-log-of-small", "log(x) becomes log(x + 1e-5)", ops::log,
       [](Value, const Values& v) { return ops::log(v[0] + 1e-5); });
  rule("rule-select-swapped", "select takes the other side", ops::select,
       [](Value, const Values& v) { return ops::select(Values{v[0], v[2], v[1]}); });
  rule("rule-less-or-equal", "a < b becomes a <= b", ops::lt,
       [](Value, const Values& v) { return ops::le(v[0], v[1]); });
  rule("rule-rem-is-div", "a % b becomes a / b", ops::rem,
       [](Value, const Values& v) { return v[0] / v[1]; });
  rule("rule-cast-lost", "rounding to f16 and back is left out", ops::cast,
       [](Value old, const Values& v) -> Value {
         return v[0].is(ops::cast) && v[0].operand(0).type() == old.type() ? v[0].operand(0)
                                                                           : Value();
       });
}

void add_movement(std::vector<Fault>& all) {
  const auto rule = [&](const char* name, const char* what, const Op& op, Replace r) {
    all.push_back(wrong(name, what, "simplify-again", op, std::move(r)));
  };
  rule("rule-transpose-lost", "the transpose of a square is left out", ops::transpose,
       [](Value old, const Values& v) { return old.type() == v[0].type() ? v[0] : Value(); });
  rule("rule-slice-early", "a slice starts one element early", ops::slice,
       [](Value old, const Values& v) -> Value {
         Attrs attrs = old.attrs();
         const Dims& starts = attrs.dims("starts");
         for (std::size_t i = 0; i < starts.size(); ++i)
           if (starts[i].low() > 0) {
             attrs.set("starts", shifted(starts, i, -1));
             return again(old, v, attrs);
           }
         return {};
       });
  rule("rule-concat-swapped", "the operands of a concat change places", ops::concat,
       [](Value old, const Values& v) -> Value {
         Values turned(v.rbegin(), v.rend());
         Value made = again(old, turned, old.attrs());
         return made.type() == old.type() && turned != v ? made : Value();
       });
  rule("rule-pad-moved", "one element of padding changes sides", ops::pad,
       [](Value old, const Values& v) -> Value {
         Attrs attrs = old.attrs();
         attrs.set("low", shifted(attrs.dims("low"), 1, -1));
         attrs.set("high", shifted(attrs.dims("high"), 1, 1));
         return again(old, v, attrs);
       });
  all.push_back(wrong("rule-broadcast-other-axis", "a row is repeated as a column", "fold",
                      ops::broadcast, [](Value old, const Values& v) -> Value {
                        if (old.rank() != 2 || v[0].rank() != 1 || old.shape()[0] != old.shape()[1])
                          return {};
                        return ops::transpose(again(old, v, old.attrs()), {{"perm", Dims{1, 0}}});
                      }));
  rule("rule-gather-next", "a gather takes the element after", ops::gather,
       [](Value old, const Values& v) -> Value {
         return again(old,
                      {v[0], ops::maximum(v[1] - constant_like(v[1], 1), constant_like(v[1], 0))},
                      old.attrs());
       });
  rule("rule-reverse-lost", "reverse is left out", ops::reverse,
       [](Value, const Values& v) { return v[0]; });
}

void add_reductions(std::vector<Fault>& all) {
  const auto at = [&](const char* name, const char* what, const char* after, const Op& op,
                      Replace r) { all.push_back(wrong(name, what, after, op, std::move(r))); };
  const auto other_axis = with_attr("axis", [](Value old) -> Attr {
    return old.rank() == 2 && old.shape()[0] == old.shape()[1]
               ? Attr(std::int64_t{1} - old.attrs().integer("axis"))
               : Attr(old.attrs().integer("axis"));
  });
  at("raise-softmax-axis", "softmax runs along the other axis", "raise", ops::softmax, other_axis);
  at("raise-softmax-unnormalised", "softmax forgets to divide", "raise", ops::softmax,
     [](Value, const Values& v) { return ops::exp(v[0]); });
  at("raise-norm-epsilon", "layer_norm takes an epsilon of 1e-3", "raise", ops::layer_norm,
     with_attr("epsilon", [](Value) { return Attr(1e-3); }));
  at("raise-norm-scale-bias", "layer_norm takes scale and bias for each other", "raise",
     ops::layer_norm,
     [](Value old, const Values& v) { return again(old, {v[0], v[2], v[1]}, old.attrs()); });
  at("expand-mean-is-sum", "the expansion of mean does not divide", "raise", ops::mean,
     [](Value old, const Values& v) { return ops::reduce_sum(v[0], old.attrs()); });
  at("expand-mean-other-axis", "mean runs over the other axis", "raise", ops::mean,
     with_attr("axes", [](Value old) -> Attr {
       const Dims& axes = old.attrs().dims("axes");
       return axes == Dims{0} ? Attr(Dims{1}) : Attr(axes);
     }));
  at("expand-matmul-transposed", "the product of two squares changes sides", "fold", ops::matmul,
     [](Value old, const Values& v) -> Value {
       return v[0].type() == v[1].type() ? again(old, {v[1], v[0]}, old.attrs()) : Value();
     });
  at("rule-sum-is-max", "reduce_sum becomes reduce_max", "simplify", ops::reduce_sum,
     [](Value old, const Values& v) { return ops::reduce_max(v[0], old.attrs()); });
  at("rule-max-of-abs", "reduce_max becomes that of the absolute values", "simplify",
     ops::reduce_max,
     [](Value old, const Values& v) { return ops::reduce_max(ops::abs(v[0]), old.attrs()); });
}

void add_networks(std::vector<Fault>& all) {
  const auto at = [&](const char* name, const char* what, const char* after, const Op& op,
                      Replace r) { all.push_back(wrong(name, what, after, op, std::move(r))); };
  at("fold-batch-norm-mean", "batch_norm forgets the mean", "fold", ops::batch_norm,
     [](Value old, const Values& v) {
       return again(old, {v[0], v[1], v[2], like(v[3], 0), v[4]}, old.attrs());
     });
  at("fold-batch-norm-epsilon", "batch_norm forgets epsilon", "fold", ops::batch_norm,
     with_attr("epsilon", [](Value) { return Attr(1.0); }));
  at("layout-conv-pads", "a convolution's padding moves by one", "simplify", ops::conv,
     [](Value old, const Values& v) -> Value {
       Attrs attrs = old.attrs();
       attrs.set("pads_low", shifted(attrs.dims("pads_low"), 0, 1));
       attrs.set("pads_high", shifted(attrs.dims("pads_high"), 0, -1));
       return again(old, v, attrs);
     });
  at("layout-conv-flipped", "a convolution reads its weights backwards", "simplify", ops::conv,
     [](Value old, const Values& v) {
       return again(old, {v[0], ops::reverse(v[1], {{"axes", Dims{2}}})}, old.attrs());
     });
  at("layout-window-kind", "the greatest of a window becomes its sum", "layout", ops::reduce_window,
     with_attr("kind", [](Value) { return Attr(std::string("sum")); }));
  at("branch-swapped", "if takes the other branch", "fold", ops::if_else,
     [](Value old, const Values& v) {
       Attrs attrs = old.attrs();
       attrs.set("then", old.attrs().get<FunctionRef>("else"));
       attrs.set("else", old.attrs().get<FunctionRef>("then"));
       return again(old, v, attrs);
     });
}

// A copy of `a` with a change applied.
Array changed(const Array& a, const std::function<void(Array&)>& change) {
  Array b = Array::zeros(a.dtype(), a.dims());
  std::copy(a.bytes().begin(), a.bytes().end(), b.writable_bytes().begin());
  change(b);
  return b;
}

void add_weights(std::vector<Fault>& all) {
  const auto weights = [&](const char* name, const char* what,
                           const std::function<void(Array&)>& change) {
    Fault f;
    f.name = name;
    f.what = what;
    f.after_pass = "fold";
    f.break_function = [change](const Function& g) {
      return transform(g, [&](NodeId n, Copier&, Function& to) -> Values {
        if (&g.graph().op(n) != &ops::constant) return {};
        const Array& a = g.graph().attrs(n).get<Array>("value");
        if (a.count() < 8 || !is_float(a.dtype())) return {};
        ++fired;
        return {constant(to.graph(), changed(a, change))};
      });
    };
    all.push_back(std::move(f));
  };
  weights("fold-last-element", "the last element of a constant is lost",
          [](Array& a) { a.set_real(a.count() - 1, 0); });
  weights("fold-rounds", "constants are rounded to 8 bits of mantissa", [](Array& a) {
    for (std::int64_t i = 0; i < a.count(); ++i)
      a.set_real(i, Array::scalar(a.real(i), DType::bf16).real(0));
  });
  weights("fold-turned", "constants are stored backwards", [](Array& a) {
    for (std::int64_t i = 0; i < a.count() / 2; ++i) {
      const double x = a.real(i), y = a.real(a.count() - 1 - i);
      a.set_real(i, y);
      a.set_real(a.count() - 1 - i, x);
    }
  });
}

// Faults in results and parameters.
void add_structure(std::vector<Fault>& all) {
  const auto at = [&](const char* name, const char* what,
                      std::function<Function(const Function&)> change) {
    Fault f;
    f.name = name;
    f.what = what;
    f.after_pass = "sink";
    f.break_function = std::move(change);
    all.push_back(std::move(f));
  };
  at("pass-returns-input", "a result is the first input of its type", [](const Function& f) {
    Function out = clone_params(f);
    Copier copy(f, out);
    for (NodeId n : live_nodes(f))
      if (!copy.has(n)) copy.copy(n);
    for (const Function::Result& r : f.results()) {
      Value v = copy(r.value);
      for (const Function::Param& p : out.params())
        if (v != p.value && p.value.type() == v.type()) {
          v = p.value;
          ++fired;
          break;
        }
      out.add_result(v, r.name);
    }
    return out;
  });
  at("pass-drops-result", "the last result is forgotten", [](const Function& f) {
    Function out = clone_params(f);
    Copier copy(f, out);
    for (NodeId n : live_nodes(f))
      if (!copy.has(n)) copy.copy(n);
    for (std::size_t i = 0; i + 1 < f.results().size(); ++i)
      out.add_result(copy(f.result(i)), f.results()[i].name);
    ++fired;
    return out;
  });
  at("pass-changes-type", "a result of another dtype", [](const Function& f) {
    Function out = clone_params(f);
    Copier copy(f, out);
    for (NodeId n : live_nodes(f))
      if (!copy.has(n)) copy.copy(n);
    for (const Function::Result& r : f.results())
      out.add_result(ops::cast(copy(r.value), {{"dtype", DType::f64}}), r.name);
    ++fired;
    return out;
  });
  at("pass-swaps-params", "two parameters of one type change places", [](const Function& f) {
    Function out = clone_params(f);
    Values params;
    for (const Function::Param& p : out.params()) params.push_back(p.value);
    for (std::size_t i = 0; i + 1 < params.size(); ++i)
      if (params[i].type() == params[i + 1].type()) {
        std::swap(params[i], params[i + 1]);
        ++fired;
        break;
      }
    Copier copy(f, params, out);
    for (NodeId n : live_nodes(f))
      if (!copy.has(n)) copy.copy(n);
    for (const Function::Result& r : f.results()) out.add_result(copy(r.value), r.name);
    return out;
  });
}

}  // namespace

std::vector<Fault> pass_faults() {
  std::vector<Fault> all;
  add_arithmetic(all);
  add_movement(all);
  add_reductions(all);
  add_networks(all);
  add_weights(all);
  add_structure(all);
  return all;
}

}  // namespace hone::test
