// Signal windows, determinants, and center crop or pad.
#include <cmath>

#include "verify/onnx/call.h"

namespace hone::onnx {

namespace {

// a - b cos(2 pi i / n) + c cos(4 pi i / n), where n is the size, or one less for a symmetric one.
std::vector<Numbers> window(Call& c) {
  const std::int64_t size = c.list(0).at(0), type = c.integer("output_datatype", 1);
  const bool periodic = c.integer("periodic", 1) != 0;
  if (type != 1 && type != 11) throw NotJudged();
  const bool is_hann = c.op() == "HannWindow", is_hamming = c.op() == "HammingWindow";
  const double first = is_hann      ? 0.5
                       : is_hamming ? 25.0 / 46
                                    : 0.42,
               second = is_hann      ? 0.5
                        : is_hamming ? 21.0 / 46
                                     : 0.5,
               third = is_hann || is_hamming ? 0 : 0.08;
  const auto n = static_cast<double>(periodic ? size : size - 1);
  Numbers out{type == 1 ? DType::f32 : DType::f64, {size}, {}};
  for (std::int64_t i = 0; i < size; ++i) {
    const double at = 2 * M_PI * static_cast<double>(i) / n;
    out.values.push_back(first - second * std::cos(at) + third * std::cos(2 * at));
  }
  return {out};
}

// By rows, each of which is taken from those below it.
double determinant(std::vector<std::vector<double>> m) {
  double out = 1;
  for (std::size_t k = 0; k < m.size(); ++k) {
    std::size_t best = k;
    for (std::size_t i = k; i < m.size(); ++i)
      if (std::fabs(m[i][k]) > std::fabs(m[best][k])) best = i;
    if (m[best][k] == 0) return 0;
    if (best != k) out = -out;
    std::swap(m[best], m[k]);
    out *= m[k][k];
    for (std::size_t i = k + 1; i < m.size(); ++i)
      for (std::size_t j = m.size(); j-- > k;) m[i][j] -= m[i][k] / m[k][k] * m[k][j];
  }
  return out;
}

std::vector<Numbers> det(Call& c) {
  const Numbers& x = c.in(0);
  const auto n = static_cast<std::size_t>(x.dims.back());
  if (x.dims.size() < 2 || x.dims[x.dims.size() - 2] != x.dims.back() || n > 64) throw NotJudged();
  Numbers out{x.dtype, {x.dims.begin(), x.dims.end() - 2}, {}};
  for (std::int64_t at = 0; at < out.count(); ++at) {
    std::vector<std::vector<double>> m;
    for (std::size_t i = 0; i < n; ++i) {
      const auto from = x.values.begin() +
                        static_cast<std::ptrdiff_t>((static_cast<std::size_t>(at) * n + i) * n);
      m.emplace_back(from, from + static_cast<std::ptrdiff_t>(n));
    }
    out.values.push_back(determinant(std::move(m)));
  }
  return {out};
}

// The smaller half of what is cut, or of the zeros, at the beginning.
std::vector<Numbers> center_crop_pad(Call& c) {
  const Numbers& x = c.in(0);
  const Sizes wanted = c.list(1);
  Sizes axes = c.integers("axes").value_or(Sizes());
  if (!c.has_attribute("axes"))
    for (int i = 0; i < c.rank(); ++i) axes.push_back(i);
  Numbers out{x.dtype, x.dims, {}};
  Sizes shift(x.dims.size(), 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = c.axis(axes[i], c.rank());
    const std::int64_t have = x.dims[axis], want = wanted.at(i);
    out.dims[axis] = want;
    shift[axis] = have > want ? (have - want) / 2 : -((want - have) / 2);
  }
  const Sizes strides = strides_of(x.dims);
  for_index(out.dims, [&](Sizes index) {
    bool is_inside = true;
    for (std::size_t i = 0; i < index.size(); ++i) {
      index[i] += shift[i];
      is_inside = is_inside && index[i] >= 0 && index[i] < x.dims[i];
    }
    out.values.push_back(is_inside ? x.values.at(static_cast<std::size_t>(place(index, strides)))
                                   : 0);
  });
  return {out};
}

constexpr MeaningRow signal_rows[] = {{"HannWindow", window},
                                      {"HammingWindow", window},
                                      {"BlackmanWindow", window},
                                      {"Det", det},
                                      {"CenterCropPad", center_crop_pad}};

}  // namespace

std::span<const MeaningRow> signal_meanings() { return signal_rows; }

}  // namespace hone::onnx
