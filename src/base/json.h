// A JSON value as plain data, its strict parser and its printer. Objects keep the order of their
// keys. Not a binding layer: readers check the values they take.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hone {

class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;

  Json() = default;
  template <std::same_as<bool> T>
  Json(T b) : value_(b) {}  // NOLINT: values are JSON, as in a literal
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Json(T n) : value_(static_cast<std::int64_t>(n)) {}   // NOLINT
  Json(double x) : value_(x) {}                         // NOLINT
  Json(std::string s) : value_(std::move(s)) {}         // NOLINT
  Json(std::string_view s) : value_(std::string(s)) {}  // NOLINT
  Json(const char* s) : value_(std::string(s)) {}       // NOLINT
  Json(Array a) : value_(std::move(a)) {}               // NOLINT
  Json(Object o) : value_(std::move(o)) {}              // NOLINT

  // Strict JSON in UTF-8: no repeated keys, integers within 64 bits. Throws UserError naming
  // `where` and the byte offset.
  static Json parse(std::string_view text, std::string_view where, int most_depth = 128);
  // One line; with `indent` >= 0, one line per element. Infinities and NaN print as null.
  std::string text(int indent = -1) const;

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_boolean() const { return std::holds_alternative<bool>(value_); }
  bool is_integer() const { return std::holds_alternative<std::int64_t>(value_); }
  bool is_number() const { return is_integer() || std::holds_alternative<double>(value_); }
  bool is_text() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  // Throw UserError when the value is of another kind.
  bool boolean() const;
  std::int64_t integer() const;
  double real() const;
  const std::string& text_value() const;
  const Array& array() const;
  const Object& object() const;

  // Null when the object has no such key.
  const Json* find(std::string_view key) const;
  // Throws UserError when the object has no such key.
  const Json& at(std::string_view key) const;

  // Adds a key to an object, or an element to an array; null becomes an object or array first.
  void add(std::string key, Json value);
  void push(Json value);

  bool operator==(const Json&) const = default;

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value_;
};

}  // namespace hone
