#include "import/onnx/operators/branch.h"

#include <algorithm>

#include "base/amount.h"
#include "import/common/build.h"
#include "import/onnx/node/context.h"
#include "import/onnx/node/open.h"
#include "import/onnx/operators/sequence.h"
#include "ir/measured.h"

namespace hone::onnx {

namespace {

Value zeros(hone::Graph& graph, const Type& t) {
  return broadcast_to(constant(graph, Array::zeros(t.dtype, {})), t.shape);
}

// Replaces sizes measured inside the branch by their bounds, since they are unknown outside.
Dims rooms_of(const Function& branch, const Dims& dims) {
  Dims out;
  for (const Dim& d : dims) out.push_back(room_of(branch.graph(), d));
  return out;
}

// An output of one branch and the corresponding output of the other, which may be missing.
struct Output {
  const Branch* branch;
  Value value;
};

bool is_list(Value v) { return is_sequence(v) || is_stacked(v); }

// The element type of a sequence, with sizes known outside; empty for an empty sequence.
std::optional<Type> element_type(const Output& o) {
  const Value& v = o.value;
  if (v.operand_count() == 0) return std::nullopt;
  Type t = v.operand(0).type();
  if (is_stacked(v)) t.shape.dims.erase(t.shape.dims.begin());
  t.shape.dims = rooms_of(o.branch->function, t.shape.dims);
  return t;
}

// A sequence as the slices of one tensor.
Value stacked(const Output& o, const std::optional<Type>& other) {
  const Value& v = o.value;
  if (is_stacked(v)) return v.operand(0);
  if (v.operand_count() == 0) {
    Type none = *other;
    none.shape.dims.insert(none.shape.dims.begin(), 0);
    return zeros(o.branch->function.graph(), none);
  }
  Values parts;
  for (const Value& e : v.operands()) {
    if (e.type() != v.operand(0).type())
      throw Unsupported("a sequence of ", v.operand(0).type(), " and ", e.type(),
                        " has another length in the other branch, and the condition depends on "
                        "data; expected elements of one type");
    parts.push_back(unsqueeze(e, {0}));
  }
  return concat_values(parts, 0);
}

// Adds two results: the element, or zeros of the type in the other branch, and whether it exists.
void add_maybe(Branch& to, Value v, const Output& other, const std::string& name) {
  hone::Graph& graph = to.function.graph();
  const auto flag = [&](bool b) { return constant(graph, Array::scalar_int(b, DType::b1)); };
  Value element, is_there;
  if (v.operand_count() > 0) {
    element = v.operand(0);
    is_there = may_be_empty(v) ? v.operand(1) : flag(true);
  } else {
    Type t = other.value.operand(0).type();
    t.shape.dims = rooms_of(other.branch->function, t.shape.dims);
    element = zeros(graph, t);
    is_there = flag(false);
  }
  to.function.add_result(element, name);
  to.function.add_result(is_there, cat(name, ".is_there"));
}

std::string kind_of(Value v) {
  if (v.type().is_tensor()) return cat("a tensor ", v.type());
  if (is_list(v)) return "a sequence";
  if (!is_optional(v)) return "a value of another kind";
  return v.operand_count() == 0 ? "an empty optional" : "an optional with a value";
}

OutputForm form_of(Value a, Value b) {
  using Kind = OutputForm::Kind;
  if (!b) b = a;
  if (a.type().is_tensor() && b.type().is_tensor()) return {};
  if (is_list(a) && is_list(b)) {
    const bool alike = is_sequence(a) && is_sequence(b) && a.operand_count() == b.operand_count();
    return alike ? OutputForm{Kind::sequence, a.operand_count()} : OutputForm{Kind::stack};
  }
  const auto is_of_tensors = [](Value v) {
    return is_optional(v) &&
           std::ranges::all_of(v.operands(), [](const Value& of) { return of.type().is_tensor(); });
  };
  if (is_of_tensors(a) && is_of_tensors(b)) {
    const bool alike = a.operand_count() == b.operand_count() && !may_be_empty(a);
    return alike ? OutputForm{Kind::optional, a.operand_count()} : OutputForm{Kind::maybe, 2};
  }
  throw Unsupported(
      "the branches give ", kind_of(a), " and ", kind_of(b),
      ", expected the same kind, for only a run tells which branch is taken; export a model whose "
      "branches agree, or compile for one branch: give the inputs that decide it (--input, "
      "ImportOptions::contents)");
}

}  // namespace

std::vector<OutputForm> add_outputs(Branch& a, Branch& b) {
  if (a.refused.empty() && b.refused.empty() && a.outputs.size() != b.outputs.size())
    throw UserError("then_branch has ", amount(a.outputs.size(), "output", "outputs"),
                    " and else_branch ", b.outputs.size(), ", expected equal numbers");
  std::vector<OutputForm> forms;
  const std::size_t count = std::max(a.outputs.size(), b.outputs.size());
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<Output> both;
    for (const Branch* one : {&a, &b})
      if (one->refused.empty()) both.push_back({one, one->outputs[i].value});
    forms.push_back(form_of(both[0].value, both.size() > 1 ? both[1].value : Value()));
    for (Branch* one : {&a, &b}) {
      if (!one->refused.empty()) continue;
      const Value value = one->outputs[i].value;
      const std::string& name = one->outputs[i].name;
      const Output& other = both.back().branch == one ? both.front() : both.back();
      switch (forms.back().kind) {
        case OutputForm::Kind::tensor:
          one->function.add_result(value, name);
          break;
        case OutputForm::Kind::stack:
          one->function.add_result(stacked({one, value}, element_type(other)), name);
          break;
        case OutputForm::Kind::maybe:
          add_maybe(*one, value, other, name);
          break;
        case OutputForm::Kind::sequence:
        case OutputForm::Kind::optional:
          for (std::size_t k = 0; k < forms.back().count; ++k)
            one->function.add_result(value.operand(k), cat(name, ".", k));
          break;
      }
    }
  }
  return forms;
}

Values outputs_of(hone::Graph& g, const std::vector<OutputForm>& forms, const Values& values) {
  Values out;
  auto at = values.begin();
  for (const OutputForm& f : forms) {
    const Values own(at, at + static_cast<std::ptrdiff_t>(f.count));
    at += static_cast<std::ptrdiff_t>(f.count);
    switch (f.kind) {
      case OutputForm::Kind::tensor:
        out.push_back(own[0]);
        break;
      case OutputForm::Kind::stack:
        out.push_back(stacked_sequence(g, own[0]));
        break;
      case OutputForm::Kind::sequence:
        out.push_back(sequence_of(g, own));
        break;
      case OutputForm::Kind::optional:
        out.push_back(optional_of(g, own.empty() ? Value() : own[0]));
        break;
      case OutputForm::Kind::maybe:
        out.push_back(optional_of(g, own[0], own[1]));
        break;
    }
  }
  return out;
}

void add_dumped(const std::string& name, Branch& a, Branch& b) {
  const auto at_a = a.dumped.find(name), at_b = b.dumped.find(name);
  const bool has_a = at_a != a.dumped.end(), has_b = at_b != b.dumped.end();
  const Type type = (has_a ? at_a : at_b)->second.value.type();
  if (has_a && has_b && at_b->second.value.type() != type)
    throw UserError("dump: '", name, "' is ", type, " in one branch of an If and ",
                    at_b->second.value.type(), " in the other; only equal types can be dumped");
  for (Branch* one : {&a, &b}) {
    if (!one->refused.empty()) continue;
    hone::Graph& graph = one->function.graph();
    const auto at = one->dumped.find(name);
    Dumped d{zeros(graph, type), constant(graph, Array::zeros(DType::b1, {}))};
    if (at != one->dumped.end()) {
      d = at->second;
      if (!d.computed) d.computed = constant(graph, Array::scalar_int(1, DType::b1));
    }
    one->function.add_result(d.value, name);
    one->function.add_result(d.computed, cat(name, dump_flag));
  }
}

void refuse_like(Branch& b, const Function& other) {
  for (const Function::Result& r : other.results()) {
    Attrs attrs = {{"message", "a branch that is invalid for these sizes was taken: " + b.refused},
                   {"dtype", r.value.dtype()},
                   {"shape", rooms_of(other, r.value.shape().dims)}};
    b.function.add_result(b.function.graph().intern(ops::refuse, {}, std::move(attrs)), r.name);
  }
}

bool ChosenSizes::is_open() const { return std::ranges::count(open, true) > 0; }

std::vector<ChosenSizes> chosen_sizes(const Function& yes, const Function& no, bool may_differ) {
  std::vector<ChosenSizes> out;
  for (std::size_t i = 0; i < yes.results().size(); ++i) {
    const Type &a = yes.result(i).type(), &b = no.result(i).type();
    if (a.dtype != b.dtype || a.rank() != b.rank())
      throw Unsupported(
          "output ", i, " is ", a, " in then_branch and ", b,
          " in else_branch, expected equal dtypes and ranks, for only a run tells which branch is "
          "taken; export a model whose branches agree, or compile for one branch: give the inputs "
          "that decide it (--input, ImportOptions::contents)");
    const Dims room_a = rooms_of(yes, a.shape.dims), room_b = rooms_of(no, b.shape.dims);
    ChosenSizes s;
    for (std::size_t k = 0; k < room_a.size(); ++k) {
      const Dim &x = a.shape.dims[k], &y = b.shape.dims[k];
      const bool is_measured = room_a[k] != x || room_b[k] != y;
      const std::optional<bool> equal = prove_equal(x, y);
      s.is_unproven = s.is_unproven || (!is_measured && !equal);
      s.open.push_back(is_measured || (may_differ ? equal != true : equal == false));
      s.dims.push_back(s.open.back() ? max(room_a[k], room_b[k]) : y.is_number() ? y : x);
    }
    out.push_back(std::move(s));
  }
  return out;
}

FunctionRef closed_branch(const Branch& b, const Values& all,
                          const std::vector<ChosenSizes>& sizes) {
  Function out;
  for (const Value& v : all) out.add_param(v.type(), "");
  Values arguments;
  for (const Value& v : b.captures)
    arguments.push_back(
        out.param(static_cast<std::size_t>(std::find(all.begin(), all.end(), v) - all.begin())));
  for (const DimCheck& c : b.function.graph().checks()) out.graph().add_check(c);
  Copier copy(b.function, arguments, out);
  for (NodeId n : live_nodes(b.function))
    if (!copy.has(n)) copy.copy(n);
  Values found;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Value v = copy(b.function.result(i));
    const ChosenSizes& s = sizes[i];
    for (int k = 0; k < v.rank(); ++k)
      if (const Dim& d = s.dims[static_cast<std::size_t>(k)]; !s.open[static_cast<std::size_t>(k)])
        out.graph().require_equal(v.shape()[k], d,
                                  cat("If: output ", i, " is ", v.type(), " in one branch and ",
                                      Shape(s.dims), " in the other, expected equal sizes"));
    if (s.is_open()) {
      found.push_back(dims_value(out.graph(), v.shape().dims, DType::i64, {v.rank()}));
      v = in_room(v, s.dims);
    }
    out.add_result(reshape_to(v, s.dims), b.function.results()[i].name);
  }
  for (const Value& v : found) out.add_result(v, "");
  return std::make_shared<const Function>(std::move(out));
}

}  // namespace hone::onnx
