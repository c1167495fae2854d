#include "import/onnx/branch.h"

#include <algorithm>

#include "base/amount.h"
#include "import/onnx/build.h"
#include "import/onnx/context.h"
#include "import/onnx/open.h"
#include "ir/measured.h"

namespace hone::onnx {

namespace {

Value zeros(hone::Graph& graph, const Type& t) {
  return broadcast_to(constant(graph, Array::zeros(t.dtype, {})), t.shape);
}

// Sizes that the branch measures for itself at their bounds: nothing outside knows them.
Dims rooms_of(const Function& branch, const Dims& dims) {
  Dims out;
  for (const Dim& d : dims) out.push_back(room_of(branch.graph(), d));
  return out;
}

}  // namespace

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
  if (yes.results().size() != no.results().size())
    throw UserError("then_branch has ", amount(yes.results().size(), "output", "outputs"),
                    " and else_branch ", no.results().size(), ", expected equal numbers");
  std::vector<ChosenSizes> out;
  for (std::size_t i = 0; i < yes.results().size(); ++i) {
    const Type &a = yes.result(i).type(), &b = no.result(i).type();
    if (!a.is_tensor() || !b.is_tensor())
      throw Unsupported("output ", i,
                        " is a sequence or optional and the condition depends on data; only "
                        "tensors can be chosen at run time");
    if (a.dtype != b.dtype || a.rank() != b.rank())
      throw Unsupported(
          "output ", i, " is ", a, " in then_branch and ", b,
          " in else_branch, and the condition depends on data; to compile for one "
          "branch, give the inputs that decide it (--input, ImportOptions::contents)");
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
