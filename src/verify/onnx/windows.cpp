// Convolutions and pools.
#include <algorithm>
#include <cmath>

#include "verify/onnx/call.h"

namespace hone::onnx {

namespace {

// How a window moves over the axes behind the first two.
struct Window {
  Sizes kernel, strides, dilations, low, high, out;

  std::size_t rank() const { return kernel.size(); }
  std::int64_t reach(std::size_t i) const { return (kernel[i] - 1) * dilations[i] + 1; }
  std::int64_t source(std::size_t i, std::int64_t o, std::int64_t k) const {
    return o * strides[i] + k * dilations[i] - low[i];
  }
  // Places of a window that lie inside or in the padding, but not behind it.
  double padded_places(const Sizes& dims, const Sizes& index) const {
    double out = 1;
    for (std::size_t i = 0; i < rank(); ++i) {
      double here = 0;
      for (std::int64_t k = 0; k < kernel[i]; ++k)
        here += source(i, index[i + 2], k) < dims[i + 2] + high[i];
      out *= here;
    }
    return out;
  }
};

Window window_of(Call& c, Sizes kernel, bool may_round_up) {
  const Sizes& dims = c.in(0).dims;
  Window w;
  w.kernel = std::move(kernel);
  const std::size_t n = w.kernel.size();
  if (dims.size() != n + 2) throw NotJudged();
  w.strides = c.integers("strides").value_or(Sizes(n, 1));
  w.dilations = c.integers("dilations").value_or(Sizes(n, 1));
  const Sizes pads = c.integers("pads").value_or(Sizes(2 * n, 0));
  const std::string automatic = c.text("auto_pad", "NOTSET");
  const bool up = may_round_up && c.integer("ceil_mode", 0) != 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t size = dims[i + 2];
    std::int64_t low = pads.at(i), high = pads.at(n + i);
    if (automatic == "VALID") low = high = 0;
    if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
      const std::int64_t out = (size + w.strides[i] - 1) / w.strides[i];
      const std::int64_t all =
          std::max<std::int64_t>((out - 1) * w.strides[i] + w.reach(i) - size, 0);
      low = automatic == "SAME_UPPER" ? all / 2 : all - all / 2;
      high = all - low;
    }
    w.low.push_back(low);
    w.high.push_back(high);
    const std::int64_t room = size + low + high - w.reach(i);
    if (room < 0) throw NotJudged();
    std::int64_t out = (up ? (room + w.strides[i] - 1) / w.strides[i] : room / w.strides[i]) + 1;
    // Where sizes are rounded up, a window that would begin in the padding behind the end is left
    // out; otherwise it counts.
    if (up && (out - 1) * w.strides[i] >= size + low) --out;
    w.out.push_back(out);
  }
  return w;
}

// Calls f(place in the window, source) for the places of a window that lie inside.
template <class F>
void for_window(const Window& w, const Sizes& dims, const Sizes& index, F f) {
  for_index(w.kernel, [&](const Sizes& k) {
    Sizes source(index.begin(), index.begin() + 2);
    for (std::size_t i = 0; i < w.rank(); ++i) {
      source.push_back(w.source(i, index[i + 2], k[i]));
      if (source.back() < 0 || source.back() >= dims[i + 2]) return;
    }
    f(k, source);
  });
}

std::vector<Numbers> conv(Call& c) {
  const Numbers &x = c.in(0), &weight = c.in(1);
  const Sizes kernel(weight.dims.begin() + 2, weight.dims.end());
  if (c.integers("kernel_shape").value_or(kernel) != kernel) throw NotJudged();
  const std::int64_t groups = c.integer("group", 1), outputs = weight.dims[0],
                     each = weight.dims[1];
  const Window w = window_of(c, kernel, false);
  Numbers out{x.dtype, {x.dims[0], outputs}, {}};
  out.dims.insert(out.dims.end(), w.out.begin(), w.out.end());
  check_work(static_cast<double>(out.count()) * static_cast<double>(each * product(kernel)));
  const Sizes of_x = strides_of(x.dims), of_weight = strides_of(weight.dims);
  for_index(out.dims, [&](const Sizes& index) {
    const std::int64_t first = index[1] / (outputs / groups) * each;
    double sum = c.has(2) ? c.in(2).values.at(static_cast<std::size_t>(index[1])) : 0;
    for_window(w, x.dims, index, [&](const Sizes& k, Sizes source) {
      Sizes from = {index[1], 0};
      from.insert(from.end(), k.begin(), k.end());
      source[1] = first;
      const std::int64_t p = place(source, of_x), q = place(from, of_weight);
      for (std::int64_t i = 0; i < each; ++i)
        sum += x.values[static_cast<std::size_t>(p + i * of_x[1])] *
               weight.values[static_cast<std::size_t>(q + i * of_weight[1])];
    });
    out.values.push_back(sum);
  });
  return {out};
}

// The padding in front of each axis, and the sizes behind all of it, of a transposed convolution.
struct Cut {
  Sizes low, out;
};

Cut cut_of(Call& c, const Sizes& kernel, const Sizes& strides, const Sizes& dilations) {
  const std::size_t n = kernel.size();
  const Sizes pads = c.integers("pads").value_or(Sizes(2 * n, 0)),
              more = c.integers("output_padding").value_or(Sizes(n, 0));
  const auto wanted = c.integers("output_shape");
  const std::string automatic = c.text("auto_pad", "NOTSET");
  const bool is_same = automatic.starts_with("SAME");
  Cut cut;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t size = c.in(0).dims.at(i + 2), full = strides[i] * (size - 1) + more[i] +
                                                             (kernel[i] - 1) * dilations[i] + 1;
    std::int64_t low = pads.at(i), high = pads.at(n + i);
    if (automatic == "VALID") low = high = 0;
    if (wanted || is_same) {
      // Of newer versions the list may begin with batch and channels.
      const std::int64_t out = !wanted ? size * strides[i] : wanted->at(wanted->size() - n + i);
      const std::int64_t all = full - out;
      if (all < 0) throw NotJudged();
      low = automatic == "SAME_UPPER" ? all / 2 : all - all / 2;
      high = all - low;
    }
    cut.low.push_back(low);
    cut.out.push_back(full - low - high);
    if (cut.out.back() < 0) throw NotJudged();
  }
  return cut;
}

std::vector<Numbers> conv_transpose(Call& c) {
  const Numbers &x = c.in(0), &weight = c.in(1);
  const Sizes kernel(weight.dims.begin() + 2, weight.dims.end());
  const std::size_t n = kernel.size();
  if (c.integers("kernel_shape").value_or(kernel) != kernel) throw NotJudged();
  const Sizes strides = c.integers("strides").value_or(Sizes(n, 1)),
              dilations = c.integers("dilations").value_or(Sizes(n, 1));
  const Cut cut = cut_of(c, kernel, strides, dilations);
  const std::int64_t groups = c.integer("group", 1), each = weight.dims[1],
                     inputs = x.dims[1] / groups;
  Numbers out{x.dtype, {x.dims[0], each * groups}, {}};
  out.dims.insert(out.dims.end(), cut.out.begin(), cut.out.end());
  check_work(static_cast<double>(x.count()) * static_cast<double>(each * product(kernel)));
  out.values.assign(static_cast<std::size_t>(out.count()), 0);
  const Sizes to = strides_of(out.dims);
  if (c.has(2)) {
    std::size_t i = 0;
    for_index(out.dims, [&](const Sizes& index) {
      out.values[i++] = c.in(2).values.at(static_cast<std::size_t>(index[1]));
    });
  }
  Sizes inner = {each};
  inner.insert(inner.end(), kernel.begin(), kernel.end());
  for_index(x.dims, [&](const Sizes& index) {
    const std::int64_t group = index[1] / inputs;
    const double here = at(x, index);
    for_index(inner, [&](const Sizes& k) {
      Sizes target = {index[0], group * each + k[0]}, from = {index[1]};
      from.insert(from.end(), k.begin(), k.end());
      for (std::size_t i = 0; i < n; ++i) {
        target.push_back(index[i + 2] * strides[i] + k[i + 1] * dilations[i] - cut.low[i]);
        if (target.back() < 0 || target.back() >= out.dims[i + 2]) return;
      }
      out.values[static_cast<std::size_t>(place(target, to))] += here * at(weight, from);
    });
  });
  return {out};
}

// Where an element lies, counted through the whole tensor, the first axis of the image slowest or
// fastest.
double counted_place(const Sizes& dims, const Sizes& index, bool columns_first) {
  std::int64_t at = index[0] * dims[1] + index[1];
  const std::size_t n = dims.size() - 2;
  for (std::size_t i = 0; i < n; ++i) at *= dims[i + 2];
  std::int64_t inside = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t axis = columns_first ? dims.size() - 1 - i : i + 2;
    inside = inside * dims[axis] + index[axis];
  }
  return static_cast<double>(at + inside);
}

// The results of a pool, still without values; not judged where they would be much work.
Numbers pooled(Call& c, const Window& w) {
  const Numbers& x = c.in(0);
  Numbers out{x.dtype, {x.dims[0], x.dims[1]}, {}};
  out.dims.insert(out.dims.end(), w.out.begin(), w.out.end());
  check_work(static_cast<double>(out.count()) * static_cast<double>(product(w.kernel)));
  return out;
}

std::vector<Numbers> pool(Call& c) {
  const Numbers& x = c.in(0);
  const bool is_max = c.op() == "MaxPool", counts_pads = c.integer("count_include_pad", 0) != 0,
             columns_first = c.integer("storage_order", 0) != 0;
  const auto kernel = c.integers("kernel_shape");
  if (!kernel) throw NotJudged();
  const Window w = window_of(c, *kernel, true);
  Numbers out = pooled(c, w);
  Numbers places{DType::i64, out.dims, {}};
  for_index(out.dims, [&](const Sizes& index) {
    double most = -INFINITY, sum = 0, count = 0, place = std::nan("");
    for_window(w, x.dims, index, [&](const Sizes&, const Sizes& source) {
      const double here = at(x, source);
      // Of equal ones any may be named.
      if (here == most) place = std::nan("");
      if (here > most) place = counted_place(x.dims, source, columns_first);
      most = here != here || here > most ? here : most;
      sum += here;
      count += 1;
    });
    if (counts_pads) count = w.padded_places(x.dims, index);
    places.values.push_back(place);
    if (count == 0) return out.add_open();  // all of it lies in the padding
    out.values.push_back(is_max ? most : sum / count);
  });
  if (c.outputs() > 1) return {out, places};
  return {out};
}

std::vector<Numbers> lp_pool(Call& c) {
  if (c.opset() < 2) throw NotJudged();  // p was a real number
  const Numbers& x = c.in(0);
  const auto p = static_cast<double>(c.integer("p", 2));
  const auto kernel = c.integers("kernel_shape");
  if (!kernel) throw NotJudged();
  const Window w = window_of(c, *kernel, true);
  Numbers out = pooled(c, w);
  for_index(out.dims, [&](const Sizes& index) {
    double sum = 0;
    for_window(w, x.dims, index, [&](const Sizes&, const Sizes& source) {
      sum += std::pow(std::fabs(at(x, source)), p);
    });
    out.values.push_back(std::pow(sum, 1 / p));
  });
  return {out};
}

std::vector<Numbers> global_pool(Call& c) {
  const Numbers& x = c.in(0);
  Numbers out{x.dtype, {x.dims.at(0), x.dims.at(1)}, {}};
  const std::int64_t each = x.count() / std::max<std::int64_t>(product(out.dims), 1);
  out.dims.resize(x.dims.size(), 1);
  if (each == 0) throw NotJudged();
  for (std::int64_t i = 0; i < x.count(); i += each) {
    double most = -INFINITY, sum = 0;
    for (std::int64_t k = i; k < i + each; ++k) {
      const double here = x.values[static_cast<std::size_t>(k)];
      most = here != here || here > most ? here : most;
      sum += here;
    }
    out.values.push_back(c.op() == "GlobalMaxPool" ? most : sum / static_cast<double>(each));
  }
  return {out};
}

constexpr MeaningRow window_rows[] = {
    {"Conv", conv},
    {"ConvTranspose", conv_transpose},
    {"MaxPool", pool, Kind::rounds},
    {"AveragePool", pool},
    {"LpPool", lp_pool},
    {"GlobalAveragePool", global_pool},
    {"GlobalMaxPool", global_pool, Kind::rounds},
};

}  // namespace

std::span<const MeaningRow> window_meanings() { return window_rows; }

}  // namespace hone::onnx
