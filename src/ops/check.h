// Checks shared by type rules: operand counts, dtypes, equal shapes, attributes. Each function
// throws UserError naming the operation and the values met. Not for the evaluation of operations.
#pragma once

#include <string_view>

#include "ir/graph.h"
#include "ops/common.h"

namespace hone {

// None includes the coded dtypes: these can be moved, selected and cast, and strings compared.
enum class Accept : std::uint8_t {
  any,
  numeric,  // all but bool
  real,     // float dtypes
  integer,  // signed and unsigned
  bits,     // bool and integers
  boolean,
};

void expect_operands(const Call&, std::size_t least, std::size_t most);
inline void expect_operands(const Call& c, std::size_t n) { expect_operands(c, n, n); }
void expect_dtype(const Call&, std::size_t operand, Accept);
// Operands [first, last) have one dtype.
void expect_same_dtype(const Call&, std::size_t first, std::size_t last);
void expect_rank(const Call&, std::size_t operand, int rank);

// The shape of operands [first, last), which must be equal; sizes that are not provably equal are
// recorded as a check. The result prefers numbers to symbols.
Shape equal_shapes(const Call&, std::size_t first, std::size_t last);
// a must equal b, or a check is recorded; the parts of `where` describe the sizes.
Dim settle_equal(const Call&, const Dim& a, const Dim& b, const std::string& where);
template <class... Parts>
Dim equal_sizes(const Call& c, const Dim& a, const Dim& b, const Parts&... where) {
  return a == b ? a : settle_equal(c, a, b, cat(where...));
}
// a <= b must hold, or a check is recorded; the parts of `what` are its message.
void settle_at_most(const Call&, const Dim& a, const Dim& b, const std::string& what);
template <class... Parts>
void expect_at_most(const Call& c, const Dim& a, const Dim& b, const Parts&... what) {
  if (prove_less(b, a) != false) settle_at_most(c, a, b, cat(what...));
}

// All operands have one shape and one accepted dtype; the result has them too.
std::vector<Type> infer_equal(const Call&, std::size_t operands, Accept);

template <class T>
const T& attr(const Call& c, AttrName name) {
  const Attr* a = c.attrs.find(name);
  if (!a || !std::holds_alternative<T>(*a))
    throw UserError(c.op.name, ": attribute '", name.text(), "' is ",
                    a ? "of the wrong kind" : "missing", "; see the page of the operation");
  return std::get<T>(*a);
}
std::int64_t integer_attr(const Call&, AttrName, std::int64_t least);
// In [0, rank): normal_axis makes negative axes positive beforehand, so that equal nodes merge.
int axis_attr(const Call&, AttrName, int rank);
// Ascending and distinct.
Axes axes_attr(const Call&, AttrName, int rank);
// A list of n sizes, one per axis, none of them below `least`.
const Dims& sizes_attr(const Call&, AttrName, std::size_t n, std::int64_t least);
// The same, for numbers only.
std::vector<std::int64_t> numbers_attr(const Call&, AttrName, std::size_t n, std::int64_t least);
// A string that must be one of the given words.
std::string_view word_attr(const Call&, AttrName, std::initializer_list<std::string_view>);

// Window positions along one axis; records or rejects a window larger than the padded axis.
Dim window_positions(const Call&, const Dim& size, const Dim& pads, std::int64_t window,
                     std::int64_t stride, std::int64_t dilation, int axis);

// The result shape of attributes window, strides, dilations, pads_low, pads_high over all axes.
Shape windowed_shape(const Call&);
// The result dtype of dot and conv: that of the operands, or attribute dtype where allowed.
DType contraction_dtype(const Call&);

}  // namespace hone
