#include "ir/measured.h"

#include <algorithm>
#include <cmath>

#include "ir/refusal.h"

namespace hone {

namespace {

const Dim& one_size(const Call& c, AttrName name) {
  const Attr* a = c.attrs.find(name);
  const Dims* dims = a ? std::get_if<Dims>(a) : nullptr;
  if (!dims || dims->size() != 1)
    throw UserError("measure: attribute '", name.text(), "' is missing or not a list of one size");
  return (*dims)[0];
}

}  // namespace

constinit const Op ops::measure = {
    .name = "measure",
    .doc =
        "From here on attribute symbol (one size) stands for what operand 0 (an i64 scalar) holds, "
        "which must be 0 to attribute high (one size). The result is the operand. Each symbol is "
        "measured once in a function, and those of a body are the body's own: none of its results "
        "may have such a size.",
    .kind = OpKind::control,
    .infer = [](const Call& c) -> std::vector<Type> {
      if (c.operands.size() != 1)
        throw UserError("measure: takes 1 operand, got ", c.operands.size());
      if (c.type(0) != i64(Shape{}))
        throw UserError("measure: operand 0 is ", c.type(0), ", expected i64[]");
      const Dim &symbol = one_size(c, "symbol"), &high = one_size(c, "high");
      if (!symbol.is_symbol() && !symbol.is_number())
        throw UserError("measure: attribute 'symbol' is ", symbol, ", expected one symbol");
      if (high.low() < 0)
        throw UserError("measure: attribute 'high' is ", high,
                        ", which may be negative, expected at least 0");
      return {c.type(0)};
    },
    .eval = [](const Evaluation& e) -> std::vector<Wide> {
      check_measured(e.attrs.dims("symbol")[0], e.inputs[0]->integers.at(0),
                     e.size(e.attrs.dims("high")[0]));
      return {*e.inputs[0]};
    },
    .pure = false,
    .samples = []() -> Samples {
      return {{{i64({})}, {{"symbol", Dims{Dim::symbol("s", 0, 6)}}, {"high", Dims{6}}}}};
    },
    .low = 0,
    .high = 6,
};

std::vector<DimBound> measured_sizes(const Graph& graph) {
  std::vector<DimBound> out;
  for (NodeId n = 0; n < graph.node_count(); ++n) {
    if (&graph.op(n) != &ops::measure) continue;
    const Dim& symbol = graph.attrs(n).dims("symbol")[0];
    if (symbol.is_symbol()) out.push_back({symbol, graph.attrs(n).dims("high")[0]});
  }
  return out;
}

void check_measured(const Dim& symbol, std::int64_t n, std::int64_t most) {
  const auto size = static_cast<double>(n);
  if (n < 0 || n > most)
    throw InputRefusal(std::max(-size, size - static_cast<double>(most)), "size ", symbol, " is ",
                       n, " for these inputs, expected 0 to ", most);
  if (symbol.is_number() && symbol.number() != n)
    throw InputRefusal(std::abs(size - static_cast<double>(symbol.number())), "a size is ", n,
                       " for these inputs, expected ", symbol);
}

}  // namespace hone
