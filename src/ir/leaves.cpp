// The operations without operands: what a node begins with.
#include "ir/graph.h"

namespace hone {

namespace {

// Leaves are also built from text, which may contain anything.
template <class T>
const T& leaf_attr(const Call& c, AttrName name) {
  if (!c.operands.empty())
    throw UserError(c.op.name, ": takes no operands, got ", c.operands.size());
  const Attr* a = c.attrs.find(name);
  if (!a || !std::holds_alternative<T>(*a))
    throw UserError(c.op.name, ": attribute '", name.text(), "' is ",
                    a ? "of the wrong kind" : "missing");
  return std::get<T>(*a);
}

std::vector<Type> infer_constant(const Call& c) { return {leaf_attr<Array>(c, "value").type()}; }

std::vector<Type> infer_dims(const Call& c) {
  const Type t(leaf_attr<DType>(c, "dtype"), Shape(leaf_attr<Dims>(c, "shape")));
  const std::size_t sizes = leaf_attr<Dims>(c, "dims").size();
  if (is_float(t.dtype) || t.shape.count() != Dim(static_cast<std::int64_t>(sizes)))
    throw UserError("dims: the type is ", t, ", expected integers with ", sizes, " elements");
  return {t};
}

Samples no_samples() { return {}; }

}  // namespace

constinit const Op ops::param = {
    .name = "param",
    .doc = "A value given at run time, by position.",
    .kind = OpKind::leaf,
    .cost = 0,
    .ulps = 0,
    .samples = no_samples,
};

constinit const Op ops::constant = {
    .name = "constant",
    .doc = "A tensor known before the run.",
    .kind = OpKind::leaf,
    .infer = infer_constant,
    .eval = [](const Evaluation& e) -> std::vector<Wide> {
      std::vector<Wide> out;  // a braced list would copy it
      out.push_back(widen(e.attrs.get<Array>("value")));
      return out;
    },
    .cost = 0,
    .ulps = 0,
    .samples = no_samples,
};

constinit const Op ops::dims = {
    .name = "dims",
    .doc = "An integer or bool tensor whose elements are sizes, known once shapes are.",
    .kind = OpKind::leaf,
    .infer = infer_dims,
    .eval = [](const Evaluation& e) -> std::vector<Wide> {
      Wide w(e.attrs.get<DType>("dtype"), e.result_dims());
      w.integers = e.sizes(e.attrs.dims("dims"));
      return {w};
    },
    .cost = 0,
    .ulps = 0,
    .samples = no_samples,
};

}  // namespace hone
