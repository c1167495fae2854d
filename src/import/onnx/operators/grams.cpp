// TfIdfVectorizer over integers: compares every n-gram of a pool with every position of the input.
#include <algorithm>

#include "base/amount.h"
#include "import/common/build.h"
#include "import/onnx/node/context.h"
#include "import/onnx/operators/list.h"

namespace hone::onnx {

namespace {

// The grams of one length, and the output columns of their counts.
struct Pool {
  std::int64_t length = 0;
  std::vector<std::int64_t> items;   // `length` items per gram
  std::size_t first = 0, count = 0;  // among all grams
};

// ngram_counts[i] is the start of the grams of length i + 1 in the items.
std::vector<Pool> pools_of(NodeContext& c, const std::vector<std::int64_t>& starts,
                           const std::vector<std::int64_t>& items) {
  std::vector<Pool> out;
  std::size_t first = 0;
  const auto total = static_cast<std::int64_t>(items.size());
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t begin = starts[i], end = i + 1 < starts.size() ? starts[i + 1] : total;
    const auto length = static_cast<std::int64_t>(i) + 1;
    if (begin < 0 || end < begin || end > total || (end - begin) % length != 0)
      c.fail(cat("attribute 'ngram_counts' puts the ", length, "-grams at ", begin, " to ", end,
                 " of ", total, " pool entries, expected an ascending range of whole n-grams"));
    Pool p{length,
           {items.begin() + begin, items.begin() + end},
           first,
           static_cast<std::size_t>((end - begin) / length)};
    first += p.count;
    out.push_back(std::move(p));
  }
  return out;
}

// Occurrences of each gram in the rows of x [rows, n], with distance `step` between items.
Value counts_of(Value x, const Pool& p, std::int64_t step) {
  const Dim n = x.shape()[1], places = max(n - Dim((p.length - 1) * step), 0);
  const auto grams = static_cast<std::int64_t>(p.count);
  Value all = constant(x.graph(), Array::of<std::int64_t>(DType::i64, {grams, p.length}, p.items));
  Value found;
  for (std::int64_t k = 0; k < p.length; ++k) {
    Value items = unsqueeze(slice_axis(x, 1, min(Dim(k * step), n - places), places), {2});
    Value same = joined(ops::eq, items, take_axis(all, 1, k));
    found = found ? ops::bit_and(found, same) : same;
  }
  return reduce_axes(ops::reduce_sum, cast_to(found, DType::f32), {1});
}

// Grams of one item have no distance between items.
Value counts_of(Value x, const Pool& p, std::int64_t most_skipped, std::int64_t least,
                std::int64_t most) {
  const Shape none{x.shape()[0], static_cast<std::int64_t>(p.count)};
  Value sum = filled(x.graph(), DType::f32, none, 0);
  if (p.length < least || p.length > most || p.count == 0) return sum;
  for (std::int64_t skipped = 0; skipped <= (p.length == 1 ? 0 : most_skipped); ++skipped)
    if ((x.shape()[1] - Dim((p.length - 1) * (skipped + 1))).high() > 0)
      sum = plus(sum, counts_of(x, p, skipped + 1));
  return sum;
}

// [grams, columns]: 1 in the output column of a gram.
Value columns_of(NodeContext& c, const std::vector<std::int64_t>& index, std::int64_t columns) {
  const auto grams = static_cast<std::int64_t>(index.size());
  Array to = Array::zeros(DType::f32, {grams, columns});
  for (std::int64_t i = 0; i < grams; ++i)
    to.set_real(i * columns + index[static_cast<std::size_t>(i)], 1);
  return constant(c.graph(), to);
}

Values tf_idf(NodeContext& c) {
  constexpr std::int64_t most_columns = 1 << 20, most_skips = 1024;
  Value x = c.in(0);
  if (c.has_attribute("pool_strings"))
    c.unsupported("attribute 'pool_strings' is not supported; use integers (pool_int64s)");
  if (is_float(x.dtype()) || x.rank() < 1 || x.rank() > 2)
    c.bad_input(0, "X", "integers of one or two axes");
  const std::int64_t least = c.integer("min_gram_length", 1),
                     most = c.integer("max_gram_length", 1), skips = c.integer("max_skip_count", 0);
  const std::string mode(c.text("mode", "TF"));
  if (skips < 0 || skips > most_skips)
    c.unsupported(cat("attribute 'max_skip_count' is ", skips, ", expected 0 to ", most_skips));
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    c.bad_attribute("mode", mode, "TF, IDF or TFIDF");
  auto starts = c.integers("ngram_counts"), index = c.integers("ngram_indexes"),
       items = c.integers("pool_int64s");
  auto weights = c.reals("weights");
  if (!starts || !index || !items)
    c.fail(
        "attribute 'ngram_counts', 'ngram_indexes' or 'pool_int64s' is missing; all are required");
  const std::vector<Pool> pools = pools_of(c, *starts, *items);
  const std::size_t grams = pools.empty() ? 0 : pools.back().first + pools.back().count;
  std::int64_t columns = 0;
  for (std::int64_t i : *index) {
    if (i < 0 || i >= most_columns)
      c.fail(cat("attribute 'ngram_indexes' contains ", i, ", expected 0 to ", most_columns - 1));
    columns = std::max(columns, i + 1);
  }
  if (index->size() != grams || (weights && weights->size() != grams))
    c.fail(cat("the pool has ", grams, " n-grams, but 'ngram_indexes' has ",
               amount(index->size(), "entry", "entries"), " and 'weights' ",
               weights ? weights->size() : grams, ", expected equal numbers"));
  Value rows = cast_to(x.rank() == 1 ? unsqueeze(x, {0}) : x, DType::i64);
  Values counts;
  for (const Pool& p : pools) counts.push_back(counts_of(rows, p, skips, least, most));
  if (counts.empty()) c.fail("attribute 'ngram_counts' is empty, expected at least one entry");
  Value all = concat_values(counts, 1);
  if (mode == "IDF") all = ops::minimum(all, constant_like(all, 1));
  if (mode != "TF" && weights)
    all = times(
        all, constant(c.graph(),
                      Array::of<float>(DType::f32, {static_cast<std::int64_t>(grams)}, *weights)));
  Value out = ops::matmul(all, columns_of(c, *index, columns));
  return {x.rank() == 1 ? squeeze(out, {0}) : out};
}

constexpr ImportEntry grams_table[] = {{"TfIdfVectorizer", tf_idf}};

}  // namespace

std::span<const ImportEntry> gram_imports() { return grams_table; }

}  // namespace hone::onnx
