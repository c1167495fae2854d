#include "verify/model/input_moves.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace hone {

namespace {

constexpr double largest_moved = 0x1p20;                       // integers
constexpr double largest_sizes = 16, largest_of_sizes = 4096;  // of all elements, of one

// Elements of small inputs, such as shapes, scales and axes, are changed one by one.
constexpr std::int64_t most_moved_elements = 16, most_moved_pairs = 8;

class Moves {
 public:
  Moves(std::size_t param, const Array& now, const Contents& contents, double excess,
        bool may_be_sizes, std::vector<InputMove>& out)
      : param_(param),
        now_(now),
        contents_(contents),
        excess_(excess),
        are_sizes_(may_be_sizes && now.count() <= most_moved_elements),
        out_(out) {
    if (excess_ > largest_moved) excess_ = 0;
  }

  void add_all() {
    const DType t = now_.dtype();
    if (t != DType::text && t != DType::b1) shift();
    for (const Contents& c : whole_contents(t, largest_of_all())) add(c);
    if (t == DType::text) return;
    if (now_.count() > most_moved_elements) return;
    for (std::int64_t k = 0; k < now_.count(); ++k) elements_.push_back(now_.real(k));
    if (t == DType::b1) return flip();
    for (std::size_t k = 0; k < elements_.size(); ++k) change(k);
    if (!is_float(t) && now_.count() <= most_moved_pairs) change_pairs();
  }

 private:
  double largest_of_all() const { return are_sizes_ ? largest_sizes : largest_moved; }

  void add(const Contents& c) {
    if (!(c == contents_)) out_.push_back({.param = param_, .contents = c});
  }
  void add(std::vector<double> elements) {
    const double most = are_sizes_ ? largest_of_sizes : largest_moved;
    if (std::ranges::any_of(elements, [&](double x) { return std::abs(x) > most; })) return;
    add({.kind = Contents::Kind::elements, .elements = std::move(elements)});
  }

  // The whole range.
  void shift() {
    const bool has_range = contents_.kind == Contents::Kind::range;
    const double low = has_range                ? contents_.low
                       : is_float(now_.dtype()) ? -1
                                                : 0,
                 high = has_range                ? contents_.high
                        : is_float(now_.dtype()) ? 1
                                                 : 7;
    // By less too: the function may multiply.
    for (const double part : {1.0, 0.5, 0.25, 0.125, 0.0625})
      for (const double by : {excess_ * part, -excess_ * part})
        if (const double whole = is_float(now_.dtype()) ? by : std::trunc(by);
            whole != 0 && std::abs(high + whole) <= largest_of_all())
          add(Contents::range(low + whole, high + whole));
    if (low < high) {
      const double middle =
          is_float(now_.dtype()) ? (low + high) / 2 : std::trunc((low + high) / 2);
      for (const double x : {low, middle, high}) add(Contents::range(x, x));
    }
  }

  void flip() {
    for (std::size_t k = 0; k < elements_.size(); ++k) {
      std::vector<double> next = elements_;
      next[k] = 1 - next[k];
      add(std::move(next));
    }
  }

  void change(std::size_t k) {
    const double x = elements_[k];
    std::set<double> tried = {x};
    const auto to = [&](double other) {
      if (!tried.insert(other).second) return;
      std::vector<double> next = elements_;
      next[k] = other;
      add(std::move(next));
    };
    for (const double by : {excess_, -excess_, 1.0, -1.0}) to(x + by);
    for (const double other : {0, 1, 2, -1}) to(other);
    to(2 * x);
    to(is_float(now_.dtype()) ? x / 2 : std::trunc(x / 2));
    if (is_float(now_.dtype())) to(0.5);
  }

  // Their sum, or their product, remains.
  void change_pairs() {
    for (std::size_t i = 0; i < elements_.size(); ++i)
      for (std::size_t k = 0; k < elements_.size(); ++k) {
        if (i == k) continue;
        const auto to = [&](double a, double b) {
          std::vector<double> next = elements_;
          next[i] = a;
          next[k] = b;
          add(std::move(next));
        };
        const double a = elements_[i], b = elements_[k], half = std::trunc(excess_ / 2);
        to(a + 1, b - 1);
        if (half > 1) to(a + half, b - half);
        if (excess_ > 1) to(a + excess_, b - excess_);
        for (const double by : {2, 3})
          if (b != 0 && std::fmod(b, by) == 0) to(a * by, b / by);
      }
  }

  std::size_t param_;
  const Array& now_;
  const Contents& contents_;
  double excess_;
  bool are_sizes_;
  std::vector<InputMove>& out_;
  std::vector<double> elements_;
};

}  // namespace

InputState moved(InputState state, const InputMove& m) {
  if (m.symbol.empty())
    state.contents[m.param] = m.contents;
  else
    state.sizes[m.symbol] = m.size;
  return state;
}

std::vector<Contents> whole_contents(DType t, double most) {
  const auto range = Contents::range;
  if (t == DType::text) return {range(0, 7), range(0, 1), range(0, 0)};
  if (t == DType::b1) return {range(1, 1), range(0, 0)};
  if (is_float(t))
    return {range(0, 1), range(1, 1),  range(0, 0.5), range(0, 0.125),
            range(0, 0), range(-1, 0), range(1, 2),   range(2, 2)};
  std::vector<Contents> out = {{.kind = Contents::Kind::listed, .listed = Listed::shape},
                               range(1, 1),
                               range(0, 0),
                               range(0, 1),
                               range(1, 2),
                               {.kind = Contents::Kind::listed, .listed = Listed::counting}};
  if (t == DType::u8) out.push_back({.kind = Contents::Kind::image});
  for (double n = 2; n <= most; n *= n < 256 ? 2 : 4) out.push_back(range(n, n));
  return out;
}

void add_moves(std::size_t i, const Array& now, const Contents& contents, double excess,
               bool may_be_sizes, std::vector<InputMove>& out) {
  Moves(i, now, contents, excess, may_be_sizes, out).add_all();
}

std::vector<InputMove> size_moves(const Dims& symbols, const Sizing& sizes, double excess) {
  std::int64_t all = 1;
  for (const auto& [name, size] : sizes) all += size;
  std::vector<InputMove> out;
  for (const Dim& s : symbols) {
    const auto at = sizes.find(s.name());
    if (at == sizes.end()) continue;
    const std::int64_t n = at->second;
    // The sum of all, and those of two others: an attention mask is as long as cached and new
    // tokens together.
    std::set<std::int64_t> tried = {n};
    const auto to = [&](std::int64_t size) {
      if (tried.insert(size).second && size >= s.low() && size <= s.high())
        out.push_back({.symbol = s.name(), .size = size});
    };
    if (excess > 0 && excess <= largest_moved) {
      to(n + static_cast<std::int64_t>(excess));
      to(n - static_cast<std::int64_t>(excess));
    }
    to(all);
    for (const auto& [a, size_a] : sizes)
      for (const auto& [b, size_b] : sizes)
        if (a < b && a != s.name() && b != s.name()) to(size_a + size_b);
    for (const std::int64_t size : {2 * n, n + 1, n - 1}) to(size);
  }
  return out;
}

}  // namespace hone
