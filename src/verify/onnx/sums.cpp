// Reductions, products of matrices, norms.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "verify/onnx/call.h"

namespace hone::onnx {

namespace {

double at(const Numbers& x, std::int64_t place) {
  return x.values.at(static_cast<std::size_t>(place));
}

// Calls f(list of the places of a line along the axes) for each line, in row-major order of the
// rest.
template <class F>
void for_lines(const Sizes& dims, const std::vector<bool>& along, F f) {
  Sizes outer = dims, inner = dims;
  for (std::size_t i = 0; i < dims.size(); ++i) (along[i] ? outer : inner)[i] = 1;
  const Sizes strides = strides_of(dims);
  if (product(outer) == 0) return;
  for_index(outer, [&](const Sizes& first) {
    Sizes places;
    for_index(inner, [&](const Sizes& then) {
      places.push_back(place(first, strides) + place(then, strides));
    });
    f(places);
  });
}

std::vector<bool> only(std::size_t axis, std::size_t rank) {
  std::vector<bool> out(rank, false);
  if (rank > 0) out[axis] = true;
  return out;
}

double reduced(std::string_view op, const std::vector<double>& x) {
  const auto n = static_cast<double>(x.size());
  double sum = 0, squares = 0, magnitudes = 0, result = 1;
  for (double v : x) {
    sum += v;
    squares += v * v;
    magnitudes += std::fabs(v);
    result *= v;
  }
  if (op == "ReduceSum") return sum;
  if (op == "ReduceMean") return sum / n;
  if (op == "ReduceSumSquare") return squares;
  if (op == "ReduceL1") return magnitudes;
  if (op == "ReduceL2") return std::sqrt(squares);
  if (op == "ReduceProd") return result;
  if (op == "ReduceLogSum") return std::log(sum);
  if (x.empty()) throw NotJudged();
  const bool is_min = op == "ReduceMin";
  double most = x[0];
  for (double v : x) most = v != v || (is_min ? v < most : v > most) ? v : most;
  if (op != "ReduceLogSumExp") return most;
  double total = 0;
  for (double v : x) total += std::exp(v - most);
  return std::isinf(most) ? most : most + std::log(total);
}

std::vector<Numbers> reduce(Call& c) {
  const Numbers& x = c.in(0);
  static constexpr std::string_view of_integers[] = {"ReduceSum",  "ReduceMax", "ReduceMin",
                                                     "ReduceProd", "ReduceL1",  "ReduceSumSquare"};
  if (!is_float(x.dtype) && std::ranges::find(of_integers, c.op()) == std::end(of_integers))
    throw NotJudged();
  const bool keep = c.integer("keepdims", 1) != 0,
             nothing = c.integer("noop_with_empty_axes", 0) != 0;
  const auto axes = c.list("axes", 1);
  const bool all = !axes || axes->empty();
  if (all && nothing) {
    if (c.op() != "ReduceSum" && c.op() != "ReduceMean" && c.op() != "ReduceMax" &&
        c.op() != "ReduceMin" && c.op() != "ReduceProd")
      throw NotJudged();  // pages of other versions say other things
    return {x};
  }
  std::vector<bool> along(x.dims.size(), all);
  if (!all)
    for (std::int64_t a : *axes) along[c.axis(a, c.rank())] = true;
  Numbers out{x.dtype, {}, {}};
  for (std::size_t i = 0; i < along.size(); ++i)
    if (!along[i])
      out.dims.push_back(x.dims[i]);
    else if (keep)
      out.dims.push_back(1);
  for_lines(x.dims, along, [&](const Sizes& places) {
    std::vector<double> line;
    for (std::int64_t p : places) line.push_back(at(x, p));
    if (line.empty() && c.op() == "ReduceMean") return out.add_open();
    out.values.push_back(reduced(c.op(), line));
  });
  return {out};
}

std::vector<Numbers> arg(Call& c) {
  const Numbers& x = c.in(0);
  const std::size_t axis = c.axis("axis", 0);
  const bool keep = c.integer("keepdims", 1) != 0, last = c.integer("select_last_index", 0) != 0,
             is_max = c.op() == "ArgMax";
  Numbers out{DType::i64, x.dims, {}};
  if (keep)
    out.dims[axis] = 1;
  else
    out.dims.erase(out.dims.begin() + static_cast<std::ptrdiff_t>(axis));
  for_lines(x.dims, only(axis, x.dims.size()), [&](const Sizes& places) {
    std::size_t best = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const double v = at(x, places[i]), b = at(x, places[best]);
      if (v != v) throw NotJudged();
      if ((is_max ? v > b : v < b) || (last && v == b)) best = i;
    }
    out.values.push_back(static_cast<double>(best));
  });
  return {out};
}

// The axes of a row: the one that is named; before version 13 also those behind it.
std::vector<bool> rows_of_scores(Call& c) {
  const bool is_old = c.opset() < 13;
  const std::size_t axis = c.axis("axis", is_old ? 1 : -1);
  std::vector<bool> along = only(axis, c.in(0).dims.size());
  if (is_old) std::fill(along.begin() + static_cast<std::ptrdiff_t>(axis), along.end(), true);
  return along;
}

std::vector<Numbers> softmax(Call& c) {
  Numbers out = c.in(0);
  for_lines(c.in(0).dims, rows_of_scores(c), [&](const Sizes& places) {
    double most = -INFINITY, sum = 0;
    for (std::int64_t p : places) most = std::fmax(most, at(out, p));
    for (std::int64_t p : places) sum += std::exp(at(out, p) - most);
    for (std::int64_t p : places) {
      double& x = out.values[static_cast<std::size_t>(p)];
      x = c.op() == "LogSoftmax" ? x - most - std::log(sum) : std::exp(x - most) / sum;
    }
  });
  return {out};
}

// What is joined up to each place of an axis, with it or without.
template <class Join>
std::vector<Numbers> running(Call& c, double first, Join join) {
  Numbers out = c.in(0);
  const std::size_t axis = c.axis(c.list(1).at(0), c.rank());
  const bool exclusive = c.integer("exclusive", 0) != 0, reverse = c.integer("reverse", 0) != 0;
  for_lines(c.in(0).dims, only(axis, out.dims.size()), [&](Sizes places) {
    if (reverse) std::ranges::reverse(places);
    double all = first;
    for (std::int64_t p : places) {
      const double before = all;
      all = join(all, at(c.in(0), p));
      out.values[static_cast<std::size_t>(p)] = exclusive ? before : all;
    }
  });
  return {out};
}

std::vector<Numbers> cumulative(Call& c) { return running(c, 0, std::plus()); }
std::vector<Numbers> cumulative_product(Call& c) { return running(c, 1, std::multiplies()); }

// 1 at the first of the largest, 0 elsewhere.
std::vector<Numbers> hardmax(Call& c) {
  Numbers out = c.in(0);
  for_lines(c.in(0).dims, rows_of_scores(c), [&](const Sizes& places) {
    std::int64_t best = places.at(0);
    for (std::int64_t p : places) {
      if (std::isnan(at(c.in(0), p))) throw NotJudged();
      if (at(c.in(0), p) > at(c.in(0), best)) best = p;
    }
    for (std::int64_t p : places) out.values[static_cast<std::size_t>(p)] = p == best ? 1 : 0;
  });
  return {out};
}

double norm_of(const std::vector<double>& x, std::int64_t p) {
  double sum = 0;
  for (double v : x) sum += std::pow(std::fabs(v), static_cast<double>(p));
  return std::pow(sum, 1 / static_cast<double>(p));
}

std::vector<Numbers> lp_normalization(Call& c) {
  Numbers out = c.in(0);
  const std::int64_t p = c.integer("p", 2);
  for_lines(c.in(0).dims, only(c.axis("axis", -1), out.dims.size()), [&](const Sizes& places) {
    std::vector<double> line;
    for (std::int64_t i : places) line.push_back(at(c.in(0), i));
    const double norm = norm_of(line, p);
    if (norm == 0) throw NotJudged();
    for (std::int64_t i : places) out.values[static_cast<std::size_t>(i)] /= norm;
  });
  return {out};
}

std::vector<Numbers> global_lp_pool(Call& c) {
  if (c.opset() < 2) throw NotJudged();
  const Numbers& x = c.in(0);
  const std::int64_t p = c.integer("p", 2);
  std::vector<bool> along(x.dims.size(), true);
  along.at(0) = along.at(1) = false;
  Numbers out{x.dtype, x.dims, {}};
  std::fill(out.dims.begin() + 2, out.dims.end(), 1);
  for_lines(x.dims, along, [&](const Sizes& places) {
    std::vector<double> line;
    for (std::int64_t i : places) line.push_back(at(x, i));
    out.values.push_back(norm_of(line, p));
  });
  return {out};
}

std::vector<Numbers> top_k(Call& c) {
  if (c.opset() < 10) throw NotJudged();
  const Numbers& x = c.in(0);
  const std::size_t axis = c.axis("axis", -1);
  const auto k = static_cast<std::size_t>(c.list(1).at(0));
  const bool largest = c.integer("largest", 1) != 0;
  if (c.integer("sorted", 1) == 0) throw NotJudged();
  Numbers values{x.dtype, x.dims, {}}, indices{DType::i64, x.dims, {}};
  values.dims[axis] = indices.dims[axis] = static_cast<std::int64_t>(k);
  values.values.resize(static_cast<std::size_t>(values.count()));
  indices.values = values.values;
  const Sizes strides = strides_of(values.dims);
  Sizes outer = x.dims;
  outer[axis] = 1;
  std::vector<Sizes> firsts;
  for_index(outer, [&](const Sizes& index) { firsts.push_back(index); });
  std::size_t line = 0;
  for_lines(x.dims, only(axis, x.dims.size()), [&](const Sizes& places) {
    std::vector<std::size_t> order(places.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      const double p = at(x, places[a]), q = at(x, places[b]);
      return largest ? p > q : p < q;
    });
    const std::int64_t first = place(firsts.at(line++), strides);
    for (std::size_t i = 0; i < k; ++i) {
      const auto to =
          static_cast<std::size_t>(first + static_cast<std::int64_t>(i) * strides[axis]);
      values.values[to] = at(x, places[order.at(i)]);
      indices.values[to] = static_cast<double>(order[i]);
    }
  });
  return {values, indices};
}

std::vector<Numbers> matmul(Call& c) {
  Numbers a = c.in(0), b = c.in(1);
  const bool row = a.dims.size() == 1, column = b.dims.size() == 1;
  if (row) a.dims.insert(a.dims.begin(), 1);
  if (column) b.dims.push_back(1);
  const std::size_t ra = a.dims.size(), rb = b.dims.size(), rank = std::max(ra, rb);
  const std::int64_t m = a.dims[ra - 2], k = a.dims[ra - 1], n = b.dims[rb - 1];
  if (b.dims[rb - 2] != k) throw NotJudged();
  Numbers out{a.dtype, Sizes(rank), {}};
  const auto size = [&](const Sizes& s, std::size_t i) {
    return i + s.size() < rank ? 1 : s[i + s.size() - rank];
  };
  for (std::size_t i = 0; i + 2 < rank; ++i)
    out.dims[i] = size(a.dims, i) == 1 ? size(b.dims, i) : size(a.dims, i);
  out.dims[rank - 2] = m;
  out.dims[rank - 1] = n;
  check_work(static_cast<double>(out.count()) * static_cast<double>(k));
  const Sizes sa = strides_of(a.dims), sb = strides_of(b.dims);
  for_index(out.dims, [&](const Sizes& index) {
    std::int64_t from_a = index[rank - 2] * k, from_b = index[rank - 1];
    for (std::size_t i = 0; i + 2 < rank; ++i) {
      if (size(a.dims, i) != 1) from_a += index[i] * sa[i + ra - rank];
      if (size(b.dims, i) != 1) from_b += index[i] * sb[i + rb - rank];
    }
    double sum = 0;
    for (std::int64_t i = 0; i < k; ++i) sum += at(a, from_a + i) * at(b, from_b + i * n);
    out.values.push_back(sum);
  });
  if (row) out.dims.erase(out.dims.end() - 2);
  if (column) out.dims.pop_back();
  return {out};
}

std::vector<Numbers> gemm(Call& c) {
  if (c.opset() < 7) throw NotJudged();
  const Numbers &a = c.in(0), &b = c.in(1);
  const bool ta = c.integer("transA", 0) != 0, tb = c.integer("transB", 0) != 0;
  const double alpha = c.real("alpha", 1), beta = c.real("beta", 1);
  const std::int64_t m = a.dims.at(ta ? 1 : 0), k = a.dims.at(ta ? 0 : 1),
                     n = b.dims.at(tb ? 0 : 1);
  check_work(static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k));
  Numbers out{a.dtype, {m, n}, {}};
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t l = 0; l < k; ++l)
        sum += at(a, ta ? l * m + i : i * k + l) * at(b, tb ? j * k + l : l * n + j);
      sum *= alpha;
      if (c.has(2)) {
        Sizes dims = c.in(2).dims;
        while (dims.size() < 2) dims.insert(dims.begin(), 1);
        sum += beta * at(c.in(2), (dims[0] == 1 ? 0 : i) * dims[1] + (dims[1] == 1 ? 0 : j));
      }
      out.values.push_back(sum);
    }
  return {out};
}

// Gives the axes of "..." labels like the others: for two axes "b...k" becomes "b10k". Counting
// from the last axis gives equal labels to axes that broadcast against each other.
std::string with_digits(std::string term, std::size_t axes) {
  if (axes > 10) throw NotJudged();
  std::string digits;
  for (std::size_t i = axes; i-- > 0;) digits += static_cast<char>('0' + i);
  const std::size_t dots = term.find("...");
  return dots == term.npos ? term : term.replace(dots, 3, digits);
}

std::vector<Numbers> einsum(Call& c) {
  std::string text = c.text("equation", "");
  std::erase(text, ' ');
  const std::size_t arrow = text.find("->");
  std::vector<std::string> terms(1);
  for (char letter : text.substr(0, arrow))
    letter == ',' ? terms.emplace_back() : terms.back() += letter;
  std::map<char, std::int64_t> sizes;
  std::map<char, int> times;
  std::size_t most = 0;  // axes of one "..."
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const Sizes& dims = c.in(i).dims;
    if (terms[i].find('.') != terms[i].npos) {
      const std::size_t rest = dims.size() + 3 - terms[i].size();
      terms[i] = with_digits(terms[i], rest);
      most = std::max(most, rest);
    }
    for (std::size_t k = 0; k < terms[i].size(); ++k) {
      ++times[terms[i][k]];
      std::int64_t& size = sizes.try_emplace(terms[i][k], 1).first->second;
      if (size == 1) size = dims.at(k);
    }
  }
  std::string result = "...";  // then what stands once
  if (arrow != text.npos)
    result = text.substr(arrow + 2);
  else
    for (const auto& [letter, n] : times)
      if (n == 1 && letter > '9') result += letter;
  result = with_digits(result, most);
  std::string letters = result;
  for (const auto& [letter, size] : sizes)
    if (result.find(letter) == result.npos) letters += letter;
  Sizes all;
  double work = 1;
  for (char letter : letters) {
    all.push_back(sizes.at(letter));
    work *= static_cast<double>(all.back());
  }
  check_work(work);
  Numbers out{
      c.in(0).dtype, {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(result.size())}, {}};
  out.values.assign(static_cast<std::size_t>(out.count()), 0);
  const Sizes to = strides_of(out.dims);
  for_index(all, [&](const Sizes& index) {
    double x = 1;
    for (std::size_t i = 0; i < terms.size(); ++i) {
      Sizes from;
      for (std::size_t k = 0; k < terms[i].size(); ++k)
        from.push_back(c.in(i).dims[k] == 1 ? 0 : index[letters.find(terms[i][k])]);
      x *= at(c.in(i), place(from, strides_of(c.in(i).dims)));
    }
    const Sizes where(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(result.size()));
    out.values[static_cast<std::size_t>(place(where, to))] += x;
  });
  return {out};
}

// The axis of channels is the second.
std::int64_t channel_of(const Sizes& index) { return index.size() < 2 ? 0 : index[1]; }

// In training by mean and variance of the batch, which are also mixed into what is remembered.
std::vector<Numbers> batch_normalization(Call& c) {
  const bool trains = c.integer("training_mode", 0) != 0;
  if (c.opset() < (trains ? 14 : 9) || c.in(0).dims.size() < 2) throw NotJudged();
  const double epsilon = c.real("epsilon", 1e-5), momentum = c.real("momentum", 0.9);
  Numbers out = c.in(0), mean = c.in(3), variance = c.in(4);
  if (trains) {
    const auto n = static_cast<double>(out.count()) / static_cast<double>(out.dims[1]);
    for (Numbers* each : {&mean, &variance}) each->values.assign(each->values.size(), 0);
    for (const bool of_variance : {false, true}) {
      std::size_t i = 0;
      for_index(out.dims, [&](const Sizes& index) {
        const auto k = static_cast<std::size_t>(index[1]);
        const double x = out.values[i++];
        double& to = of_variance ? variance.values.at(k) : mean.values.at(k);
        to += of_variance ? (x - mean.values[k]) * (x - mean.values[k]) / n : x / n;
      });
    }
  }
  std::size_t i = 0;
  for_index(out.dims, [&](const Sizes& index) {
    const std::int64_t k = channel_of(index);
    double& x = out.values[i++];
    x = (x - at(mean, k)) / std::sqrt(at(variance, k) + epsilon) * at(c.in(1), k) + at(c.in(2), k);
  });
  if (!trains) return {out};
  for (std::size_t k = 0; k < mean.values.size(); ++k) {
    mean.values[k] = c.in(3).values.at(k) * momentum + mean.values[k] * (1 - momentum);
    variance.values[k] = c.in(4).values.at(k) * momentum + variance.values[k] * (1 - momentum);
  }
  return {out, mean, variance};
}

// (x - mean) / (sqrt(variance + epsilon) + more) along each line.
Numbers normalized(const Numbers& x, const std::vector<bool>& along, double epsilon,
                   double more = 0) {
  Numbers out = x;
  for_lines(x.dims, along, [&](const Sizes& places) {
    const auto n = static_cast<double>(places.size());
    double mean = 0, variance = 0;
    for (std::int64_t p : places) mean += at(x, p) / n;
    for (std::int64_t p : places) variance += (at(x, p) - mean) * (at(x, p) - mean) / n;
    for (std::int64_t p : places)
      out.values[static_cast<std::size_t>(p)] =
          (at(x, p) - mean) / (std::sqrt(variance + epsilon) + more);
  });
  return out;
}

std::vector<Numbers> layer_normalization(Call& c) {
  const Numbers& x = c.in(0);
  const std::size_t axis = c.axis("axis", -1);
  static_cast<void>(c.integer("stash_type", 1));
  std::vector<bool> along(x.dims.size(), false);
  std::fill(along.begin() + static_cast<std::ptrdiff_t>(axis), along.end(), true);
  Numbers out = normalized(x, along, c.real("epsilon", 1e-5));
  const Sizes inner(x.dims.begin() + static_cast<std::ptrdiff_t>(axis), x.dims.end());
  const std::int64_t line = product(inner);
  for (std::size_t i = 0; i < out.values.size(); ++i) {
    const std::int64_t k = static_cast<std::int64_t>(i) % line;
    if (c.in(1).count() != line || (c.has(2) && c.in(2).count() != line)) throw NotJudged();
    out.values[i] = out.values[i] * at(c.in(1), k) + (c.has(2) ? at(c.in(2), k) : 0);
  }
  return {out};
}

std::vector<Numbers> mean_variance_normalization(Call& c) {
  const Numbers& x = c.in(0);
  std::vector<bool> along(x.dims.size(), false);
  for (std::int64_t a : c.integers("axes").value_or(Sizes{0, 2, 3}))
    along[c.axis(a, c.rank())] = true;
  // The function that the operator stands for divides by the deviation plus this number.
  return {normalized(x, along, 0, 1e-9)};
}

// By the root of the mean of squares. SimplifiedLayerNormalization is the name of an older form.
std::vector<Numbers> rms_normalization(Call& c) {
  const Numbers &x = c.in(0), &scale = c.in(1);
  const std::size_t axis = c.axis("axis", -1);
  static_cast<void>(c.integer("stash_type", 1));
  const double epsilon = c.real("epsilon", 1e-5);
  const std::int64_t line =
      product(Sizes(x.dims.begin() + static_cast<std::ptrdiff_t>(axis), x.dims.end()));
  if (scale.count() != line) throw NotJudged();
  std::vector<bool> along(x.dims.size(), false);
  std::fill(along.begin() + static_cast<std::ptrdiff_t>(axis), along.end(), true);
  Numbers out = x;
  for_lines(x.dims, along, [&](const Sizes& places) {
    double squares = 0;
    for (std::int64_t p : places) squares += at(x, p) * at(x, p) / static_cast<double>(line);
    for (std::int64_t p : places)
      out.values[static_cast<std::size_t>(p)] *= at(scale, p % line) / std::sqrt(squares + epsilon);
  });
  return {out};
}

std::vector<Numbers> instance_normalization(Call& c) {
  const Numbers& x = c.in(0);
  std::vector<bool> along(x.dims.size(), true);
  along.at(0) = along.at(1) = false;
  Numbers out = normalized(x, along, c.real("epsilon", 1e-5));
  std::size_t i = 0;
  for_index(out.dims, [&](const Sizes& index) {
    out.values[i] = out.values[i] * at(c.in(1), index[1]) + at(c.in(2), index[1]);
    ++i;
  });
  return {out};
}

std::vector<Numbers> group_normalization(Call& c) {
  if (c.opset() < 21) throw NotJudged();  // scales were by group
  Numbers x = c.in(0);
  const Sizes dims = x.dims;
  const std::int64_t groups = c.integer("num_groups", 1);
  static_cast<void>(c.integer("stash_type", 1));
  x.dims = {dims.at(0), groups, x.count() / std::max<std::int64_t>(dims[0] * groups, 1)};
  Numbers out = normalized(x, {false, false, true}, c.real("epsilon", 1e-5));
  out.dims = dims;
  std::size_t i = 0;
  for_index(out.dims, [&](const Sizes& index) {
    out.values[i] = out.values[i] * at(c.in(1), index[1]) + at(c.in(2), index[1]);
    ++i;
  });
  return {out};
}

std::vector<Numbers> lrn(Call& c) {
  const Numbers& x = c.in(0);
  const double alpha = c.real("alpha", 1e-4), beta = c.real("beta", 0.75), bias = c.real("bias", 1);
  const std::int64_t size = c.integer("size", 1);
  const Sizes strides = strides_of(x.dims);
  Numbers out{x.dtype, x.dims, {}};
  for_index(x.dims, [&](Sizes index) {
    const std::int64_t k = index.at(1);
    const double here = at(x, place(index, strides));
    double squares = 0;
    for (std::int64_t i = std::max<std::int64_t>(0, k - (size - 1) / 2);
         i <= std::min(x.dims[1] - 1, k + size / 2); ++i) {
      index[1] = i;
      squares += at(x, place(index, strides)) * at(x, place(index, strides));
    }
    out.values.push_back(here / std::pow(bias + alpha / static_cast<double>(size) * squares, beta));
  });
  return {out};
}

// Of real signals [.., n, 1] and complex ones [.., n, 2], without another length.
std::vector<Numbers> dft(Call& c) {
  const Numbers& x = c.in(0);
  const bool inverse = c.integer("inverse", 0) != 0, one_sided = c.integer("onesided", 0) != 0;
  const std::int64_t given = c.opset() < 20 ? c.integer("axis", 1)
                             : c.has(2)     ? c.list(2).at(0)
                                            : -2;
  const std::size_t axis = c.axis(given, c.rank());
  const std::int64_t n = x.dims[axis], parts = x.dims.back();
  if (axis + 1 >= x.dims.size() || (inverse && one_sided) || (c.has(1) && c.list(1).at(0) != n))
    throw NotJudged();
  Numbers out{x.dtype, x.dims, {}};
  out.dims[axis] = one_sided ? n / 2 + 1 : n;
  out.dims.back() = 2;
  check_work(static_cast<double>(out.count()) * static_cast<double>(n));
  const Sizes strides = strides_of(x.dims);
  for_index(out.dims, [&](Sizes index) {
    const std::int64_t k = index[axis], part = index.back();
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      index[axis] = i;
      index.back() = 0;
      const std::int64_t from = place(index, strides);
      const double re = at(x, from), im = parts == 2 ? at(x, from + 1) : 0,
                   turn = (inverse ? 2 : -2) * M_PI * static_cast<double>(k * i % n) /
                          static_cast<double>(n);
      sum += part == 0 ? re * std::cos(turn) - im * std::sin(turn)
                       : re * std::sin(turn) + im * std::cos(turn);
    }
    out.values.push_back(inverse ? sum / static_cast<double>(n) : sum);
  });
  return {out};
}

constexpr MeaningRow sum_rows[] = {
    {"ReduceSum", reduce},
    {"ReduceMean", reduce},
    {"ReduceMax", reduce, Kind::rounds},
    {"ReduceMin", reduce, Kind::rounds},
    {"ReduceProd", reduce},
    {"ReduceL1", reduce},
    {"ReduceL2", reduce},
    {"ReduceSumSquare", reduce},
    {"ReduceLogSum", reduce},
    {"ReduceLogSumExp", reduce},
    {"ArgMax", arg, Kind::rounds},
    {"ArgMin", arg, Kind::rounds},
    {"Softmax", softmax},
    {"LogSoftmax", softmax},
    {"CumSum", cumulative},
    {"CumProd", cumulative_product},
    {"Hardmax", hardmax, Kind::rounds},
    {"LpNormalization", lp_normalization},
    {"GlobalLpPool", global_lp_pool},
    {"MeanVarianceNormalization", mean_variance_normalization},
    {"RMSNormalization", rms_normalization},
    {"SimplifiedLayerNormalization", rms_normalization},
    {"TopK", top_k, Kind::rounds},
    {"MatMul", matmul},
    {"Gemm", gemm},
    {"Einsum", einsum},
    {"BatchNormalization", batch_normalization},
    {"LayerNormalization", layer_normalization},
    {"InstanceNormalization", instance_normalization},
    {"GroupNormalization", group_normalization},
    {"LRN", lrn},
    {"DFT", dft},
};

}  // namespace

std::span<const MeaningRow> sum_meanings() { return sum_rows; }

}  // namespace hone::onnx
