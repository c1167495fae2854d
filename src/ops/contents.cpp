#include "ops/contents.h"

#include <algorithm>
#include <limits>

#include "ops/common.h"
#include "ops/eval.h"

namespace hone {

namespace {

constexpr std::int64_t most_elements = 64;

bool is_candidate(const Type& t) {
  if (is_float(t.dtype) || t.dtype == DType::text || !t.shape.is_static()) return false;
  std::int64_t n = 1;
  for (const Dim& d : t.shape.dims) {
    if (n > 0 && d.number() > most_elements / n) return false;
    n *= d.number();
  }
  return true;
}

struct NotKnown {};

// Evaluates the op on given integer tensors. Empty when it needs a size that is not a number.
std::optional<Wide> evaluate_small(const Call& c, const Type& result,
                                   const std::vector<Wide>& operands) {
  std::vector<const Wide*> inputs;
  for (const Wide& w : operands) inputs.push_back(&w);
  const std::function<std::int64_t(const Dim&)> size = [](const Dim& d) {
    if (!d.is_number()) throw NotKnown();
    return d.number();
  };
  const std::function<std::vector<Wide>(const Function&, std::vector<Wide>)> call =
      [](const Function&, std::vector<Wide>) -> std::vector<Wide> { throw NotKnown(); };
  try {
    return c.op.eval({c.attrs, inputs, std::span(&result, 1), size, call}).at(0);
  } catch (const NotKnown&) {
    return std::nullopt;
  }
}

std::optional<Wide> numbers(const Dims& contents, const Type& t) {
  Wide w(t.dtype, t.shape.numbers());
  for (std::size_t i = 0; i < contents.size(); ++i) {
    if (!contents[i].is_number()) return std::nullopt;
    w.integers[i] = contents[i].number();
  }
  return w;
}

std::optional<std::vector<Dims>> operand_contents(const Call& c) {
  std::vector<Dims> all;
  for (const Value& v : c.operands) {
    std::optional<Dims> known = contents_of(v);
    if (!known) return std::nullopt;
    all.push_back(std::move(*known));
  }
  return all;
}

// Symbolic contents must stay within the dtype's range, because sizes do not wrap.
bool fits(const Dim& d, DType t) {
  if (d.is_number()) return wrap(t, d.number()) == d.number();
  if (t == DType::i64) return true;
  std::int64_t high = t == DType::b1 ? 1 : integer_start(Join::minimum, t);
  std::int64_t low = integer_start(Join::maximum, t);
  if (t == DType::u64) high = std::numeric_limits<std::int64_t>::max();
  return d.low() >= low && d.high() <= high;
}

std::optional<Dim> guarded(DimRule rule, std::span<const Dim> elements) {
  try {
    return rule(elements);
  } catch (const UserError&) {  // the sizes overflow, or a divisor may be zero
    return std::nullopt;
  }
}

}  // namespace

std::optional<Dims> contents_by_value(const Call& c, const Type& result) {
  if (!is_candidate(result)) return std::nullopt;
  std::vector<Wide> operands;
  for (const Value& v : c.operands) {
    std::optional<Dims> known = contents_of(v);
    std::optional<Wide> w = known ? numbers(*known, v.type()) : std::nullopt;
    if (!w) return std::nullopt;
    operands.push_back(std::move(*w));
  }
  std::optional<Wide> value = evaluate_small(c, result, operands);
  if (!value) return std::nullopt;
  return Dims(value->integers.begin(), value->integers.end());
}

std::optional<Dims> contents_by_position(const Call& c, const Type& result,
                                         std::size_t first_index) {
  if (!is_candidate(result)) return std::nullopt;
  std::optional<std::vector<Dims>> known = operand_contents(c);
  if (!known) return std::nullopt;
  Dims pool;
  std::vector<Wide> operands;
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    const Dims& contents = (*known)[i];
    if (i >= first_index) {
      std::optional<Wide> index = numbers(contents, c.type(i));
      if (!index) return std::nullopt;
      operands.push_back(std::move(*index));
      continue;
    }
    Wide w(DType::i64, c.type(i).shape.numbers());
    for (std::size_t k = 0; k < contents.size(); ++k)
      w.integers[k] = static_cast<std::int64_t>(pool.size() + k);
    pool.insert(pool.end(), contents.begin(), contents.end());
    operands.push_back(std::move(w));
  }
  std::optional<Wide> value = evaluate_small(c, Type(DType::i64, result.shape), operands);
  if (!value) return std::nullopt;
  Dims out;
  for (std::int64_t k : value->integers) out.push_back(pool.at(static_cast<std::size_t>(k)));
  return out;
}

std::optional<Dims> contents_each(const Call& c, const Type& result, DimRule rule) {
  if (!is_candidate(result)) return std::nullopt;
  std::optional<std::vector<Dims>> known = operand_contents(c);
  if (!known) return std::nullopt;
  if (auto value = contents_by_value(c, result)) return value;
  Dims out, elements(known->size());
  for (std::size_t k = 0; k < (*known)[0].size(); ++k) {
    for (std::size_t i = 0; i < known->size(); ++i) elements[i] = (*known)[i][k];
    std::optional<Dim> d = guarded(rule, elements);
    if (!d || !fits(*d, result.dtype)) return std::nullopt;
    out.push_back(*d);
  }
  return out;
}

std::optional<Dims> contents_reduced(const Call& c, const Type& result, DimRule rule) {
  if (!is_candidate(result)) return std::nullopt;
  std::optional<Dims> known = contents_of(c.operands[0]);
  if (!known) return std::nullopt;
  if (auto value = contents_by_value(c, result)) return value;
  Sizes dims = c.shape(0).numbers(), strides = row_major(dims), kept;
  Sizes out_dims = result.shape.numbers(), out_strides = row_major(out_dims);
  Axes axes = axes_of(c.attrs, "axes");
  std::size_t next = 0;
  for (int k = 0; k < c.shape(0).rank(); ++k)
    kept.push_back(std::find(axes.begin(), axes.end(), k) == axes.end() ? out_strides[next++] : 0);
  std::vector<std::optional<Dim>> out(static_cast<std::size_t>(count_of(out_dims)));
  bool all = true;
  Rows<2>(dims, {strides, kept}).each({0, 0}, [&](auto& at, auto& step, std::int64_t n) {
    for (std::int64_t i = 0; i < n && all; ++i) {
      const Dim& d = (*known)[static_cast<std::size_t>(at[0] + i * step[0])];
      std::optional<Dim>& to = out[static_cast<std::size_t>(at[1] + i * step[1])];
      if (!to) {
        to = d;
        continue;
      }
      const Dim both[] = {*to, d};
      to = guarded(rule, both);
      all = to && fits(*to, result.dtype);
    }
  });
  Dims list;
  for (const std::optional<Dim>& d : out) {
    if (!all || !d) return std::nullopt;
    list.push_back(*d);
  }
  return list;
}

}  // namespace hone
