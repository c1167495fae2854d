#include "ops/check.h"

#include <algorithm>

namespace hone {

namespace {

std::string operands_text(const Call& c) {
  std::string out;
  for (std::size_t i = 0; i < c.operands.size(); ++i) out += cat(i ? ", " : "", c.type(i));
  return out;
}

bool accepts(Accept accept, DType t) {
  if (is_coded(t)) return false;
  switch (accept) {
    case Accept::any:
      return true;
    case Accept::numeric:
      return t != DType::b1;
    case Accept::real:
      return is_float(t);
    case Accept::integer:
      return is_integer(t);
    case Accept::bits:
      return !is_float(t);
    case Accept::boolean:
      return t == DType::b1;
  }
  return false;
}

constexpr std::string_view accepted[] = {"a dtype to compute in", "a numeric dtype",
                                         "a float dtype",         "integers",
                                         "integers or bools",     "bool"};

}  // namespace

void expect_operands(const Call& c, std::size_t least, std::size_t most) {
  if (c.operands.size() < least || c.operands.size() > most)
    throw UserError(
        c.op.name, ": takes ", least,
        least == most ? "" : cat(most == ~std::size_t{0} ? " or more" : cat(" to ", most)),
        most == 1 ? " operand, got " : " operands, got ", c.operands.size(), " (", operands_text(c),
        ")");
  for (std::size_t i = 0; i < c.operands.size(); ++i)
    if (!c.type(i).is_tensor())
      throw UserError(c.op.name, ": operand ", i, " is ", c.type(i), ", expected a tensor");
}

void expect_dtype(const Call& c, std::size_t operand, Accept accept) {
  if (!accepts(accept, c.type(operand).dtype))
    throw UserError(c.op.name, ": operand ", operand, " is ", c.type(operand), ", expected ",
                    accepted[static_cast<std::size_t>(accept)], "; cast it");
}

void expect_same_dtype(const Call& c, std::size_t first, std::size_t last) {
  for (std::size_t i = first + 1; i < last; ++i)
    if (c.type(i).dtype != c.type(first).dtype)
      throw UserError(c.op.name, ": operands are ", c.type(first), " and ", c.type(i),
                      "; cast one of them");
}

void expect_rank(const Call& c, std::size_t operand, int rank) {
  if (c.type(operand).rank() != rank)
    throw UserError(c.op.name, ": operand ", operand, " is ", c.type(operand), " of rank ",
                    c.type(operand).rank(), ", expected rank ", rank, "; reshape it");
}

Dim settle_equal(const Call& c, const Dim& a, const Dim& b, const std::string& where) {
  c.graph.require_equal(a, b,
                        cat(c.op.name, ": ", where, " differ: ", a, " against ", b, " in (",
                            operands_text(c), "); make them equal"));
  return b.is_number() ? b : a;
}

Shape equal_shapes(const Call& c, std::size_t first, std::size_t last) {
  Shape shape = c.shape(first);
  for (std::size_t i = first + 1; i < last; ++i) {
    const Shape& other = c.shape(i);
    if (other.rank() != shape.rank())
      throw UserError(c.op.name, ": operands are ", c.type(first), " and ", c.type(i),
                      "; broadcast one of them explicitly");
    for (int k = 0; k < shape.rank(); ++k)
      if (shape[k] != other[k]) shape[k] = equal_sizes(c, shape[k], other[k], "sizes at axis ", k);
  }
  return shape;
}

void settle_at_most(const Call& c, const Dim& a, const Dim& b, const std::string& what) {
  const std::string message = cat(c.op.name, ": ", what, " (operands: ", operands_text(c), ")");
  if (prove_less(b, a) == true) throw UserError(message);
  c.graph.require_equal(max(a, b), b, message);
}

std::vector<Type> infer_equal(const Call& c, std::size_t operands, Accept accept) {
  expect_operands(c, operands);
  expect_same_dtype(c, 0, operands);
  expect_dtype(c, 0, accept);
  std::vector<Type> out;
  out.emplace_back(c.type(0).dtype, equal_shapes(c, 0, operands));
  return out;
}

std::int64_t integer_attr(const Call& c, AttrName name, std::int64_t least) {
  std::int64_t n = attr<std::int64_t>(c, name);
  if (n < least)
    throw UserError(c.op.name, ": attribute '", name.text(), "' is ", n, ", expected at least ",
                    least);
  return n;
}

int axis_attr(const Call& c, AttrName name, int rank) {
  std::int64_t axis = attr<std::int64_t>(c, name);
  if (rank == 0)
    throw UserError(c.op.name, ": attribute '", name.text(), "' is ", axis,
                    ", but a scalar has no axes (operands: ", operands_text(c), ")");
  if (axis < 0 || axis >= rank)
    throw UserError(c.op.name, ": attribute '", name.text(), "' is ", axis,
                    ", expected an axis from 0 to ", rank - 1, " of (", operands_text(c),
                    "); make negative axes positive first");
  return static_cast<int>(axis);
}

Axes axes_attr(const Call& c, AttrName name, int rank) {
  const Dims& list = attr<Dims>(c, name);
  Axes axes;
  for (const Dim& d : list) {
    std::optional<std::int64_t> axis = d.as_number();
    if (!axis || *axis < 0 || *axis >= rank || (!axes.empty() && *axis <= axes.back()))
      throw UserError(c.op.name, ": attribute '", name.text(), "' is ", Shape(list),
                      rank == 0 ? ", but a scalar has no axes (operands: "
                                : cat(", expected ascending axes from 0 to ", rank - 1, " of ("),
                      operands_text(c), ")");
    axes.push_back(static_cast<int>(*axis));
  }
  return axes;
}

const Dims& sizes_attr(const Call& c, AttrName name, std::size_t n, std::int64_t least) {
  const Dims& list = attr<Dims>(c, name);
  if (list.size() != n)
    throw UserError(c.op.name, ": attribute '", name.text(), "' is ", Shape(list), ", expected ", n,
                    n == 1 ? " entry for (" : " entries for (", operands_text(c), ")");
  for (const Dim& d : list)
    expect_at_most(c, least, d, "attribute '", name.text(), "' contains ", d,
                   ", expected at least ", least);
  return list;
}

std::vector<std::int64_t> numbers_attr(const Call& c, AttrName name, std::size_t n,
                                       std::int64_t least) {
  std::vector<std::int64_t> out;
  for (const Dim& d : sizes_attr(c, name, n, least)) {
    if (!d.is_number())
      throw UserError(c.op.name, ": attribute '", name.text(), "' contains ", d,
                      ", expected numbers");
    out.push_back(d.number());
  }
  return out;
}

std::string_view word_attr(const Call& c, AttrName name,
                           std::initializer_list<std::string_view> words) {
  std::string_view word = attr<std::string>(c, name);
  std::string all;
  for (std::string_view w : words) {
    if (w == word) return word;
    all += cat(all.empty() ? "" : ", ", w);
  }
  throw UserError(c.op.name, ": attribute '", name.text(), "' is '", word, "', expected one of ",
                  all);
}

Dim window_positions(const Call& c, const Dim& size, const Dim& pads, std::int64_t window,
                     std::int64_t stride, std::int64_t dilation, int axis) {
  Dim extent = Dim(window - 1) * Dim(dilation) + Dim(1), padded = size + pads;
  if (extent == Dim(1) && stride == 1) return padded;
  // A window one larger than the axis has no position; anything larger is an error.
  expect_at_most(c, extent, padded + Dim(1), "the window at axis ", axis, " covers ", extent,
                 " elements, but the padded input has ", padded);
  return floor_div(padded - extent, stride) + Dim(1);
}

}  // namespace hone
