// Einsum: pairs of operands are contracted from left to right.
#include <algorithm>
#include <map>
#include <set>

#include "base/amount.h"
#include "import/common/build.h"
#include "import/onnx/node/context.h"
#include "import/onnx/operators/list.h"

namespace hone::onnx {

namespace {

// One letter per axis; '0', '1', ... count the axes of "..." from the back.
struct Term {
  Value value;
  std::string labels;
};

std::string without_spaces(std::string_view text) {
  std::string out;
  for (char c : text)
    if (c != ' ') out += c;
  return out;
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> out(1);
  for (char c : text) {
    if (c == at)
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

// "..." becomes one digit for each axis without a letter.
std::string labelled(NodeContext& c, const std::string& text, int rank) {
  const std::size_t dots = text.find("...");
  const auto named = static_cast<int>(text.size()) - (dots == text.npos ? 0 : 3);
  const int rest = rank - named;
  if (dots == text.npos ? rest != 0 : (rest < 0 || rest > 10))
    c.fail(cat("'", text, "' names ", named, dots == text.npos ? "" : " or more",
               " axes, but its input has ", rank));
  std::string out = text;
  if (dots == text.npos) return out;
  std::string digits;
  for (int i = rest; i-- > 0;) digits += static_cast<char>('0' + i);
  return out.replace(dots, 3, digits);
}

// Repeated letters select a diagonal.
Term with_distinct_labels(Term t) {
  for (std::size_t i = 0; i < t.labels.size(); ++i) {
    const std::size_t k = t.labels.find(t.labels[i], i + 1);
    if (k == t.labels.npos) continue;
    Shape square{t.value.shape()[static_cast<int>(i)], t.value.shape()[static_cast<int>(k)]};
    Value on = ops::eq(iota_value(t.value.graph(), DType::i64, square, 0),
                       iota_value(t.value.graph(), DType::i64, square, 1));
    Dims dims = ones(t.labels.size());
    dims[i] = square[0];
    dims[k] = square[1];
    t.value = sum_over(where_or(reshape_to(on, dims), t.value, 0), {static_cast<int>(k)});
    t.labels.erase(k, 1);
    --i;
  }
  return t;
}

bool holds(const std::string& labels, char c) { return labels.find(c) != labels.npos; }

// Axes that nothing else uses are summed.
Term summed(Term t, const std::string& read) {
  Axes axes;
  std::string left;
  for (std::size_t i = 0; i < t.labels.size(); ++i) {
    if (holds(read, t.labels[i]))
      left += t.labels[i];
    else
      axes.push_back(static_cast<int>(i));
  }
  return axes.empty() ? t : Term{sum_over(t.value, axes), left};
}

// An axis of size 1 broadcasts against the other operand's, so it can be removed.
Term without_ones(Term t, const Term& other) {
  for (std::size_t i = 0; i < t.labels.size(); ++i) {
    const std::size_t k = other.labels.find(t.labels[i]);
    const int axis = static_cast<int>(i);
    if (k == other.labels.npos || t.value.shape()[axis] != Dim(1) ||
        other.value.shape()[static_cast<int>(k)] == Dim(1))
      continue;
    t.value = squeeze(t.value, {axis});
    t.labels.erase(i, 1);
    --i;
  }
  return t;
}

Term contracted(Term a, Term b, const std::string& read) {
  a = summed(a, read + b.labels);
  b = summed(b, read + a.labels);
  a = without_ones(a, b);
  b = without_ones(b, a);
  AxisPairs batch, contract;
  std::string labels, of_a, of_b;
  for (std::size_t i = 0; i < a.labels.size(); ++i) {
    const std::size_t k = b.labels.find(a.labels[i]);
    if (k == b.labels.npos) {
      of_a += a.labels[i];
    } else if (holds(read, a.labels[i])) {
      batch.emplace_back(static_cast<int>(i), static_cast<int>(k));
      labels += a.labels[i];
    } else {
      contract.emplace_back(static_cast<int>(i), static_cast<int>(k));
    }
  }
  for (char l : b.labels)
    if (!holds(a.labels, l)) of_b += l;
  return {dot_general(a.value, b.value, batch, contract), labels + of_a + of_b};
}

// Without "->": the letters that occur once, in alphabetical order, after the axes of "...".
std::string implied_result(const std::vector<Term>& terms) {
  std::map<char, int> counts;
  for (const Term& t : terms)
    for (char l : t.labels) ++counts[l];
  std::string dots, letters;
  for (auto [l, n] : counts) {
    if (l >= '0' && l <= '9') dots.insert(dots.begin(), l);
    if ((l < '0' || l > '9') && n == 1) letters += l;
  }
  return dots + letters;
}

Values einsum(NodeContext& c) {
  const std::string equation = without_spaces(c.text("equation", ""));
  const std::size_t arrow = equation.find("->");
  const std::vector<std::string> lists = split(equation.substr(0, arrow), ',');
  if (lists.size() != c.inputs())
    c.fail(cat("'", equation, "' has ", amount(lists.size(), "term", "terms"), ", expected ",
               c.inputs(), ", one for each input"));
  std::vector<Term> terms;
  std::optional<int> dots;  // axes of "...", the same number everywhere
  for (std::size_t i = 0; i < lists.size(); ++i) {
    Term t{c.in(i), labelled(c, lists[i], c.in(i).rank())};
    if (holds(lists[i], '.')) {
      const auto here = static_cast<int>(
          std::ranges::count_if(t.labels, [](char l) { return l >= '0' && l <= '9'; }));
      if (dots.value_or(here) != here)
        c.fail(cat("'", equation, "': '...' covers ", here, " axes of input ", i, " and ", *dots,
                   " of an earlier one, expected equal numbers"));
      dots = here;
    }
    terms.push_back(std::move(t));
  }
  std::string result = implied_result(terms);
  for (Term& t : terms) t = with_distinct_labels(std::move(t));
  if (arrow != equation.npos) {
    const std::string text = equation.substr(arrow + 2);
    const int rest = text.find("...") == text.npos ? 0 : 3 - dots.value_or(0);
    result = labelled(c, text, static_cast<int>(text.size()) - rest);
  }
  while (terms.size() > 1) {
    std::string read = result;
    for (std::size_t i = 2; i < terms.size(); ++i) read += terms[i].labels;
    terms[0] = contracted(terms[0], terms[1], read);
    terms.erase(terms.begin() + 1);
  }
  Term last = summed(terms[0], result);
  Axes order;
  for (char l : result) {
    const std::size_t at = last.labels.find(l);
    if (at == last.labels.npos)
      c.fail(cat("'", equation, "': axis '", l, "' of the result is not an axis of any input"));
    order.push_back(static_cast<int>(at));
  }
  if (std::set<char>(result.begin(), result.end()).size() != result.size())
    c.fail(cat("'", equation, "': an axis appears twice in the result"));
  return {transpose_by(last.value, order)};
}

constexpr ImportEntry einsum_table[] = {{"Einsum", einsum, 12}};

}  // namespace

std::span<const ImportEntry> einsum_imports() { return einsum_table; }

}  // namespace hone::onnx
