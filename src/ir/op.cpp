#include "ir/op.h"

#include <cmath>
#include <cstring>

#include "base/checked.h"

namespace hone {

Wide::Wide(DType t, std::vector<std::int64_t> d) : dtype(t), dims(std::move(d)) {
  const std::size_t n = static_cast<std::size_t>(count());
  try {
    if (is_real())
      reals.resize(n);
    else
      integers.resize(n);
  } catch (const std::exception&) {  // bad_alloc, or length_error
    throw OutOfMemory("out of memory: the reference needs 8 bytes for each element of ",
                      Type(dtype, Shape(dims_of(dims))),
                      "; use smaller sizes, or leave the reference out");
  }
}

std::int64_t Wide::count() const {
  std::int64_t n = 1;
  for (std::int64_t d : dims) n = checked_mul(n, d);
  return n;
}

Wide widen(const Array& a) {
  if (a.dtype() == DType::f32) {
    Wide w(a.dtype(), a.dims());
    const std::byte* from = a.bytes().data();  // may come from a file: unaligned
    for (std::size_t i = 0; i < w.reals.size(); ++i) {
      float x;
      std::memcpy(&x, from + i * sizeof x, sizeof x);
      w.reals[i] = x;
    }
    return w;
  }
  Wide w(a.dtype(), a.dims());
  std::int64_t n = a.count();
  if (w.is_real())
    for (std::int64_t i = 0; i < n; ++i) w.reals[static_cast<std::size_t>(i)] = a.real(i);
  else
    for (std::int64_t i = 0; i < n; ++i) w.integers[static_cast<std::size_t>(i)] = a.integer(i);
  return w;
}

Array narrow(const Wide& w) {
  Array a = Array::zeros(w.dtype, w.dims);
  std::int64_t n = w.count();
  if (w.is_real())
    for (std::int64_t i = 0; i < n; ++i) a.set_real(i, w.reals[static_cast<std::size_t>(i)]);
  else
    for (std::int64_t i = 0; i < n; ++i) a.set_integer(i, w.integers[static_cast<std::size_t>(i)]);
  return a;
}

void round_to_dtype(Wide& w) {
  switch (w.dtype) {
    case DType::f64:
      return;
    case DType::f32:
      for (double& x : w.reals) x = static_cast<float>(x);
      return;
    case DType::f16:
      for (double& x : w.reals) x = f16_to_f32(f64_to_f16(x));
      return;
    case DType::bf16:
      for (double& x : w.reals) x = bf16_to_f32(f64_to_bf16(x));
      return;
    default: {
      if (w.is_real()) {
        for (double& x : w.reals) x = small_to_f64(w.dtype, f64_to_small(w.dtype, x));
        return;
      }
      Array a = narrow(w);
      for (std::int64_t i = 0; i < w.count(); ++i)
        w.integers[static_cast<std::size_t>(i)] = a.integer(i);
    }
  }
}

std::vector<std::int64_t> Evaluation::result_dims(std::size_t i) const {
  return sizes(result_types[i].shape.dims);
}

std::vector<std::int64_t> Evaluation::sizes(const Dims& dims) const {
  std::vector<std::int64_t> out;
  out.reserve(dims.size());
  for (const Dim& d : dims) out.push_back(size(d));
  return out;
}

Value apply(const Op& op, std::span<const Value> operands, Attrs attrs, std::source_location at) {
  if (operands.empty())
    throw UserError(op.name, ": got no operands, expected at least one (", at.file_name(), ":",
                    at.line(), ")");
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i])
      throw UserError(op.name, ": operand ", i,
                      " is empty; give an input, a weight or the result of an operation (",
                      at.file_name(), ":", at.line(), ")");
    if (&operands[i].graph() != &operands[0].graph())
      throw UserError(op.name, ": operands 0 and ", i,
                      " belong to different functions; build each function with one Builder (",
                      at.file_name(), ":", at.line(), ")");
  }
  Graph& graph = operands[0].graph();
  if (!graph.records_source()) return graph.intern(op, operands, std::move(attrs));
  Origin origin{at.line(), at.file_name(), ""};
  OriginScope scope(graph, origin);
  try {
    return graph.intern(op, operands, std::move(attrs));
  } catch (const UserError& e) {
    throw UserError(e.what(), " (", origin, ")");
  }
}

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

Value constant(Graph& graph, const Array& a) {
  return graph.intern(ops::constant, {}, {{"value", a}});
}

Value scalar(Graph& graph, double x, DType dtype) {
  return constant(graph, Array::scalar(x, dtype));
}

Value dims_value(Graph& graph, const Dims& contents, DType dtype, std::vector<std::int64_t> shape) {
  bool numbers = true;
  for (const Dim& d : contents) numbers = numbers && d.is_number();
  if (numbers) {
    Array a = Array::zeros(dtype, std::move(shape));
    for (std::size_t i = 0; i < contents.size(); ++i)
      a.set_integer(static_cast<std::int64_t>(i), contents[i].number());
    return constant(graph, a);
  }
  return graph.intern(ops::dims, {},
                      {{"dims", contents}, {"dtype", dtype}, {"shape", dims_of(shape)}});
}

std::optional<Dims> contents_of(Value v) {
  constexpr std::int64_t most = 64;
  if (v.is(ops::dims)) return v.attrs().dims("dims");
  if (!v.is(ops::constant) || is_float(v.dtype())) return std::nullopt;
  const Array& a = v.attrs().get<Array>("value");
  if (a.count() > most) return std::nullopt;
  Dims out;
  for (std::int64_t i = 0; i < a.count(); ++i) out.push_back(a.integer(i));
  return out;
}

}  // namespace hone
