#include "base/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace hone {

namespace {

// Builds a Json from the parser's events; `open_` are the arrays and objects around the current
// place, innermost last.
class JsonBuilder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  JsonBuilder(std::string_view where, int most_depth) : where_(where), most_depth_(most_depth) {}

  bool null() override { return put(Json()); }
  bool boolean(bool b) override { return put(Json(b)); }
  bool number_integer(number_integer_t n) override { return put(Json(n)); }
  bool number_unsigned(number_unsigned_t n) override {
    if (n > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max()))
      refuse(cat("number ", n, " does not fit in 64 bits"));
    return put(Json(n));
  }
  bool number_float(number_float_t x, const string_t&) override { return put(Json(x)); }
  bool string(string_t& s) override { return put(Json(std::move(s))); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json(Json::Object())); }
  bool start_array(std::size_t) override { return open(Json(Json::Array())); }
  bool key(string_t& s) override {
    open_.back().key = std::move(s);
    return true;
  }
  bool end_object() override {
    check_unique(open_.back().value.object());
    return close();
  }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t at, const std::string&,
                   const nlohmann::detail::exception& e) override {
    refuse(cat("byte ", at, ": ", e.what()));
  }

  Json take() { return std::move(root_); }

 private:
  struct Level {
    Json value;
    std::string key;  // under which the next value of an object goes
  };

  [[noreturn]] void refuse(std::string_view why) const {
    throw UserError(where_, ": is not valid JSON: ", why);
  }
  void check_unique(const Json::Object& o) const {
    std::vector<std::string_view> keys;
    for (const auto& [key, value] : o) keys.push_back(key);
    std::sort(keys.begin(), keys.end());
    if (auto it = std::adjacent_find(keys.begin(), keys.end()); it != keys.end())
      refuse(cat("key '", *it, "' stands twice in one object"));
  }
  bool open(Json empty) {
    if (static_cast<int>(open_.size()) >= most_depth_)
      refuse(cat("nested deeper than ", most_depth_));
    open_.push_back({std::move(empty), {}});
    return true;
  }
  bool close() {
    Json done = std::move(open_.back().value);
    open_.pop_back();
    return put(std::move(done));
  }
  bool put(Json v) {
    if (open_.empty())
      root_ = std::move(v);
    else if (Level& l = open_.back(); l.value.is_object())
      l.value.add(std::move(l.key), std::move(v));
    else
      l.value.push(std::move(v));
    return true;
  }

  std::string_view where_;
  int most_depth_;
  std::vector<Level> open_;
  Json root_;
};

// Bytes of the UTF-8 character at the start of `s`; 0 when there is none.
std::size_t character_bytes(std::string_view s) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char first = byte(0);
  const std::size_t n = first < 0x80   ? 1
                        : first < 0xc2 ? 0
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                                       : 4;
  if (n == 0 || n > s.size() || first > 0xf4) return 0;
  for (std::size_t i = 1; i < n; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool outside = (first == 0xed && byte(1) > 0x9f) || (first == 0xf4 && byte(1) > 0x8f);
  return overlong || outside ? 0 : n;
}

// Bytes that are no UTF-8 become U+FFFD, so that what we write can always be read.
void print_text(std::string& out, std::string_view s) {
  out += '"';
  for (; !s.empty();) {
    const char c = s.front();
    const std::size_t n = character_bytes(s);
    if (n == 0) {
      out += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      out += code;
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
  // Stays a real number when it is read again.
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
  JsonBuilder builder(where, most_depth);
  nlohmann::json::sax_parse(text, &builder);
  return builder.take();
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
  wrong_kind("a whole number", *this);
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
