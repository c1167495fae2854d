// Host functions on tensors of strings.
#include "base/error.h"
#include "host/function.h"
#include "host/regex.h"
#include "host/text.h"
#include "type/text.h"

namespace hone {

namespace {

using Numbers = std::span<const std::uint64_t>;

bool are_alike(const HostCall& c, std::size_t i, std::size_t k) {
  return c.at(i).dims == c.at(k).dims;
}
bool is_one(const HostCall& c, std::size_t i) { return c.at(i).count() == 1; }

// ==== text_literal: bytes, ends, texts

bool literal_fits(const HostCall& c) { return c.at(0).dims.size() == 1 && are_alike(c, 1, 2); }

void make_literal(const HostCall& c) {
  const std::span<const char> bytes = c.at(0).as<const char>();
  const auto ends = c.at(1).as<const std::int64_t>();
  const auto out = c.at(2).as<std::uint64_t>();
  std::int64_t start = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (ends[i] < start || ends[i] > static_cast<std::int64_t>(bytes.size()))
      throw UserError("text_literal: string ", i, " is bytes ", start, " to ", ends[i], " of ",
                      bytes.size());
    out[i] = text_number({bytes.data() + start, static_cast<std::size_t>(ends[i] - start)});
    start = ends[i];
  }
}

// ==== text_concat: a, b, both

bool concat_fits(const HostCall& c) { return are_alike(c, 0, 2) && are_alike(c, 1, 2); }

void concatenate(const HostCall& c) {
  const Numbers a = c.at(0).as<const std::uint64_t>(), b = c.at(1).as<const std::uint64_t>();
  const auto out = c.at(2).as<std::uint64_t>();
  std::string both;
  for (std::size_t i = 0; i < out.size(); ++i) {
    both = text_of(a[i]);
    both += text_of(b[i]);
    out[i] = text_number(both);
  }
}

// ==== text_pieces: x, delimiter, counts; text_split: x, delimiter, pieces

bool pieces_fit(const HostCall& c) { return is_one(c, 1) && are_alike(c, 0, 2); }

void count_all_pieces(const HostCall& c) {
  const Numbers x = c.at(0).as<const std::uint64_t>();
  const std::string_view delimiter = text_of(c.at(1).as<const std::uint64_t>()[0]);
  const auto out = c.at(2).as<std::int64_t>();
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = count_pieces(text_of(x[i]), delimiter, c.setting("count"));
}

bool split_fits(const HostCall& c) {
  std::vector<std::int64_t> dims = c.at(0).dims;
  if (c.at(2).dims.empty()) return false;
  dims.push_back(c.at(2).dims.back());
  return is_one(c, 1) && dims == c.at(2).dims;
}

void split_all(const HostCall& c) {
  const Numbers x = c.at(0).as<const std::uint64_t>();
  const std::string_view delimiter = text_of(c.at(1).as<const std::uint64_t>()[0]);
  const auto out = c.at(2).as<std::uint64_t>();
  const auto width = static_cast<std::size_t>(c.at(2).dims.back());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto pieces = split(text_of(x[i]), delimiter, c.setting("count"));
    if (pieces.size() > width)
      throw UserError("text_split: string ", i, " has ", pieces.size(),
                      " pieces, expected at most ", width);
    for (std::size_t k = 0; k < width; ++k)
      out[i * width + k] = k < pieces.size() ? text_number(pieces[k]) : 0;
  }
}

// ==== text_match: x, pattern, whether

void match_all(const HostCall& c) {
  const Numbers x = c.at(0).as<const std::uint64_t>();
  const Regex pattern(text_of(c.at(1).as<const std::uint64_t>()[0]));
  const auto out = c.at(2).as<std::uint8_t>();
  Regex::Budget budget;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = pattern.matches(text_of(x[i]), budget);
}

// ==== text_case: x, the same in a case

bool case_fits(const HostCall& c) { return are_alike(c, 0, 1); }

void change_case(const HostCall& c) {
  const Numbers x = c.at(0).as<const std::uint64_t>();
  const auto out = c.at(1).as<std::uint64_t>();
  const auto wanted = c.setting("kind") == 0 ? LetterCase::lower : LetterCase::upper;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = text_number(in_case(text_of(x[i]), wanted));
}

// ==== numbers: x, the same as texts; texts, the same as numbers

void write_integers(const HostCall& c) {
  const auto x = c.at(0).as<const std::int64_t>();
  const auto out = c.at(1).as<std::uint64_t>();
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = text_number(std::to_string(x[i]));
}

// More digits than a double has are useless.
bool reals_fit(const HostCall& c) {
  return are_alike(c, 0, 1) && c.setting("count") >= 1 && c.setting("count") <= 17;
}

void write_reals(const HostCall& c) {
  const auto x = c.at(0).as<const double>();
  const auto out = c.at(1).as<std::uint64_t>();
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = text_number(digits_of(x[i], static_cast<int>(c.setting("count"))));
}

template <class T, T (*read)(std::string_view)>
void read_numbers(const HostCall& c) {
  const Numbers x = c.at(0).as<const std::uint64_t>();
  const auto out = c.at(1).as<T>();
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = read(text_of(x[i]));
}

}  // namespace

std::span<const HostFunction> text_functions() {
  using enum DType;
  static const HostFunction all[] = {
      {"text_literal", {u8, i64, text}, literal_fits, make_literal},
      {"text_concat", {text, text, text}, concat_fits, concatenate},
      {"text_pieces", {text, text, i64}, pieces_fit, count_all_pieces},
      {"text_split", {text, text, text}, split_fits, split_all},
      {"text_match", {text, text, b1}, pieces_fit, match_all},
      {"text_case", {text, text}, case_fits, change_case},
      {"text_of_integer", {i64, text}, case_fits, write_integers},
      {"text_of_real", {f64, text}, reals_fit, write_reals},
      {"integer_of_text", {text, i64}, case_fits, read_numbers<std::int64_t, integer_of>},
      {"real_of_text", {text, f64}, case_fits, read_numbers<double, real_of>},
  };
  return all;
}

}  // namespace hone
