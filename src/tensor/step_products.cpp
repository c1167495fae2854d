#include "tensor/step_products.h"

#include <algorithm>
#include <ranges>

#include "ops/contraction.h"

namespace hone::bodies {

namespace {

// Whether keeping `more` of each step takes no more writing than adding to the sum.
bool is_worth(const Dim& more, const Shape& sum) {
  const std::optional<std::int64_t> a = more.as_number(), b = sum.count().as_number();
  return more == Dim(0) || (a && b && *a <= *b);
}

}  // namespace

StepProducts::StepProducts(const Function& f, StepResults r, std::size_t sliced)
    : results_(r), sliced_(sliced), products_(f.results().size() - r.carried - r.kept) {
  for (std::size_t i = 0; i < products_.size(); ++i) find(f, i);
  auto out = std::make_shared<Function>(clone_params(f));
  Copier copy(f, *out);
  for (NodeId n : live_nodes(f))
    if (!copy.has(n)) copy.copy(n);
  for (std::size_t i = 0; i < f.results().size(); ++i)
    if (i < r.carried + r.kept || stays(i - r.carried - r.kept)) out->add_result(copy(f.result(i)));
  for (const Value& v : more_) out->add_result(copy(v));
  function_ = out;
}

void StepProducts::find(const Function& f, std::size_t sum) {
  Value v = f.result(results_.carried + results_.kept + sum);
  const Shape shape = v.shape();
  Product p;
  p.dtype = v.dtype();
  for (; v.is(ops::transpose); v = v.operand(0)) p.transposed.push_back(axes_of(v.attrs(), "perm"));
  if (!v.is(ops::dot)) return;
  const DotAxes axes = dot_axes(v.attrs(), v.operand(0).rank(), v.operand(1).rank());
  if (!axes.batch_a.empty()) return;
  for (std::size_t i = 0; i < axes.contract_a.size(); ++i)
    p.contract.emplace_back(axes.contract_a[i], axes.contract_b[i]);
  const std::size_t before = more_.size();
  p.a = operand_of(f, v.operand(0));
  p.b = operand_of(f, v.operand(1));
  Dim more = 0;
  for (std::size_t i = before; i < more_.size(); ++i) more = more + more_[i].shape().count();
  p.is_found = is_worth(more, shape);
  if (p.is_found)
    products_[sum] = std::move(p);
  else
    more_.resize(before);
}

StepProducts::Operand StepProducts::operand_of(const Function& f, const Value& v) {
  for (std::size_t i = 0; i < sliced_; ++i)
    if (f.param(i) == v) return {From::over, i};
  for (std::size_t i = 0; i < results_.kept; ++i)
    if (f.result(results_.carried + i) == v) return {From::kept, i};
  const auto at = std::ranges::find(more_, v) - more_.begin();
  if (at == std::ssize(more_)) more_.push_back(v);
  return {From::kept, results_.kept + static_cast<std::size_t>(at)};
}

Tensor StepProducts::sum(std::size_t which, const Tensors& over, const Tensors& kept) const {
  const Product& p = products_[which];
  Trace& t = Trace::current();
  const auto all_steps = [&](const Operand& o) {
    return t.value((o.from == From::over ? over : kept)[o.place]);
  };
  AxisPairs contract = {{0, 0}};
  for (const auto& [a, b] : p.contract) contract.emplace_back(a + 1, b + 1);
  Value v = dot_general(all_steps(p.a), all_steps(p.b), {}, contract, p.dtype);
  for (const std::vector<int>& perm : std::views::reverse(p.transposed)) v = transpose_by(v, perm);
  return t.tensor(v);
}

}  // namespace hone::bodies
