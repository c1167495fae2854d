// Operators that move elements or query sizes.
#include <algorithm>
#include <cmath>

#include "type/text.h"
#include "verify/onnx/call.h"

namespace hone::onnx {

namespace {

// A tensor whose element at an index is that of the operand at another.
template <class F>
std::vector<Numbers> moved(const Numbers& x, Sizes dims, F from) {
  Numbers out{x.dtype, std::move(dims), {}};
  const Sizes strides = strides_of(x.dims);
  for_index(out.dims, [&](const Sizes& index) {
    out.values.push_back(x.values.at(static_cast<std::size_t>(place(from(index), strides))));
  });
  return {out};
}

std::vector<Numbers> with_dims(const Numbers& x, Sizes dims) {
  return {{x.dtype, std::move(dims), x.values}};
}

std::vector<Numbers> integers(const Sizes& list) {
  return {{DType::i64, {static_cast<std::int64_t>(list.size())}, {list.begin(), list.end()}}};
}

std::vector<Numbers> transpose(Call& c) {
  const Numbers& x = c.in(0);
  Sizes perm(x.dims.size()), dims;
  for (std::size_t i = 0; i < perm.size(); ++i)
    perm[i] = static_cast<std::int64_t>(perm.size() - 1 - i);
  if (const auto given = c.integers("perm")) perm = *given;
  if (perm.size() != x.dims.size()) throw NotJudged();
  for (std::int64_t p : perm) dims.push_back(x.dims[c.axis(p, c.rank())]);
  return moved(x, dims, [&](const Sizes& index) {
    Sizes from(index.size());
    for (std::size_t i = 0; i < index.size(); ++i) from[c.axis(perm[i], c.rank())] = index[i];
    return from;
  });
}

std::vector<Numbers> reshape(Call& c) {
  const Numbers& x = c.in(0);
  const auto wanted = c.list("shape", 1);
  if (!wanted) throw NotJudged();
  const bool keeps_zero = c.integer("allowzero", 0) != 0;
  Sizes dims = *wanted;
  if (std::ranges::count(dims, -1) > 1) throw NotJudged();  // not a valid shape
  std::int64_t known = 1, open = -1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && !keeps_zero) dims[i] = x.dims.at(i);
    if (dims[i] == -1)
      open = static_cast<std::int64_t>(i);
    else
      known *= dims[i];
  }
  if (open >= 0 && known == 0) throw NotJudged();
  if (open >= 0) dims[static_cast<std::size_t>(open)] = x.count() / known;
  return with_dims(x, dims);
}

std::vector<Numbers> flatten(Call& c) {
  const Numbers& x = c.in(0);
  std::int64_t axis = c.integer("axis", 1);
  if (axis < 0) axis += c.rank();
  std::int64_t rows = 1;
  for (std::int64_t i = 0; i < axis; ++i) rows *= x.dims.at(static_cast<std::size_t>(i));
  if (rows == 0) throw NotJudged();
  return with_dims(x, {rows, x.count() / rows});
}

std::vector<Numbers> squeeze(Call& c) {
  const Numbers& x = c.in(0);
  const auto axes = c.list("axes", 1);
  std::vector<bool> gone(x.dims.size(), false);
  for (std::size_t i = 0; i < gone.size(); ++i) gone[i] = !axes && x.dims[i] == 1;
  if (axes)
    for (std::int64_t a : *axes) gone[c.axis(a, c.rank())] = true;
  Sizes dims;
  for (std::size_t i = 0; i < gone.size(); ++i)
    if (!gone[i]) dims.push_back(x.dims[i]);
  return with_dims(x, dims);
}

std::vector<Numbers> unsqueeze(Call& c) {
  const Numbers& x = c.in(0);
  const auto axes = c.list("axes", 1);
  if (!axes) throw NotJudged();
  const std::size_t rank = x.dims.size() + axes->size();
  std::vector<bool> is_new(rank, false);
  for (std::int64_t a : *axes) is_new[c.axis(a, static_cast<std::int64_t>(rank))] = true;
  Sizes dims;
  for (std::size_t i = 0, next = 0; i < rank; ++i)
    dims.push_back(is_new[i] ? 1 : x.dims.at(next++));
  return with_dims(x, dims);
}

std::vector<Numbers> concat(Call& c) {
  if (c.opset() < 4) throw NotJudged();
  const std::size_t axis = c.axis("axis", 0);
  Numbers out{c.in(0).dtype, c.in(0).dims, {}};
  out.dims[axis] = 0;
  for (std::size_t i = 0; i < c.inputs(); ++i) out.dims[axis] += c.in(i).dims.at(axis);
  for_index(out.dims, [&](Sizes index) {
    std::size_t i = 0;
    while (index[axis] >= c.in(i).dims[axis]) index[axis] -= c.in(i++).dims[axis];
    const Numbers& x = c.in(i);
    out.values.push_back(x.values.at(static_cast<std::size_t>(place(index, strides_of(x.dims)))));
  });
  return {out};
}

std::vector<Numbers> part(const Numbers& x, std::size_t axis, std::int64_t first,
                          std::int64_t size) {
  Sizes dims = x.dims;
  dims[axis] = size;
  return moved(x, dims, [&](Sizes index) {
    index[axis] += first;
    return index;
  });
}

std::vector<Numbers> split(Call& c) {
  const Numbers& x = c.in(0);
  const std::size_t axis = c.axis("axis", 0);
  const auto count = c.integer("num_outputs", static_cast<std::int64_t>(c.outputs()));
  Sizes sizes;
  if (const auto given = c.list("split", 1)) {
    sizes = *given;
  } else {
    const std::int64_t each = (x.dims[axis] + count - 1) / count;
    for (std::int64_t left = x.dims[axis], i = 0; i < count; ++i, left -= each)
      sizes.push_back(std::clamp<std::int64_t>(left, 0, each));
  }
  std::vector<Numbers> out;
  std::int64_t first = 0;
  for (std::int64_t size : sizes) {
    out.push_back(part(x, axis, first, size)[0]);
    first += size;
  }
  return out;
}

std::vector<Numbers> slice(Call& c) {
  const Numbers& x = c.in(0);
  const auto starts = c.list("starts", 1), ends = c.list("ends", 2), axes = c.list("axes", 3);
  if (!starts || !ends) throw NotJudged();
  Sizes first(x.dims.size(), 0), step(x.dims.size(), 1), dims = x.dims;
  for (std::size_t i = 0; i < starts->size(); ++i) {
    const std::size_t a = c.axis(axes ? axes->at(i) : static_cast<std::int64_t>(i), c.rank());
    const std::int64_t size = x.dims[a];
    step[a] = c.has(4) ? c.list(4).at(i) : 1;
    if (size == 0) continue;
    const auto inside = [&](std::int64_t at, std::int64_t low, std::int64_t high) {
      return std::clamp(at < 0 ? at + size : at, low, high);
    };
    std::int64_t end = 0;
    if (step[a] > 0) {
      first[a] = inside((*starts)[i], 0, size);
      end = inside(ends->at(i), 0, size);
      dims[a] = std::max<std::int64_t>(0, (end - first[a] + step[a] - 1) / step[a]);
    } else {
      first[a] = inside((*starts)[i], 0, std::max<std::int64_t>(size - 1, 0));
      end = inside(ends->at(i), -1, size - 1);
      dims[a] = std::max<std::int64_t>(0, (first[a] - end - step[a] - 1) / -step[a]);
    }
  }
  return moved(x, dims, [&](Sizes index) {
    for (std::size_t i = 0; i < index.size(); ++i) index[i] = first[i] + index[i] * step[i];
    return index;
  });
}

std::int64_t from_front(double i, std::int64_t size) {
  const auto n = static_cast<std::int64_t>(i);
  if (n < -size || n >= size) throw NotJudged();
  return n < 0 ? n + size : n;
}

std::vector<Numbers> gather(Call& c) {
  const Numbers &x = c.in(0), &indices = c.in(1);
  const std::size_t axis = c.axis("axis", 0), more = indices.dims.size();
  const Sizes strides = strides_of(indices.dims);
  Sizes dims(x.dims.begin(), x.dims.begin() + static_cast<std::ptrdiff_t>(axis));
  dims.insert(dims.end(), indices.dims.begin(), indices.dims.end());
  dims.insert(dims.end(), x.dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.dims.end());
  return moved(x, dims, [&](const Sizes& index) {
    Sizes from(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(axis)), which;
    for (std::size_t k = 0; k < more; ++k) which.push_back(index[axis + k]);
    from.push_back(
        from_front(indices.values[static_cast<std::size_t>(place(which, strides))], x.dims[axis]));
    for (std::size_t k = axis + more; k < index.size(); ++k) from.push_back(index[k]);
    return from;
  });
}

std::vector<Numbers> gather_elements(Call& c) {
  const Numbers &x = c.in(0), &indices = c.in(1);
  const std::size_t axis = c.axis("axis", 0);
  const Sizes strides = strides_of(indices.dims);
  return moved(x, indices.dims, [&](Sizes index) {
    index[axis] =
        from_front(indices.values[static_cast<std::size_t>(place(index, strides))], x.dims[axis]);
    return index;
  });
}

std::vector<Numbers> gather_nd(Call& c) {
  const Numbers &x = c.in(0), &indices = c.in(1);
  const auto batch = static_cast<std::size_t>(c.integer("batch_dims", 0));
  const auto depth = static_cast<std::size_t>(indices.dims.back());
  const Sizes strides = strides_of(indices.dims);
  Sizes dims(indices.dims.begin(), indices.dims.end() - 1);
  const std::size_t lead = dims.size();
  for (std::size_t k = batch + depth; k < x.dims.size(); ++k) dims.push_back(x.dims[k]);
  return moved(x, dims, [&](const Sizes& index) {
    Sizes from(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(batch)),
        which(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(lead));
    which.push_back(0);
    for (std::size_t k = 0; k < depth; ++k) {
      which.back() = static_cast<std::int64_t>(k);
      from.push_back(from_front(indices.values[static_cast<std::size_t>(place(which, strides))],
                                x.dims[batch + k]));
    }
    from.insert(from.end(), index.begin() + static_cast<std::ptrdiff_t>(lead), index.end());
    return from;
  });
}

std::vector<Numbers> expand(Call& c) {
  const Numbers& x = c.in(0);
  Sizes dims = c.list(1);
  while (dims.size() < x.dims.size()) dims.insert(dims.begin(), 1);
  const std::size_t lead = dims.size() - x.dims.size();
  for (std::size_t i = 0; i < x.dims.size(); ++i)
    if (x.dims[i] != 1) dims[lead + i] = x.dims[i];
  return moved(x, dims, [&](const Sizes& index) {
    Sizes from(index.begin() + static_cast<std::ptrdiff_t>(lead), index.end());
    for (std::size_t i = 0; i < from.size(); ++i)
      if (x.dims[i] == 1) from[i] = 0;
    return from;
  });
}

std::vector<Numbers> tile(Call& c) {
  if (c.opset() < 6) throw NotJudged();
  const Numbers& x = c.in(0);
  const Sizes repeats = c.list(1);
  Sizes dims = x.dims;
  for (std::size_t i = 0; i < dims.size(); ++i) dims[i] *= repeats.at(i);
  return moved(x, dims, [&](Sizes index) {
    for (std::size_t i = 0; i < index.size(); ++i) index[i] %= x.dims[i];
    return index;
  });
}

// A place outside of [0, size) under one of the modes of Pad.
std::int64_t folded(std::int64_t at, std::int64_t size, const std::string& mode) {
  if (mode == "edge") return std::clamp<std::int64_t>(at, 0, size - 1);
  if (mode == "wrap") return ((at % size) + size) % size;
  if (size == 1) return 0;
  const std::int64_t period = 2 * (size - 1), inside = ((at % period) + period) % period;
  return inside < size ? inside : period - inside;
}

std::vector<Numbers> pad(Call& c) {
  const Numbers& x = c.in(0);
  const std::string mode = c.text("mode", "constant");
  const auto pads = c.list("pads", 1);
  if (!pads) throw NotJudged();
  const double filler = c.has(2) ? c.in(2).values.at(0) : c.real("value", 0);
  Sizes axes;
  for (int i = 0; i < c.rank(); ++i) axes.push_back(i);
  if (c.has(3)) axes = c.list(3);
  Sizes low(x.dims.size(), 0), dims = x.dims;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t a = c.axis(axes[i], c.rank());
    low[a] = pads->at(i);
    dims[a] += pads->at(i) + pads->at(axes.size() + i);
    if (dims[a] < 0) throw NotJudged();
  }
  Numbers out{x.dtype, dims, {}};
  const Sizes strides = strides_of(x.dims);
  for_index(dims, [&](Sizes index) {
    bool is_outside = false;
    for (std::size_t i = 0; i < index.size(); ++i) {
      index[i] -= low[i];
      if (index[i] >= 0 && index[i] < x.dims[i]) continue;
      is_outside = true;
      if (mode != "constant") index[i] = folded(index[i], x.dims[i], mode);
    }
    out.values.push_back(is_outside && mode == "constant"
                             ? filler
                             : x.values.at(static_cast<std::size_t>(place(index, strides))));
  });
  return {out};
}

std::vector<Numbers> shape(Call& c) {
  const Sizes& dims = c.in(0).dims;
  const auto rank = static_cast<std::int64_t>(dims.size());
  const auto inside = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const std::int64_t start = inside(c.integer("start", 0)), end = inside(c.integer("end", rank));
  Sizes out;
  for (std::int64_t i = start; i < end; ++i) out.push_back(dims[static_cast<std::size_t>(i)]);
  return integers(out);
}

std::vector<Numbers> size(Call& c) {
  return {{DType::i64, {}, {static_cast<double>(c.in(0).count())}}};
}

std::vector<Numbers> constant_of_shape(Call& c) {
  Numbers out{DType::f32, c.list(0), {}};
  double value = 0;
  if (const auto given = c.tensor("value")) {
    out.dtype = given->dtype;
    value = given->values.at(0);
  }
  for_index(out.dims, [&](const Sizes&) { out.values.push_back(value); });
  return {out};
}

std::vector<Numbers> range(Call& c) {
  const double start = c.in(0).values.at(0), limit = c.in(1).values.at(0),
               delta = c.in(2).values.at(0);
  const double steps = std::fmax(std::ceil((limit - start) / delta), 0);
  if (!(steps <= most_of_result)) throw NotJudged();
  const auto n = static_cast<std::int64_t>(steps);
  Numbers out{c.in(0).dtype, {n}, {}};
  for (std::int64_t i = 0; i < n; ++i) out.values.push_back(start + static_cast<double>(i) * delta);
  return {out};
}

std::vector<Numbers> trilu(Call& c) {
  Numbers out = c.in(0);
  const bool upper = c.integer("upper", 1) != 0;
  const std::int64_t k = c.has(1) ? c.list(1).at(0) : 0;
  std::size_t i = 0;
  for_index(out.dims, [&](const Sizes& index) {
    const std::int64_t row = index[index.size() - 2], column = index.back();
    if (upper ? column < row + k : column > row + k) out.values[i] = 0;
    ++i;
  });
  return {out};
}

std::vector<Numbers> depth_and_space(Call& c) {
  const Numbers& x = c.in(0);
  const std::int64_t b = c.integer("blocksize", 0), n = x.dims.at(0), depth = x.dims.at(1),
                     h = x.dims.at(2), w = x.dims.at(3);
  if (c.op() == "SpaceToDepth")
    return moved(x, {n, depth * b * b, h / b, w / b}, [&](const Sizes& i) {
      const std::int64_t block = i[1] / depth;
      return Sizes{i[0], i[1] % depth, i[2] * b + block / b, i[3] * b + block % b};
    });
  const bool is_crd = c.text("mode", "DCR") == "CRD";
  const std::int64_t channels = depth / (b * b);
  return moved(x, {n, channels, h * b, w * b}, [&](const Sizes& i) {
    const std::int64_t row = i[2] % b, column = i[3] % b;
    const std::int64_t channel =
        is_crd ? (i[1] * b + row) * b + column : (row * b + column) * channels + i[1];
    return Sizes{i[0], channel, i[2] / b, i[3] / b};
  });
}

std::vector<Numbers> one_hot(Call& c) {
  const Numbers &indices = c.in(0), &values = c.in(2);
  const std::int64_t depth = c.list(1).at(0);
  const std::size_t axis = c.axis(c.integer("axis", -1), c.rank() + 1);
  Numbers out{values.dtype, indices.dims, {}};
  out.dims.insert(out.dims.begin() + static_cast<std::ptrdiff_t>(axis), depth);
  const Sizes strides = strides_of(indices.dims);
  for_index(out.dims, [&](Sizes index) {
    const std::int64_t here = index[axis];
    index.erase(index.begin() + static_cast<std::ptrdiff_t>(axis));
    auto wanted =
        static_cast<std::int64_t>(indices.values[static_cast<std::size_t>(place(index, strides))]);
    if (wanted < 0) wanted += depth;
    out.values.push_back(values.values.at(wanted == here ? 1 : 0));
  });
  return {out};
}

std::vector<Numbers> constant(Call& c) {
  if (const auto n = c.integers("value_ints")) return integers(*n);
  if (c.has_attribute("value_int"))
    return {{DType::i64, {}, {static_cast<double>(c.integer("value_int", 0))}}};
  if (c.has_attribute("value_float")) return {{DType::f32, {}, {c.real("value_float", 0)}}};
  if (c.has_attribute("value_floats")) {
    const std::vector<double> n = c.reals("value_floats");
    return {{DType::f32, {static_cast<std::int64_t>(n.size())}, n}};
  }
  if (c.has_attribute("value_string") || c.has_attribute("value_strings")) {
    const bool is_one = c.has_attribute("value_string");
    Numbers out{DType::text, {}, {}};
    const std::vector<std::string> texts =
        is_one ? std::vector{c.text("value_string", "")} : c.texts("value_strings");
    if (!is_one) out.dims.push_back(static_cast<std::int64_t>(texts.size()));
    for (const std::string& t : texts) out.values.push_back(static_cast<double>(text_number(t)));
    return {out};
  }
  const auto value = c.tensor("value");
  if (!value) throw NotJudged();
  return {*value};
}

double joined(const std::string& how, double a, double b) {
  if (how == "none") return b;
  if (how == "add") return a + b;
  if (how == "mul") return a * b;
  if (how == "max") return std::fmax(a, b);
  if (how == "min") return std::fmin(a, b);
  throw NotJudged();
}

// Puts updates where they belong; which of two that replace the same element stays is not said.
class Scatter {
 public:
  explicit Scatter(Call& c)
      : how_(c.text("reduction", "none")), out_(c.in(0)), taken_(out_.values.size(), false) {}
  void put(std::int64_t at, double update) {
    const auto i = static_cast<std::size_t>(at);
    if (taken_.at(i) && how_ == "none") throw NotJudged();
    taken_[i] = true;
    out_.values[i] = joined(how_, out_.values[i], update);
  }
  std::vector<Numbers> result() const { return {out_}; }

 private:
  std::string how_;
  Numbers out_;
  std::vector<bool> taken_;
};

std::vector<Numbers> scatter_elements(Call& c) {
  const Numbers &x = c.in(0), &indices = c.in(1), &updates = c.in(2);
  const std::size_t axis = c.axis("axis", 0);
  const Sizes strides = strides_of(x.dims);
  Scatter out(c);
  std::size_t i = 0;
  for_index(indices.dims, [&](Sizes index) {
    index[axis] = from_front(indices.values[i], x.dims[axis]);
    out.put(place(index, strides), updates.values.at(i));
    ++i;
  });
  return out.result();
}

std::vector<Numbers> scatter_nd(Call& c) {
  const Numbers &x = c.in(0), &indices = c.in(1), &updates = c.in(2);
  const auto depth = static_cast<std::size_t>(indices.dims.back());
  const Sizes strides = strides_of(x.dims),
              inner(x.dims.begin() + static_cast<std::ptrdiff_t>(depth), x.dims.end());
  const std::int64_t each = product(inner);
  Scatter out(c);
  for (std::size_t i = 0; i * depth < indices.values.size(); ++i) {
    std::int64_t first = 0;
    for (std::size_t k = 0; k < depth; ++k)
      first += from_front(indices.values[i * depth + k], x.dims[k]) * strides[k];
    for (std::int64_t k = 0; k < each; ++k)
      out.put(first + k,
              updates.values.at(i * static_cast<std::size_t>(each) + static_cast<std::size_t>(k)));
  }
  return out.result();
}

std::vector<Numbers> non_zero(Call& c) {
  const Numbers& x = c.in(0);
  if (x.dims.empty()) throw NotJudged();
  std::vector<Sizes> found;
  std::size_t i = 0;
  for_index(x.dims, [&](const Sizes& index) {
    if (x.values[i++] != 0) found.push_back(index);
  });
  Numbers out{DType::i64, {c.rank(), static_cast<std::int64_t>(found.size())}, {}};
  for (std::size_t axis = 0; axis < x.dims.size(); ++axis)
    for (const Sizes& index : found) out.values.push_back(static_cast<double>(index[axis]));
  return {out};
}

std::vector<Numbers> compress(Call& c) {
  const Numbers &condition = c.in(1), flat = {c.in(0).dtype, {c.in(0).count()}, c.in(0).values};
  const Numbers& x = c.has_attribute("axis") ? c.in(0) : flat;
  const std::size_t axis = c.axis(c.integer("axis", 0), static_cast<std::int64_t>(x.dims.size()));
  Sizes kept;
  for (std::size_t i = 0; i < condition.values.size(); ++i)
    if (condition.values[i] != 0) kept.push_back(static_cast<std::int64_t>(i));
  Sizes dims = x.dims;
  dims[axis] = static_cast<std::int64_t>(kept.size());
  return moved(x, dims, [&](Sizes index) {
    index[axis] = kept[static_cast<std::size_t>(index[axis])];
    return index;
  });
}

// The different slices along an axis, or elements, in order; the first place of each, which of them
// each slice is, and how often it is there.
std::vector<Numbers> unique(Call& c) {
  const Numbers flat = {c.in(0).dtype, {c.in(0).count()}, c.in(0).values};
  const Numbers& x = c.has_attribute("axis") ? c.in(0) : flat;
  const std::size_t axis = c.axis(c.integer("axis", 0), static_cast<std::int64_t>(x.dims.size()));
  const bool sorts = c.integer("sorted", 1) != 0;
  std::vector<std::vector<double>> slices;
  for (std::int64_t i = 0; i < x.dims[axis]; ++i) slices.push_back(part(x, axis, i, 1)[0].values);
  std::vector<std::size_t> firsts;  // of each group
  for (std::size_t i = 0; i < slices.size(); ++i) {
    for (double v : slices[i])
      if (v != v) throw NotJudged();
    if (std::ranges::find(slices, slices[i]) - slices.begin() == static_cast<std::ptrdiff_t>(i))
      firsts.push_back(i);
  }
  if (sorts) std::ranges::sort(firsts, {}, [&](std::size_t i) { return slices[i]; });
  Sizes places, group(slices.size()), counts(firsts.size());
  for (std::size_t k = 0; k < firsts.size(); ++k) {
    places.push_back(static_cast<std::int64_t>(firsts[k]));
    for (std::size_t i = 0; i < slices.size(); ++i)
      if (slices[i] == slices[firsts[k]]) {
        group[i] = static_cast<std::int64_t>(k);
        ++counts[k];
      }
  }
  Sizes dims = x.dims;
  dims[axis] = static_cast<std::int64_t>(places.size());
  Numbers different = moved(x, dims, [&](Sizes index) {
    index[axis] = places[static_cast<std::size_t>(index[axis])];
    return index;
  })[0];
  return {different, integers(places)[0], integers(group)[0], integers(counts)[0]};
}

// The leading elements of each line along the time, as many as its place in the batch says, from
// the last to the first.
std::vector<Numbers> reverse_sequence(Call& c) {
  const Numbers& x = c.in(0);
  const std::size_t batch = c.axis("batch_axis", 1), time = c.axis("time_axis", 0);
  const Sizes lengths = c.list(1);
  return moved(x, x.dims, [&](Sizes index) {
    const std::int64_t length = lengths.at(static_cast<std::size_t>(index[batch]));
    if (index[time] < length) index[time] = length - 1 - index[time];
    return index;
  });
}

std::vector<Numbers> eye_like(Call& c) {
  if (c.has_attribute("dtype")) throw NotJudged();
  Numbers out{c.in(0).dtype, c.in(0).dims, {}};
  const std::int64_t k = c.integer("k", 0);
  for_index(out.dims, [&](const Sizes& i) { out.values.push_back(i[1] - i[0] == k ? 1 : 0); });
  return {out};
}

constexpr MeaningRow movement_rows[] = {
    {"Constant", constant, Kind::copies},
    {"Transpose", transpose, Kind::copies},
    {"Reshape", reshape, Kind::copies},
    {"Flatten", flatten, Kind::copies},
    {"Squeeze", squeeze, Kind::copies},
    {"Unsqueeze", unsqueeze, Kind::copies},
    {"Concat", concat, Kind::copies},
    {"Split", split, Kind::copies},
    {"Slice", slice, Kind::copies},
    {"Gather", gather, Kind::copies},
    {"GatherElements", gather_elements, Kind::copies},
    {"GatherND", gather_nd, Kind::copies},
    {"Expand", expand, Kind::copies},
    {"Tile", tile, Kind::copies},
    {"Pad", pad, Kind::copies},
    {"Shape", shape, Kind::copies},
    {"Size", size, Kind::copies},
    {"ConstantOfShape", constant_of_shape, Kind::copies},
    {"Range", range, Kind::rounds},
    {"Trilu", trilu, Kind::copies},
    {"DepthToSpace", depth_and_space, Kind::copies},
    {"SpaceToDepth", depth_and_space, Kind::copies},
    {"OneHot", one_hot, Kind::copies},
    {"ScatterElements", scatter_elements, Kind::rounds},
    {"Scatter", scatter_elements, Kind::rounds},
    {"ReverseSequence", reverse_sequence, Kind::copies},
    {"ScatterND", scatter_nd, Kind::rounds},
    {"EyeLike", eye_like, Kind::copies},
    {"NonZero", non_zero, Kind::copies},
    {"Compress", compress, Kind::copies},
    {"Unique", unique, Kind::copies},
};

}  // namespace

std::span<const MeaningRow> movement_meanings() { return movement_rows; }

}  // namespace hone::onnx
