#include "cli/run/arguments.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>

#include "base/edit_distance.h"
#include "base/error.h"

namespace hone::cli {

namespace {

constexpr std::size_t help_width = 100, meaning_column = 29;

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> out;
  for (;;) {
    const std::size_t end = std::min(text.find(at), text.size());
    out.emplace_back(text.substr(0, end));
    if (end == text.size()) return out;
    text.remove_prefix(end + 1);
  }
}

// `text` in lines of at most `width`, all but the first behind `indent` spaces.
std::string wrapped(std::string_view text, std::size_t indent) {
  std::string out;
  std::size_t column = indent;
  for (const std::string& word : split(text, ' ')) {
    if (column > indent && column + 1 + word.size() > help_width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

std::string line(const std::string& left, const std::string& meaning) {
  std::string out = "  " + left;
  if (out.size() + 2 > meaning_column)
    out += "\n" + std::string(meaning_column, ' ');
  else
    out.resize(meaning_column, ' ');
  return out + wrapped(meaning, meaning_column) + "\n";
}

const std::string& one_of(const std::string& word, const std::vector<std::string_view>& words) {
  if (std::ranges::find(words, word) == words.end())
    throw UsageError(
        cat("got '", word, "', expected ", alternatives(words), did_you_mean(word, words)));
  return word;
}

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T n{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return n;
}

template <class T>
T whole_number(const std::string& text, T least, T most) {
  const std::optional<T> n = parse_number<T>(text);
  if (n && *n >= least && *n <= most) return *n;
  const bool is_large = text.find_first_not_of("0123456789") == std::string::npos && !text.empty();
  const std::string range = most == std::numeric_limits<T>::max() && !is_large
                                ? cat(" of at least ", least)
                                : cat(" from ", least, " to ", most);
  throw UsageError(cat("got '", text, "', expected an integer", range));
}

// "1.5G", "64Ki", "512B": the number times the unit's factor.
std::int64_t parse_bytes(const std::string& text) {
  std::string_view number = text;
  if (number.ends_with('B') || number.ends_with('b')) number.remove_suffix(1);
  double factor = 1000;
  if (number.ends_with('i')) {
    number.remove_suffix(1);
    factor = 1024;
  }
  static constexpr std::string_view units = "kmgt";
  const char unit = number.empty() ? ' ' : static_cast<char>(std::tolower(number.back()));
  const std::size_t power = units.find(unit);
  const bool has_unit = power != units.npos;
  if (has_unit) number.remove_suffix(1);
  const std::optional<double> n = parse_number<double>(number);
  const double bytes = n.value_or(-1) * (has_unit ? std::pow(factor, power + 1) : 1);
  if (!(bytes >= 0) || bytes >= 9e18 || (factor == 1024 && !has_unit))
    throw UsageError(
        cat("got '", text, "', expected a number of bytes, such as 500000000, 500M or 2Gi"));
  return static_cast<std::int64_t>(bytes);
}

}  // namespace

std::string nearest(std::string_view given, std::span<const std::string_view> known) {
  std::string_view best;
  std::size_t least = given.size() / 3 + 2;  // words farther away are not misspellings
  for (std::string_view k : known)
    if (const std::size_t d = edit_distance(given.substr(0, 64), k); d < least) least = d, best = k;
  return std::string(best);
}

std::string did_you_mean(std::string_view given, std::span<const std::string_view> known) {
  const std::string best = nearest(given, known);
  return best.empty() ? "" : "; did you mean " + best + "?";
}

std::string alternatives(std::span<const std::string_view> words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i)
    out += cat(i == 0 ? "" : i + 1 == words.size() ? " or " : ", ", words[i]);
  return out;
}

Arguments::Arguments(std::string program, std::string does)
    : program_(std::move(program)), does_(std::move(does)) {}

void Arguments::heading(std::string text) { heading_ = std::move(text); }

void Arguments::positional(std::string name, std::string meaning, std::string& to,
                           std::string unless) {
  positionals_.push_back({std::move(name), std::move(meaning), std::move(unless), &to});
}

Arguments::Option& Arguments::add(std::string_view names, std::string value, std::string meaning,
                                  std::function<void(const std::string&)> set) {
  options_.push_back({split(names, ','), std::move(value), std::move(meaning), heading_, false,
                      false, std::move(set)});
  return options_.back();
}

void Arguments::flag(std::string_view names, std::string meaning, bool& to) {
  add(names, "", std::move(meaning), [&to](const std::string&) { to = true; }).is_repeatable = true;
}

void Arguments::text(std::string_view names, std::string value, std::string meaning,
                     std::string& to) {
  add(names, std::move(value), std::move(meaning), [&to](const std::string& s) { to = s; });
}

void Arguments::list(std::string_view names, std::string value, std::string meaning,
                     std::vector<std::string>& to, bool commas) {
  add(names, std::move(value), std::move(meaning), [&to, commas](const std::string& s) {
    if (!commas) return to.push_back(s);
    for (std::string& part : split(s, ',')) to.push_back(std::move(part));
  }).is_repeatable = true;
}

void Arguments::choice(std::string_view names, std::vector<std::string_view> words,
                       std::string meaning, std::string& to) {
  add(names, "WORD", std::move(meaning),
      [&to, words = std::move(words)](const std::string& s) { to = one_of(s, words); });
}

void Arguments::choices(std::string_view names, std::vector<std::string_view> words,
                        std::string meaning, std::vector<std::string>& to, bool may_repeat) {
  add(names, "WORD,...", std::move(meaning),
      [&to, may_repeat, words = std::move(words)](const std::string& s) {
        to.clear();
        for (const std::string& word : split(s, ',')) {
          if (!may_repeat && std::ranges::count(to, word) > 0)
            throw UsageError(cat("'", word, "' is given twice; give each once"));
          to.push_back(one_of(word, words));
        }
      });
}

void Arguments::number(std::string_view names, std::string value, std::string meaning,
                       std::int64_t& to, std::int64_t least, std::int64_t most) {
  add(names, std::move(value), std::move(meaning),
      [&to, least, most](const std::string& s) { to = whole_number(s, least, most); });
}

void Arguments::number(std::string_view names, std::string value, std::string meaning, int& to,
                       int least, int most) {
  add(names, std::move(value), std::move(meaning),
      [&to, least, most](const std::string& s) { to = whole_number(s, least, most); });
}

void Arguments::bytes(std::string_view names, std::string meaning, std::int64_t& to) {
  add(names, "BYTES", std::move(meaning), [&to](const std::string& s) { to = parse_bytes(s); });
}

void Arguments::real(std::string_view names, std::string value, std::string meaning, double& to) {
  real(names, std::move(value), std::move(meaning), [&to](double x) { to = x; });
}

void Arguments::real(std::string_view names, std::string value, std::string meaning,
                     std::function<void(double)> set) {
  add(names, std::move(value), std::move(meaning), [set = std::move(set)](const std::string& s) {
    const std::optional<double> n = parse_number<double>(s);
    if (!n || !(*n >= 0) || !std::isfinite(*n))
      throw UsageError(cat("got '", s, "', expected a finite number of at least 0"));
    set(*n);
  });
}

void Arguments::parsed(std::string_view names, std::string value, std::string meaning,
                       std::function<void(const std::string&)> set) {
  add(names, std::move(value), std::move(meaning), std::move(set)).is_repeatable = true;
}

void Arguments::example(std::string line) { examples_.push_back(std::move(line)); }

bool Arguments::is_option(std::string_view word) const {
  return word.starts_with("--") && std::ranges::any_of(options_, [&](const Option& o) {
           return std::ranges::find(o.names, word) != o.names.end();
         });
}

Arguments::Option& Arguments::find(std::string_view name) {
  std::vector<std::string_view> known = {"--help"};
  for (Option& o : options_)
    for (const std::string& n : o.names) {
      if (n == name) return o;
      known.push_back(n);
    }
  throw UsageError(cat("unknown option ", name, did_you_mean(name, known)));
}

void Arguments::take(Option& o, std::string_view name, const std::string& value) {
  if (o.is_given && !o.is_repeatable) throw UsageError(cat(name, ": is given twice; give it once"));
  o.is_given = true;
  if (value == "-" && (o.value.ends_with("FILE") || o.value.ends_with("DIR")))
    throw UsageError(cat(name,
                         " -: standard input and output are not read or written; give a name, ",
                         "or ./- for a file that is called so"));
  try {
    o.set(value);
  } catch (const UsageError& e) {
    throw UsageError(cat(name, ": ", e.what()));
  }
}

void Arguments::take_positional(std::string_view word) {
  for (Positional& p : positionals_)
    if (!p.is_given) {
      p.is_given = true;
      *p.to = word;
      return;
    }
  throw UsageError(cat("unexpected argument '", word, "'",
                       positionals_.empty() ? "" : "; options start with '-'"));
}

bool Arguments::is_given(std::string_view name) const {
  return std::ranges::any_of(options_, [&](const Option& o) {
    return o.is_given && std::ranges::find(o.names, name) != o.names.end();
  });
}

bool Arguments::parse(std::span<char* const> words) try {
  bool only_positionals = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string_view word = words[i];
    if (only_positionals || word.size() < 2 || word[0] != '-') {
      take_positional(word);
      continue;
    }
    if (word == "--") {
      only_positionals = true;
      continue;
    }
    if (word == "-h" || word == "--help") {
      std::fputs(help().c_str(), stdout);
      return false;
    }
    // "--name=value", "-nvalue", "--name value"
    const std::size_t end = word[1] == '-' ? std::min(word.find('='), word.size())
                                           : std::min<std::size_t>(2, word.size());
    const std::string_view name = word.substr(0, end);
    Option& o = find(name);
    const bool is_joined = end < word.size();
    if (o.value.empty() && is_joined) throw UsageError(cat(name, ": takes no value"));
    if (!o.value.empty() && !is_joined && i + 1 == words.size())
      throw UsageError(cat(name, ": needs a value: ", name, " ", o.value));
    if (!o.value.empty() && !is_joined && is_option(words[i + 1]))
      throw UsageError(cat(name, ": needs a value, ", o.value, ", but is followed by the option ",
                           words[i + 1], "; to give that as the value, write ", name,
                           name.size() == 2 ? "" : "=", words[i + 1]));
    if (o.value.empty())
      take(o, name, "");
    else if (is_joined)
      take(o, name, std::string(word.substr(end + (word[1] == '-'))));
    else
      take(o, name, words[++i]);
  }
  for (const Positional& p : positionals_)
    if (!p.is_given && (p.unless.empty() || !is_given(p.unless)))
      throw UsageError(cat("missing argument ", p.name, ": ", p.meaning));
  return true;
} catch (const UsageError& e) {
  throw UsageError(cat(e.what(), "\nSee ", program_, " --help."));
}

std::string Arguments::given_below(std::string_view heading) const {
  for (const Option& o : options_)
    if (o.is_given && o.heading == heading) return o.names[0].size() > 2 ? o.names[0] : o.names[1];
  return {};
}

std::string Arguments::help() const {
  std::string out = does_ + "\nusage: " + program_;
  for (const Positional& p : positionals_)
    out += p.unless.empty() ? " " + p.name : cat(" [", p.name, "]");
  out += " [options]\n\n";
  for (const Positional& p : positionals_) out += line(p.name, p.meaning);
  std::string heading;
  for (const Option& o : options_) {
    if (o.heading != heading && !o.heading.empty()) out += "\n" + o.heading + ":\n";
    if (o.heading != heading && o.heading.empty()) out += "\n";
    heading = o.heading;
    const bool has_letter = o.names[0].size() == 2;
    std::string left = has_letter ? o.names[0] : "    " + o.names[0];
    if (has_letter && o.names.size() > 1) left += ", " + o.names[1];
    out += line(left + (o.value.empty() ? "" : " " + o.value), o.meaning);
  }
  out += line("-h, --help", "print this");
  out += examples_.size() == 1 ? "\nexample:\n" : "\nexamples:\n";
  for (const std::string& e : examples_) out += "  " + e + "\n";
  return out + std::string(exit_codes);
}

}  // namespace hone::cli
