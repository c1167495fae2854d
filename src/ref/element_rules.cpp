// How one result element of each core op depends on operand elements.
#include <algorithm>
#include <cmath>

#include "ops/contraction.h"
#include "ops/indices.h"
#include "ops/window.h"
#include "ref/evaluate.h"
#include "ref/frame.h"

namespace hone {

namespace {

SmallOperands small_operands(Reader& r, std::vector<Wide> operands) {
  SmallOperands s;
  s.operands = std::move(operands);
  for (const Wide& w : s.operands) s.inputs.push_back(&w);
  for (std::size_t i = 0; i < r.frame.graph().result_count(r.node); ++i)
    s.types.emplace_back(r.type(i).dtype, Shape(dims_of(s.operands.at(0).dims)));
  return s;
}

// Evaluates the op on small operands; for ops whose structure is only single elements or one line
// of them.
Wide evaluate_small(Reader& r, const SmallOperands& s, const Attrs& attrs, std::uint32_t result) {
  const std::function<std::int64_t(const Dim&)> size = [&](const Dim& d) {
    return size_of(d, r.frame.sizing);
  };
  const std::function<std::vector<Wide>(const Function&, std::vector<Wide>)> call;
  return std::move(r.op().eval({attrs, s.inputs, s.types, size, call}).at(result));
}

void put(Wide& w, std::size_t i, Element e) {
  if (w.is_real())
    w.reals[i] = e.real;
  else
    w.integers[i] = e.integer;
}

Element taken(const Wide& w, std::size_t i) {
  return w.is_real() ? Element{w.reals[i], 0} : Element{0, w.integers[i]};
}

Element same_place(Reader& r, std::uint32_t, std::int64_t flat) { return r.operand(0, flat); }

Element iota(Reader& r, std::uint32_t, std::int64_t flat) {
  std::int64_t n =
      index_of(flat, r.result_dims())[static_cast<std::size_t>(r.attrs().integer("axis"))];
  return {static_cast<double>(n), wrap(r.type().dtype, n)};
}

// Movement: the operand index of a result index.
template <class F>
Element moved(Reader& r, std::int64_t flat, F source) {
  const Sizes &from = r.input_dims(0), index = index_of(flat, r.result_dims());
  return r.operand(0, flat_of(source(index, from), from));
}

Element transpose(Reader& r, std::uint32_t, std::int64_t flat) {
  return moved(r, flat, [&](const Sizes& index, const Sizes& from) {
    Sizes source(from.size());
    std::vector<std::int64_t> perm = r.attrs().integers("perm");
    for (std::size_t i = 0; i < perm.size(); ++i)
      source[static_cast<std::size_t>(perm[i])] = index[i];
    return source;
  });
}

Element broadcast(Reader& r, std::uint32_t, std::int64_t flat) {
  return moved(r, flat, [&](const Sizes& index, const Sizes& from) {
    Sizes source(index.end() - static_cast<std::ptrdiff_t>(from.size()), index.end());
    for (std::size_t i = 0; i < from.size(); ++i)
      if (from[i] == 1) source[i] = 0;
    return source;
  });
}

Element slice(Reader& r, std::uint32_t, std::int64_t flat) {
  return moved(r, flat, [&](const Sizes& index, const Sizes&) {
    Sizes starts = r.frame.sizes(r.attrs().dims("starts")), source = index;
    std::vector<std::int64_t> steps = r.attrs().integers("steps");
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = starts[i] + index[i] * steps[i];
    return source;
  });
}

Element reverse(Reader& r, std::uint32_t, std::int64_t flat) {
  return moved(r, flat, [&](const Sizes& index, const Sizes& from) {
    Sizes source = index;
    for (std::int64_t a : r.attrs().integers("axes")) {
      auto k = static_cast<std::size_t>(a);
      source[k] = from[k] - 1 - index[k];
    }
    return source;
  });
}

Element pad(Reader& r, std::uint32_t, std::int64_t flat) {
  Sizes from = r.input_dims(0), index = index_of(flat, r.result_dims()),
        low = r.frame.sizes(r.attrs().dims("low"));
  for (std::size_t i = 0; i < index.size(); ++i) {
    index[i] -= low[i];
    if (index[i] < 0 || index[i] >= from[i]) return r.operand(1, 0);
  }
  return r.operand(0, flat_of(index, from));
}

Element concat(Reader& r, std::uint32_t, std::int64_t flat) {
  auto axis = static_cast<std::size_t>(r.attrs().integer("axis"));
  Sizes index = index_of(flat, r.result_dims());
  for (std::size_t i = 0;; ++i) {
    Sizes from = r.input_dims(i);
    if (index[axis] < from[axis]) return r.operand(i, flat_of(index, from));
    index[axis] -= from[axis];
  }
}

// Operand 1 at `k`, as an index into an axis.
std::int64_t from_front(Reader& r, std::int64_t k, std::int64_t size) {
  const std::int64_t n = index_number(r.input(1).dtype(), r.operand(1, k).integer);
  return n < 0 ? n + size : n;
}

Element gather(Reader& r, std::uint32_t, std::int64_t flat) {
  auto axis = r.attrs().integer("axis");
  Sizes x = r.input_dims(0), indices = r.input_dims(1), index = index_of(flat, r.result_dims());
  auto first = index.begin() + axis, last = first + static_cast<std::ptrdiff_t>(indices.size());
  std::int64_t size = x[static_cast<std::size_t>(axis)];
  std::int64_t at = from_front(r, flat_of(Sizes(first, last), indices), size);
  Sizes source(index.begin(), first);
  source.push_back(std::clamp<std::int64_t>(at, 0, size - 1));
  source.insert(source.end(), last, index.end());
  return r.complete() ? r.operand(0, flat_of(source, x)) : Element();
}

// Starts of a dynamic part of the given sizes, clamped so that the part is inside.
Sizes clamped_starts(Reader& r, std::size_t operand, const Sizes& x, const Sizes& part) {
  Sizes starts(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    starts[i] = std::clamp<std::int64_t>(
        index_number(r.input(operand).dtype(),
                     r.operand(operand, static_cast<std::int64_t>(i)).integer),
        0, x[i] - part[i]);
  return starts;
}

Element dynamic_slice(Reader& r, std::uint32_t, std::int64_t flat) {
  Sizes x = r.input_dims(0), dims = r.result_dims(), index = index_of(flat, dims),
        starts = clamped_starts(r, 1, x, dims);
  for (std::size_t i = 0; i < index.size(); ++i) index[i] += starts[i];
  return r.complete() ? r.operand(0, flat_of(index, x)) : Element();
}

Element dynamic_update(Reader& r, std::uint32_t, std::int64_t flat) {
  Sizes x = r.input_dims(0), part = r.input_dims(1), index = index_of(flat, x),
        starts = clamped_starts(r, 2, x, part);
  if (!r.complete()) return {};
  for (std::size_t i = 0; i < index.size(); ++i) {
    index[i] -= starts[i];
    if (index[i] < 0 || index[i] >= part[i]) return r.operand(0, flat);
  }
  return r.operand(1, flat_of(index, part));
}

Element joined(Join how, DType t, Element a, Element b) {
  return is_float(t) ? Element{join(how, a.real, b.real), 0}
                     : Element{0, join(how, t, a.integer, b.integer)};
}

Element scatter(Reader& r, std::uint32_t, std::int64_t flat) {
  AxisSplit s = split_at(r.input_dims(0), static_cast<int>(r.attrs().integer("axis")));
  Join how = join_of(r.attrs().get<std::string>("kind"));
  std::int64_t count = count_of(r.input_dims(1)), outer = flat / (s.size * s.inner),
               place = flat / s.inner % s.size;
  Element y = r.operand(0, flat);
  for (std::int64_t k = 0; k < count; ++k)
    if (from_front(r, k, s.size) == place)
      y = joined(how, r.type().dtype, y,
                 r.operand(2, (outer * count + k) * s.inner + flat % s.inner));
  return y;
}

Element start_of(Join how, DType t) {
  return is_float(t) ? Element{real_start(how), 0} : Element{0, integer_start(how, t)};
}

// The flat operand positions of an index space, in row-major order.
template <class F>
void each_index(const Sizes& dims, F f) {
  Sizes index(dims.size(), 0);
  for (std::int64_t n = count_of(dims); n > 0; --n) {
    f(index);
    for (std::size_t k = dims.size(); k-- > 0;) {
      if (++index[k] < dims[k]) break;
      index[k] = 0;
    }
  }
}

Element reduce(Reader& r, Join how, std::int64_t flat) {
  Sizes x = r.input_dims(0), place = index_of(flat, r.result_dims()), base(x.size(), 0), sizes;
  Axes axes = axes_of(r.attrs(), "axes");
  for (std::size_t i = 0, next = 0; i < x.size(); ++i)
    if (std::find(axes.begin(), axes.end(), static_cast<int>(i)) == axes.end())
      base[i] = place[next++];
    else
      sizes.push_back(x[i]);
  Element y = start_of(how, r.type().dtype);
  const bool rounds = r.rounds_sums(r.type().dtype);
  each_index(sizes, [&](const Sizes& index) {
    for (std::size_t i = 0; i < axes.size(); ++i)
      base[static_cast<std::size_t>(axes[i])] = index[i];
    y = joined(how, r.type().dtype, y, r.operand(0, flat_of(base, x)));
    if (rounds) y.real = static_cast<float>(y.real);
  });
  return y;
}

template <Join how>
Element reduce_by(Reader& r, std::uint32_t, std::int64_t flat) {
  return reduce(r, how, flat);
}

// The input position for window position `w` of output position `o`, or empty in the padding.
std::optional<std::int64_t> under(std::int64_t o, std::int64_t w, std::int64_t stride,
                                  std::int64_t dilation, std::int64_t low, std::int64_t size) {
  std::int64_t i = o * stride + w * dilation - low;
  return i < 0 || i >= size ? std::nullopt : std::optional(i);
}

Element reduce_window(Reader& r, std::uint32_t, std::int64_t flat) {
  Sizes x = r.input_dims(0), place = index_of(flat, r.result_dims()),
        low = r.frame.sizes(r.attrs().dims("pads_low"));
  std::vector<std::int64_t> window = r.attrs().integers("window"),
                            strides = r.attrs().integers("strides"),
                            dilations = r.attrs().integers("dilations");
  Join how = join_of(r.attrs().get<std::string>("kind"));
  Element y = start_of(how, r.type().dtype);
  Sizes source(x.size());
  each_index(window, [&](const Sizes& w) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      auto at = under(place[i], w[i], strides[i], dilations[i], low[i], x[i]);
      if (!at) return;
      source[i] = *at;
    }
    y = joined(how, r.type().dtype, y, r.operand(0, flat_of(source, x)));
  });
  return y;
}

// Sums products.
struct Sum {
  bool rounds = false;  // to f32 after every term
  Element total = {};
  void add(Element a, Element b) {
    total.real += a.real * b.real;
    if (rounds) total.real = static_cast<float>(total.real);
    total.integer = static_cast<std::int64_t>(static_cast<std::uint64_t>(total.integer) +
                                              static_cast<std::uint64_t>(a.integer) *
                                                  static_cast<std::uint64_t>(b.integer));
  }
  Element result(DType t) const { return {total.real, wrap(t, total.integer)}; }
};

// An operand whose elements are read often: reads directly from an array that the function is
// given, also with permuted axes, without recording each element.
struct Source {
  Source(Reader& r, std::size_t i) : reader(r), operand(i), leaf(r.leaf(i)) {
    const Value v = r.input(i);
    strides = row_major(r.frame.dims(v));
    if (leaf || !v.is(ops::transpose)) return;
    leaf = r.frame.leaves[v.operand(0).node()];
    if (!leaf) return;
    const Sizes of_leaf = row_major(leaf->dims());
    const std::vector<std::int64_t> perm = v.attrs().integers("perm");
    for (std::size_t k = 0; k < perm.size(); ++k)
      strides[k] = of_leaf[static_cast<std::size_t>(perm[k])];
  }

  Element at(std::int64_t place) const {
    if (!leaf) return reader.operand(operand, place);
    ++reader.reads;
    return element_of(*leaf, place);
  }

  Reader& reader;
  std::size_t operand;
  const Array* leaf;
  Sizes strides;  // by axis, in flat positions
};

// Strides of the given axes.
Sizes strides_of(const Sizes& strides, const Axes& axes) {
  Sizes out;
  for (int k : axes) out.push_back(strides[static_cast<std::size_t>(k)]);
  return out;
}

Element dot(Reader& r, std::uint32_t, std::int64_t flat) {
  const Source x{r, 0}, y{r, 1};
  const Sizes &a = r.input_dims(0), &b = r.input_dims(1), &sa = x.strides, &sb = y.strides;
  const Sizes place = index_of(flat, r.result_dims());
  const DotAxes axes = dot_axes(r.attrs(), static_cast<int>(a.size()), static_cast<int>(b.size()));
  std::int64_t first_a = 0, first_b = 0;
  std::size_t next = 0;
  auto at = [](const Sizes& s, int k) { return s[static_cast<std::size_t>(k)]; };
  for (std::size_t i = 0; i < axes.batch_a.size(); ++i, ++next) {
    first_a += place[next] * at(sa, axes.batch_a[i]);
    first_b += place[next] * at(sb, axes.batch_b[i]);
  }
  for (int k : axes.free_a) first_a += place[next++] * at(sa, k);
  for (int k : axes.free_b) first_b += place[next++] * at(sb, k);
  Sizes sizes;
  for (int k : axes.contract_a) sizes.push_back(at(a, k));
  const Sizes step_a = strides_of(sa, axes.contract_a), step_b = strides_of(sb, axes.contract_b);
  Sum sum{r.rounds_sums(r.type().dtype)};
  each_index(sizes, [&](const Sizes& index) {
    std::int64_t p = first_a, q = first_b;
    for (std::size_t i = 0; i < index.size(); ++i) {
      p += index[i] * step_a[i];
      q += index[i] * step_b[i];
    }
    sum.add(x.at(p), y.at(q));
  });
  return sum.result(r.type().dtype);
}

Element conv(Reader& r, std::uint32_t, std::int64_t flat) {
  const Source input{r, 0}, weight{r, 1};
  const Sizes &x = r.input_dims(0), &w = r.input_dims(1), &sx = input.strides, &sw = weight.strides;
  const Sizes place = index_of(flat, r.result_dims()),
              low = r.frame.sizes(r.attrs().dims("pads_low"));
  const ConvAxes axes = conv_axes(r.attrs(), static_cast<int>(x.size()));
  const std::vector<std::int64_t> strides = r.attrs().integers("strides"),
                                  dilations = r.attrs().integers("dilations");
  auto at = [](const Sizes& s, int k) { return s[static_cast<std::size_t>(k)]; };
  const std::int64_t out = at(place, axes.channel),
                     per_group = at(w, axes.out) / r.attrs().integer("groups"),
                     channels = at(w, axes.in),
                     first_x = at(place, axes.batch) * at(sx, axes.batch) +
                               out / per_group * channels * at(sx, axes.channel),
                     first_w = out * at(sw, axes.out);
  Sizes window = {channels};
  for (int k : axes.weight_space) window.push_back(at(w, k));
  Sum sum{r.rounds_sums(r.type().dtype)};
  each_index(window, [&](const Sizes& index) {
    std::int64_t p = first_x + index[0] * at(sx, axes.channel),
                 q = first_w + index[0] * at(sw, axes.in);
    for (std::size_t i = 0; i < axes.space.size(); ++i) {
      auto source = under(at(place, axes.space[i]), index[i + 1], strides[i], dilations[i], low[i],
                          at(x, axes.space[i]));
      if (!source) return;
      p += *source * at(sx, axes.space[i]);
      q += index[i + 1] * at(sw, axes.weight_space[i]);
    }
    sum.add(input.at(p), weight.at(q));
  });
  return sum.result(r.type().dtype);
}

// Ops that work on one line along attribute axis: evaluates the op on that line.
Element on_line(Reader& r, std::int64_t line, std::int64_t place, std::uint32_t result) {
  AxisSplit s = split_at(r.input_dims(0), static_cast<int>(r.attrs().integer("axis")));
  Wide x(r.input(0).dtype(), {s.size});
  for (std::int64_t k = 0; k < s.size; ++k)
    put(x, static_cast<std::size_t>(k),
        r.operand(0, (line / s.inner * s.size + k) * s.inner + line % s.inner));
  if (!r.complete()) return {};
  Attrs attrs = r.attrs();
  attrs.set("axis", 0);
  return taken(evaluate_small(r, small_operands(r, {x}), attrs, result),
               static_cast<std::size_t>(place));
}

Element along_line(Reader& r, std::uint32_t result, std::int64_t flat) {
  AxisSplit s = split_at(r.result_dims(result), static_cast<int>(r.attrs().integer("axis")));
  std::int64_t line = flat / (s.size * s.inner) * s.inner + flat % s.inner;
  return on_line(r, line, flat / s.inner % s.size, result);
}

Element of_line(Reader& r, std::uint32_t result, std::int64_t flat) {
  return on_line(r, flat, 0, result);
}

}  // namespace

ElementRule element_rule(const Op& op) {
  static const std::unordered_map<const Op*, ElementRule> rules = {
      {&ops::iota, iota},
      {&ops::reshape, same_place},
      {&ops::replay, same_place},
      {&ops::transpose, transpose},
      {&ops::broadcast, broadcast},
      {&ops::slice, slice},
      {&ops::reverse, reverse},
      {&ops::pad, pad},
      {&ops::concat, concat},
      {&ops::gather, gather},
      {&ops::dynamic_slice, dynamic_slice},
      {&ops::dynamic_update, dynamic_update},
      {&ops::scatter, scatter},
      {&ops::reduce_sum, reduce_by<Join::sum>},
      {&ops::reduce_prod, reduce_by<Join::product>},
      {&ops::reduce_max, reduce_by<Join::maximum>},
      {&ops::reduce_min, reduce_by<Join::minimum>},
      {&ops::reduce_and, reduce_by<Join::minimum>},
      {&ops::reduce_or, reduce_by<Join::maximum>},
      {&ops::reduce_window, reduce_window},
      {&ops::argmax, of_line},
      {&ops::argmin, of_line},
      {&ops::cumulative, along_line},
      {&ops::sort, along_line},
      {&ops::dot, dot},
      {&ops::conv, conv},
  };
  if (auto it = rules.find(&op); it != rules.end()) return it->second;
  return nullptr;
}

std::vector<Element> elementwise(Reader& r, std::uint32_t result,
                                 std::span<const std::int64_t> flat) {
  const Sizes dims = {static_cast<std::int64_t>(flat.size())};
  SmallOperands& s = r.frame.small[r.node];
  if (s.operands.empty() || s.operands[0].dims != dims) {
    std::vector<Wide> made;
    for (std::size_t i = 0; i < r.input_count(); ++i) made.emplace_back(r.input(i).dtype(), dims);
    s = small_operands(r, std::move(made));
  }
  for (std::size_t i = 0; i < s.operands.size(); ++i)
    for (std::size_t k = 0; k < flat.size(); ++k) put(s.operands[i], k, r.operand(i, flat[k]));
  std::vector<Element> out(flat.size());
  if (!r.complete()) return out;
  const Wide y = evaluate_small(r, s, r.attrs(), result);
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = taken(y, k);
  return out;
}

}  // namespace hone
