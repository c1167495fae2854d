// Exports what slides windows over an input, and contractions. Windows over integers, and those
// that ONNX's operators do not take, are gathered and reduced.
#include <algorithm>
#include <limits>
#include <optional>

#include "export/onnx/dtypes.h"
#include "export/onnx/graph.h"
#include "ops/ops.h"

namespace hone::onnx {

namespace {

using Names = std::vector<std::string>;
using Integers = std::vector<std::int64_t>;

const std::string& operand(const ExportGraph& g, Value v, std::size_t i) {
  return g.name(v.operand(i));
}

// The attributes of a window over all axes of `dims`, some of which stand still.
struct Window {
  Dims dims, size, strides, dilations, low, high;

  bool is_still(std::size_t axis) const {
    return size[axis] == Dim(1) && strides[axis] == Dim(1) && low[axis] == Dim(0) &&
           high[axis] == Dim(0);
  }
  std::size_t still_axes() const {
    std::size_t n = 0;
    while (n < dims.size() && is_still(n)) ++n;
    return n;
  }
  // Batches and channels first, then at least one axis that windows slide over.
  bool slides_over_space() const { return dims.size() > 2 && still_axes() >= 2; }

  // As attributes from axis `first` on, which are numbers, with a number of the window in every
  // padded place: what ONNX's operators take.
  bool fits_attributes(std::size_t first) const {
    for (std::size_t i = first; i < dims.size(); ++i) {
      for (const Dims* d : {&size, &strides, &dilations, &low, &high})
        if (!(*d)[i].is_number()) return false;
      if (low[i].number() >= size[i].number() || high[i].number() >= size[i].number()) return false;
    }
    return true;
  }
};

Integers numbers_from(const Dims& dims, std::size_t first) {
  Integers out;
  for (std::size_t i = first; i < dims.size(); ++i) out.push_back(dims[i].number());
  return out;
}

std::vector<Message> attributes_of(const Window& w, std::size_t first) {
  Integers pads = numbers_from(w.low, first), high = numbers_from(w.high, first);
  pads.insert(pads.end(), high.begin(), high.end());
  return {attribute("strides", numbers_from(w.strides, first)),
          attribute("dilations", numbers_from(w.dilations, first)), attribute("pads", pads),
          attribute("kernel_shape", numbers_from(w.size, first))};
}

Window window_of(Value v) {
  const Attrs& a = v.attrs();
  return {v.operand(0).shape().dims, a.dims("window"),   a.dims("strides"),
          a.dims("dilations"),       a.dims("pads_low"), a.dims("pads_high")};
}

// ==== gathered windows

// Axis i of the input becomes two for each axis that windows slide over: places in the window, and
// windows. What lies in the pads is `fill`.
struct Gathered {
  std::string x;
  Dims dims;
  Integers window_axes;
};

std::string padded(ExportGraph& g, const std::string& x, const Window& w, const std::string& fill,
                   DType t) {
  Dims pads = w.low;
  pads.insert(pads.end(), w.high.begin(), w.high.end());
  if (std::ranges::all_of(pads, [](const Dim& d) { return d == Dim(0); })) return x;
  const std::string wide = in_dtype_for(g, "Pad", x, t), by = in_dtype_for(g, "Pad", fill, t);
  return back_from(g, "Pad", g.one("Pad", {wide, g.sizes(pads), by}), t);
}

// The places that window number j reads: j * stride + k * dilation, as [k, j].
std::string places(ExportGraph& g, const Window& w, std::size_t axis, const Dim& windows) {
  const auto line = [&](const Dim& count, const Dim& step) {
    const std::string all = g.range(count);
    return step == Dim(1) ? all : g.one("Mul", {all, g.scalar_size(step)});
  };
  const std::string in_window = g.reshape(line(w.size[axis], w.dilations[axis]), {w.size[axis], 1});
  return g.one("Add", {in_window, line(windows, w.strides[axis])});
}

Gathered gathered(ExportGraph& g, const std::string& x, const Window& w, const Dims& windows,
                  const std::string& fill, DType t) {
  Gathered out{padded(g, x, w, fill, t), {}, {}};
  for (std::size_t i = 0; i < w.dims.size(); ++i) {
    if (w.is_still(i)) {
      out.dims.push_back(w.dims[i]);
      continue;
    }
    const auto axis = static_cast<std::int64_t>(out.dims.size());
    out.x = g.one("Gather", {out.x, places(g, w, i, windows[i])}, {attribute("axis", axis)});
    out.window_axes.push_back(axis);
    out.dims.push_back(w.size[i]);
    out.dims.push_back(windows[i]);
  }
  return out;
}

// ==== reductions over windows

// What reducing nothing gives.
Array identity_of(std::string_view kind, DType t) {
  if (kind == "sum") return Array::scalar(0, t);
  const bool is_max = kind == "max";
  if (is_float(t)) {
    const double most = std::numeric_limits<double>::infinity();
    return Array::scalar(is_max ? -most : most, t);
  }
  const int bits = bit_size(t);
  const std::int64_t half = std::int64_t{1} << (bits - 1 > 62 ? 62 : bits - 1);
  const std::int64_t highest = bits == 64 ? std::numeric_limits<std::int64_t>::max() : half - 1;
  if (is_signed(t)) return Array::scalar_int(is_max ? -highest - 1 : highest, t);
  return Array::scalar_int(is_max ? 0 : -1, t);
}

std::string reduced(ExportGraph& g, Value v, const Window& w) {
  const std::string& kind = v.attrs().get<std::string>("kind");
  const DType t = v.dtype();
  const std::string_view op = kind == "sum"   ? "ReduceSum"
                              : kind == "max" ? "ReduceMax"
                                              : "ReduceMin";
  const Gathered all =
      gathered(g, operand(g, v, 0), w, v.shape().dims, g.constant(identity_of(kind, t)), t);
  return one_in_dtype(g, op, {all.x}, t, {g.integers(all.window_axes)},
                      {attribute("keepdims", std::int64_t{0})});
}

// MaxPool takes floats and bytes; the least of integers is the complement of the greatest
// complement.
bool is_pooled(DType t) { return is_float(t) || t == DType::i8 || t == DType::u8; }

std::string max_pool(ExportGraph& g, const std::string& x, const std::string& kind, DType t,
                     const std::vector<Message>& attributes) {
  if (kind == "max") return g.one("MaxPool", {x}, attributes);
  const std::string_view turned = is_float(t) ? "Neg" : "BitwiseNot";
  return g.one(turned, {g.one("MaxPool", {g.one(turned, {x})}, attributes)});
}

// A sum over windows is a convolution with ones.
std::string sum_pool(ExportGraph& g, const std::string& x, const Window& w, std::size_t first,
                     DType t, const std::vector<Message>& attributes) {
  Dims ones = {1, 1};
  ones.insert(ones.end(), w.size.begin() + static_cast<std::ptrdiff_t>(first), w.size.end());
  return g.one("Conv", {x, g.expand(g.constant(Array::scalar(1, t)), ones)}, attributes);
}

// Axes that windows do not slide over become the batch, and a channel comes behind it, unless the
// first two axes are these already.
Names write_window(ExportGraph& g, Value v) {
  const Window w = window_of(v);
  const std::string& kind = v.attrs().get<std::string>("kind");
  const DType t = v.dtype();
  const bool is_sum = kind == "sum", as_it_is = w.slides_over_space() && !is_sum;
  const std::size_t still = as_it_is ? 2 : w.still_axes();
  if (w.still_axes() == w.dims.size()) return {operand(g, v, 0)};
  constexpr std::size_t most_sliding = 3;  // of the operators' implementations
  if (!w.fits_attributes(still) || w.dims.size() - still > most_sliding ||
      (is_sum ? !is_float(t) : !is_pooled(t)))
    return {reduced(g, v, w)};
  g.state().need_opset(is_sum ? opset_for("Conv", t) : opset_for("MaxPool", t));
  std::string x = operand(g, v, 0);
  if (!as_it_is) {
    Dims dims = {product(std::span(w.dims).first(still)), 1};
    dims.insert(dims.end(), w.dims.begin() + static_cast<std::ptrdiff_t>(still), w.dims.end());
    x = g.reshape(x, dims);
  }
  const std::vector<Message> attributes = attributes_of(w, still);
  x = is_sum ? sum_pool(g, x, w, still, t, attributes) : max_pool(g, x, kind, t, attributes);
  return {as_it_is ? x : g.reshape(x, v.shape().dims)};
}

Names write_avg_pool(ExportGraph& g, Value v) {
  std::vector<Message> attributes = attributes_of(window_of(v), 2);
  attributes.push_back(attribute("count_include_pad", v.attrs().integer_or("include_pads", 0)));
  g.state().need_opset(opset_for("AveragePool", v.dtype()));
  return {g.one("AveragePool", {operand(g, v, 0)}, attributes)};
}

// ==== convolution

// Operands in the dtype that a contraction sums in, where it has one of its own.
Names wide_inputs(ExportGraph& g, Value v) {
  Names out;
  for (std::size_t i = 0; i < v.operand_count(); ++i) {
    const bool widens = v.attrs().has("dtype") && v.operand(i).dtype() != v.dtype();
    out.push_back(widens ? g.cast(operand(g, v, i), v.dtype()) : operand(g, v, i));
  }
  return out;
}

// A convolution with channels first.
struct Convolution {
  std::string x, w;
  Dims weights, result;
  Window window;  // over x
  std::int64_t groups = 1;
};

Window image_window(const Attrs& a, const Dims& x, const Dims& weights) {
  const auto after_channels = [&](Dims still, const Dims& more) {
    still.insert(still.end(), more.begin(), more.end());
    return still;
  };
  const Dims ones = {1, 1}, none = {0, 0};
  const std::size_t n = x.size() - 2;
  const auto given = [&](AttrName name, const Dim& otherwise) {
    return a.has(name) ? a.dims(name) : Dims(n, otherwise);
  };
  return {x,
          after_channels(ones, {weights.begin() + 2, weights.end()}),
          after_channels(ones, given("strides", 1)),
          after_channels(ones, given("dilations", 1)),
          after_channels(none, given("pads_low", 0)),
          after_channels(none, given("pads_high", 0))};
}

std::vector<Message> conv_attributes(const Convolution& c) {
  std::vector<Message> out = attributes_of(c.window, 2);
  out.push_back(attribute("group", c.groups));
  return out;
}

Dims permuted(const Dims& dims, const Integers& perm) {
  Dims out;
  for (std::int64_t axis : perm) out.push_back(dims[static_cast<std::size_t>(axis)]);
  return out;
}

// As products of matrices: windows [n, g, c k.., o..] by weights [g, m / g, c k..].
std::string convolution_by_products(ExportGraph& g, const Convolution& c, DType t) {
  const Gathered all = gathered(g, c.x, c.window, c.result, g.constant(Array::scalar(0, t)), t);
  Integers order = {0, 1}, windows;
  for (std::int64_t axis = 2; axis < static_cast<std::int64_t>(all.dims.size()); ++axis)
    (std::ranges::count(all.window_axes, axis) > 0 ? order : windows).push_back(axis);
  order.insert(order.end(), windows.begin(), windows.end());
  const std::string turned = g.one("Transpose", {all.x}, {attribute("perm", order)});
  const Dim groups = c.groups, terms = product(std::span(c.weights).subspan(1)),
            count = product(std::span(c.result).subspan(2));
  const std::string columns = g.reshape(turned, {c.result[0], groups, terms, count}),
                    rows = g.reshape(c.w, {groups, floor_div(c.weights[0], groups), terms});
  return g.reshape(one_in_dtype(g, "MatMul", {rows, columns}, t), c.result);
}

// An operand of ConvInteger: bytes, less a zero point that is the same everywhere, if there is one.
struct Bytes {
  Value x, zero;
};

Value without_copies(Value v) {
  while (v.is(ops::broadcast) || v.is(ops::reshape)) v = v.operand(0);
  return v;
}

std::optional<Bytes> bytes_of(Value v) {
  const auto is_bytes = [](const Value& x) {
    return x.is(ops::cast) && x.operand(0).dtype() == DType::u8;
  };
  if (v.dtype() == DType::u8) return Bytes{v, {}};
  if (v.dtype() != DType::i32) return std::nullopt;
  if (is_bytes(v)) return Bytes{v.operand(0), {}};
  if (!v.is(ops::sub) || !is_bytes(v.operand(0))) return std::nullopt;
  const Value zero = without_copies(v.operand(1));
  if (!is_bytes(zero) || zero.shape().count() != Dim(1)) return std::nullopt;
  return Bytes{v.operand(0).operand(0), zero.operand(0)};
}

bool has_number_pads(Value conv) {
  const AttrName names[] = {"pads_low", "pads_high"};
  return std::ranges::all_of(names, [&](AttrName name) {
    return !conv.attrs().has(name) || std::ranges::all_of(conv.attrs().dims(name), &Dim::is_number);
  });
}

// The operands as bytes, where ConvInteger computes the convolution.
std::vector<Bytes> bytes_of_conv(Value v) {
  if (v.dtype() != DType::i32 || !has_number_pads(v)) return {};
  const std::optional<Bytes> x = bytes_of(v.operand(0)), w = bytes_of(v.operand(1));
  return x && w ? std::vector<Bytes>{*x, *w} : std::vector<Bytes>();
}

Names write_conv(ExportGraph& g, Value v) {
  const bool is_last = v.attrs().integer_or("channels_last", 0) != 0;
  const DType t = v.dtype();
  Integers to_first = {0, v.rank() - 1}, to_last = {0}, weights = {v.rank() - 1, v.rank() - 2};
  for (std::int64_t i = 1; i + 1 < v.rank(); ++i) to_first.push_back(i);
  for (std::int64_t i = 0; i + 2 < v.rank(); ++i) weights.push_back(i);
  for (std::int64_t i = 2; i < v.rank(); ++i) to_last.push_back(i);
  to_last.push_back(1);
  const auto dims = [&](const Value& x, const Integers& perm) {
    return is_last ? permuted(x.shape().dims, perm) : x.shape().dims;
  };
  const auto turned = [&](const std::string& x, const Integers& perm) {
    return is_last ? g.one("Transpose", {x}, {attribute("perm", perm)}) : x;
  };
  Convolution c;
  c.weights = dims(v.operand(1), weights);
  c.result = dims(v, to_first);
  c.groups = v.attrs().integer_or("groups", 1);
  c.window = image_window(v.attrs(), dims(v.operand(0), to_first), c.weights);
  const auto take = [&](const std::string& x, const std::string& w) {
    c.x = turned(x, to_first);
    c.w = turned(w, weights);
  };
  if (const std::vector<Bytes> bytes = bytes_of_conv(v); !bytes.empty()) {
    take(g.name(bytes[0].x), g.name(bytes[1].x));
    Names operands = {c.x, c.w};
    for (const Bytes& b : bytes) operands.push_back(b.zero ? g.reshape(g.name(b.zero), {}) : "");
    while (operands.back().empty()) operands.pop_back();
    return {turned(g.one("ConvInteger", operands, conv_attributes(c)), to_last)};
  }
  const Names operands = wide_inputs(g, v);
  take(operands[0], operands[1]);
  if (!is_float(t) || !has_number_pads(v))
    return {turned(convolution_by_products(g, c, t), to_last)};
  g.state().need_opset(opset_for("Conv", t));
  return {turned(g.one("Conv", {c.x, c.w}, conv_attributes(c)), to_last)};
}

// ==== contraction

// One letter for each pair of axes, and for each axis that stands alone.
Names write_dot(ExportGraph& g, Value v) {
  const Value a = v.operand(0), b = v.operand(1);
  std::string of_a(static_cast<std::size_t>(a.rank()), ' '),
      of_b(static_cast<std::size_t>(b.rank()), ' '), result;
  char letter = 'a';
  if (a.rank() + b.rank() > 26) throw UserError("it has more axes than Einsum has letters");
  for (auto name : {AttrName("batch"), AttrName("contract")}) {
    const Integers pairs = v.attrs().integers(name);
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
      of_a[static_cast<std::size_t>(pairs[i])] = letter;
      of_b[static_cast<std::size_t>(pairs[i + 1])] = letter;
      if (name == AttrName("batch")) result += letter;
      ++letter;
    }
  }
  for (std::string* axes : {&of_a, &of_b})
    for (char& c : *axes)
      if (c == ' ') result += c = letter++;
  return {one_in_dtype(g, "Einsum", wide_inputs(g, v), v.dtype(), {},
                       {attribute("equation", cat(of_a, ",", of_b, "->", result))})};
}

Names write_matmul(ExportGraph& g, Value v) {
  return {one_in_dtype(g, "MatMul", wide_inputs(g, v), v.dtype())};
}

constexpr ExportEntry export_window_table[] = {
    {&ops::reduce_window, write_window},
    {&ops::avg_pool, write_avg_pool},
    {&ops::conv, write_conv},
    {&ops::dot, write_dot},
    {&ops::matmul, write_matmul},
};

}  // namespace

std::span<const ExportEntry> window_exports() { return export_window_table; }

std::vector<Value> written_operands(Value v) {
  std::vector<Value> out;
  if (v.is(ops::conv))
    for (const Bytes& b : bytes_of_conv(v)) {
      out.push_back(b.x);
      if (b.zero) out.push_back(b.zero);
    }
  return out.empty() ? v.operands() : out;
}

bool is_pooled_whole(Value v) {
  if (!v.is(ops::avg_pool)) return true;
  const Window w = window_of(v);
  return w.slides_over_space() && w.fits_attributes(2);
}

}  // namespace hone::onnx
