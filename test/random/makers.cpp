#include "test/random/makers.h"

#include "test/random/onnx_makers.h"

namespace hone::fuzz {

namespace {

// A symbol of a sample becomes one of the function's own, or a number.
Dim in_function(Builder& b, const Dim& d) {
  return d.substitute([&](const Dim& s) -> std::optional<Dim> {
    for (const Dim& own : b.style.symbols)
      if (own.low() >= s.low()) return own;
    return Dim(std::max<std::int64_t>(s.low(), 3));
  });
}

Attrs in_function(Builder& b, const Attrs& attrs) {
  Attrs out;
  for (const Attrs::Entry& e : attrs.entries()) {
    Attr value = e.second;
    if (auto* dims = std::get_if<Dims>(&value))
      for (Dim& d : *dims) d = in_function(b, d);
    out.set(e.first, std::move(value));
  }
  return out;
}

bool holds_functions(const Attrs& attrs) {
  for (const Attrs::Entry& e : attrs.entries())
    if (std::holds_alternative<FunctionRef>(e.second)) return true;
  return false;
}

const Maker& weighted(Random& random, const std::vector<Maker>& makers) {
  static const int total = [&] {
    int sum = 0;
    for (const Maker& m : makers) sum += m.weight;
    return sum;
  }();
  int at = random.below(total);
  for (const Maker& m : makers)
    if ((at -= m.weight) < 0) return m;
  return makers.back();
}

const std::vector<Maker>& makers() {
  static const std::vector<Maker> all = all_makers();
  return all;
}

void add_operator(Builder& b) {
  static const std::vector<OnnxMaker> all = onnx_makers();
  const OnnxMaker& m = b.random.of(all);
  Value y = m.make(b, m.op);
  if (b.keep(y)) b.operators.emplace_back(m.op, y.node());
}

void add_one(Builder& b) {
  if (b.random.chance(20)) return add_operator(b);
  if (b.random.chance(6)) {
    const Motif& m =
        motifs()[static_cast<std::size_t>(b.random.below(static_cast<int>(motifs().size())))];
    b.keep(m.make(b));
    return;
  }
  const Maker& m = weighted(b.random, makers());
  b.keep(b.random.chance(4) ? make_sample(b, *m.op) : m.make(b, *m.op));
}

}  // namespace

std::vector<Maker> all_makers() {
  std::vector<Maker> out;
  for (auto list : {elementwise_makers(), movement_makers(), index_makers(), row_makers(),
                    contraction_makers(), control_makers()})
    out.insert(out.end(), list.begin(), list.end());
  return out;
}

Value make_sample(Builder& b, const Op& op) {
  if (!op.samples || &op == &ops::refuse || &op == &ops::require) return {};
  const Samples samples = op.samples();
  const Sample& sample = b.random.of(samples);
  if (holds_functions(sample.attrs)) return {};
  Values operands;
  for (Type t : sample.operands) {
    for (Dim& d : t.shape.dims) d = in_function(b, d);
    operands.push_back(b.operand(t));
  }
  Value y = b.graph().intern(op, operands, in_function(b, sample.attrs));
  for (std::size_t i = 1; i < y.result_count(); ++i) b.keep(y.result(i));
  return y;
}

void grow(Builder& b, int nodes) {
  for (int tries = 0; tries < 8 * nodes && static_cast<int>(b.pool().size()) < nodes; ++tries) {
    try {
      add_one(b);
    } catch (const UserError&) {
      // An operation that does not fit is left out; nodes made for it stay dead.
    }
  }
}

}  // namespace hone::fuzz
