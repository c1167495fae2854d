#include "base/json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "base/text.h"

namespace hone {

namespace {

// Whether a byte of a string needs no escape: printable ASCII except the quote and the backslash.
constexpr std::array<bool, 256> is_plain = [] {
  std::array<bool, 256> out{};
  for (int c = 0x20; c < 0x80; ++c) out[static_cast<std::size_t>(c)] = c != '"' && c != '\\';
  return out;
}();

// Recursive descent. Plan files hold thousands of values and are read at every start, so runs of
// plain string bytes are copied at once and numbers are parsed by from_chars.
class Parser {
 public:
  Parser(std::string_view text, std::string_view where, int most_depth)
      : begin_(text.data()),
        at_(begin_),
        end_(begin_ + text.size()),
        where_(where),
        most_depth_(most_depth),
        most_values_((std::size_t{1} << 18) + text.size() / 4) {}

  Json document() {
    Json v = value();
    skip_space();
    if (at_ != end_) refuse("unexpected text after the value");
    return v;
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const {
    throw UserError(where_, ": is not valid JSON: byte ", at_ - begin_, ": ", why);
  }

  bool is_at(char c) const { return at_ != end_ && *at_ == c; }
  bool skip(char c) {
    if (!is_at(c)) return false;
    ++at_;
    return true;
  }
  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }

  // Two bytes of JSON may take dozens in memory, so the input's size bounds the values.
  Json value() {
    if (++values_ > most_values_) refuse("far more values than a real file of this size has");
    skip_space();
    if (at_ == end_) refuse("the text ends where a value is expected");
    switch (*at_) {
      case '{':
        return object();
      case '[':
        return array();
      case '"':
        return string();
      case 't':
        return word("true", true);
      case 'f':
        return word("false", false);
      case 'n':
        return word("null", Json());
      default:
        return number();
    }
  }

  Json word(std::string_view text, Json means) {
    if (!std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(text))
      refuse("invalid value");
    at_ += text.size();
    return means;
  }

  // Calls `element` for each element between the brackets.
  template <class F>
  void elements(char close, F&& element) {
    if (++depth_ > most_depth_) refuse(cat("nested more than ", most_depth_, " levels deep"));
    ++at_;
    skip_space();
    if (!skip(close)) {
      do {
        element();
        skip_space();
      } while (skip(','));
      if (!skip(close)) refuse(cat("expected ',' or '", close, "'"));
    }
    --depth_;
  }

  Json array() {
    Json::Array out;
    elements(']', [&] { out.push_back(value()); });
    return out;
  }

  Json object() {
    Json::Object out;
    elements('}', [&] {
      skip_space();
      if (!is_at('"')) refuse("expected a key in quotes");
      std::string key = string();
      skip_space();
      if (!skip(':')) refuse("expected ':'");
      out.emplace_back(std::move(key), value());
    });
    check_unique(out);
    return out;
  }

  void check_unique(const Json::Object& o) const {
    const auto twice = [&](std::string_view key) {
      refuse(cat("key '", key, "' appears twice in one object"));
    };
    if (o.size() <= 16) {
      for (std::size_t i = 1; i < o.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
          if (o[i].first == o[j].first) twice(o[i].first);
      return;
    }
    std::vector<std::string_view> keys;
    for (const auto& [key, value] : o) keys.push_back(key);
    std::sort(keys.begin(), keys.end());
    if (auto it = std::adjacent_find(keys.begin(), keys.end()); it != keys.end()) twice(*it);
  }

  std::string string() {
    ++at_;
    for (std::string out;;) {
      const char* run = at_;
      while (at_ != end_ && is_plain[static_cast<unsigned char>(*at_)]) ++at_;
      out.append(run, at_);
      if (at_ == end_) refuse("a string is not closed");
      if (skip('"')) return out;
      if (skip('\\')) {
        escape(out);
        continue;
      }
      const std::size_t n = utf8_bytes({at_, static_cast<std::size_t>(end_ - at_)});
      if (n <= 1) refuse("a string contains invalid UTF-8 or a control character");
      out.append(at_, n);
      at_ += n;
    }
  }

  void escape(std::string& out) {
    static constexpr std::string_view letters = "\"\\/bfnrt", mean = "\"\\/\b\f\n\r\t";
    if (skip('u')) return append_utf8(out, code_point());
    const std::size_t i = at_ == end_ ? letters.npos : letters.find(*at_);
    if (i == letters.npos) refuse("invalid escape");
    out += mean[i];
    ++at_;
  }

  std::uint32_t four_digits() {
    std::uint32_t n = 0;
    const char* last = end_ - at_ < 4 ? at_ : at_ + 4;
    if (last == at_ || std::from_chars(at_, last, n, 16).ptr != last)
      refuse("\\u needs four hexadecimal digits");
    at_ = last;
    return n;
  }

  std::uint32_t code_point() {
    const std::uint32_t high = four_digits();
    if (high < 0xd800 || high > 0xdfff) return high;
    if (high > 0xdbff || !skip('\\') || !skip('u')) refuse("an unpaired surrogate");
    const std::uint32_t low = four_digits();
    if (low < 0xdc00 || low > 0xdfff) refuse("an unpaired surrogate");
    return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
  }

  static void append_utf8(std::string& out, std::uint32_t c) {
    const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((c >> shift) & 0x3f)); };
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else if (c < 0x800) {
      out += static_cast<char>(0xc0 | (c >> 6));
      tail(0);
    } else if (c < 0x10000) {
      out += static_cast<char>(0xe0 | (c >> 12));
      tail(6);
      tail(0);
    } else {
      out += static_cast<char>(0xf0 | (c >> 18));
      tail(12);
      tail(6);
      tail(0);
    }
  }

  void digits() {
    if (at_ == end_ || *at_ < '0' || *at_ > '9') refuse("expected a value");
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9') ++at_;
  }

  Json number() {
    const char* start = at_;
    skip('-');
    if (!skip('0')) digits();
    bool is_whole = true;
    if (skip('.')) {
      is_whole = false;
      digits();
    }
    if (skip('e') || skip('E')) {
      is_whole = false;
      if (!skip('-')) skip('+');
      digits();
    }
    return is_whole ? whole(start) : real(start);
  }

  Json whole(const char* start) const {
    std::int64_t n = 0;
    if (std::from_chars(start, at_, n).ec != std::errc())
      refuse(cat("number ", std::string_view(start, at_), " does not fit in 64 bits"));
    return n;
  }

  Json real(const char* start) const {
    double x = 0;
    // Out of range also covers underflow, which is not an error.
    if (std::from_chars(start, at_, x).ec != std::errc())
      x = std::strtod(std::string(start, at_).c_str(), nullptr);
    if (std::isinf(x)) refuse(cat("number ", std::string_view(start, at_), " is too large"));
    return x;
  }

  const char *begin_, *at_, *end_;
  std::string_view where_;
  int most_depth_, depth_ = 0;
  std::size_t values_ = 0, most_values_;
};

// Invalid UTF-8 becomes U+FFFD, so that our output can always be parsed.
void print_text(std::string& out, std::string_view s) {
  out += '"';
  for (; !s.empty();) {
    const char c = s.front();
    const std::size_t n = utf8_bytes(s);
    if (n == 0) {
      out += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (is_control(s)) {
      const unsigned code = static_cast<unsigned char>(n == 2 ? s[1] : c);
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", code);
      out += escape;
    } else {
      out += s.substr(0, n);
    }
    s.remove_prefix(std::max<std::size_t>(n, 1));
  }
  out += '"';
}

void print_real(std::string& out, double x) {
  if (!std::isfinite(x)) {
    out += "null";
    return;
  }
  char digits[32];
  char* end = std::to_chars(digits, digits + sizeof digits, x).ptr;
  std::string_view s(digits, static_cast<std::size_t>(end - digits));
  out += s;
  // Keeps the value a real number when it is parsed again.
  if (s.find_first_of(".e") == std::string_view::npos) out += ".0";
}

class Printer {
 public:
  Printer(std::string& out, int indent) : out_(out), indent_(indent) {}

  void print(const Json& v, int depth) {
    if (v.is_null())
      out_ += "null";
    else if (v.is_boolean())
      out_ += v.boolean() ? "true" : "false";
    else if (v.is_integer())
      out_ += std::to_string(v.integer());
    else if (v.is_number())
      print_real(out_, v.real());
    else if (v.is_text())
      print_text(out_, v.text_value());
    else if (v.is_array())
      print_array(v.array(), depth);
    else
      print_object(v.object(), depth);
  }

 private:
  void line(int depth) {
    if (indent_ < 0) return;
    out_ += '\n';
    out_.append(static_cast<std::size_t>(indent_ * depth), ' ');
  }
  void print_array(const Json::Array& a, int depth) {
    out_ += '[';
    for (const Json& v : a) {
      if (&v != &a.front()) out_ += ',';
      line(depth + 1);
      print(v, depth + 1);
    }
    if (!a.empty()) line(depth);
    out_ += ']';
  }
  void print_object(const Json::Object& o, int depth) {
    out_ += '{';
    for (const auto& entry : o) {
      if (&entry != &o.front()) out_ += ',';
      line(depth + 1);
      print_text(out_, entry.first);
      out_ += indent_ < 0 ? ":" : ": ";
      print(entry.second, depth + 1);
    }
    if (!o.empty()) line(depth);
    out_ += '}';
  }

  std::string& out_;
  int indent_;
};

[[noreturn]] void wrong_kind(std::string_view wanted, const Json& got) {
  std::string text = got.text();
  if (text.size() > 40) text = text.substr(0, 40) + "...";
  throw UserError("json: expected ", wanted, ", got ", text);
}

}  // namespace

Json Json::parse(std::string_view text, std::string_view where, int most_depth) {
  return Parser(text, where, most_depth).document();
}

std::string Json::text(int indent) const {
  std::string out;
  Printer(out, indent).print(*this, 0);
  return out;
}

bool Json::boolean() const {
  if (auto* b = std::get_if<bool>(&value_)) return *b;
  wrong_kind("true or false", *this);
}

std::int64_t Json::integer() const {
  if (auto* n = std::get_if<std::int64_t>(&value_)) return *n;
  wrong_kind("an integer", *this);
}

double Json::real() const {
  if (auto* x = std::get_if<double>(&value_)) return *x;
  if (auto* n = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*n);
  wrong_kind("a number", *this);
}

const std::string& Json::text_value() const {
  if (auto* s = std::get_if<std::string>(&value_)) return *s;
  wrong_kind("text", *this);
}

const Json::Array& Json::array() const {
  if (auto* a = std::get_if<Array>(&value_)) return *a;
  wrong_kind("an array", *this);
}

const Json::Object& Json::object() const {
  if (auto* o = std::get_if<Object>(&value_)) return *o;
  wrong_kind("an object", *this);
}

const Json* Json::find(std::string_view key) const {
  for (const auto& [name, value] : object())
    if (name == key) return &value;
  return nullptr;
}

const Json& Json::at(std::string_view key) const {
  if (const Json* v = find(key)) return *v;
  throw UserError("json: key '", key, "' is missing");
}

void Json::add(std::string key, Json value) {
  if (is_null()) value_ = Object();
  object();
  std::get<Object>(value_).emplace_back(std::move(key), std::move(value));
}

void Json::push(Json value) {
  if (is_null()) value_ = Array();
  array();
  std::get<Array>(value_).push_back(std::move(value));
}

}  // namespace hone
