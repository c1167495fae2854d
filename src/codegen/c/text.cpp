#include "codegen/c/text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

namespace hone::c {

void Text::add(std::string_view line) {
  if (!line.empty() && line[0] != '#') text_.append(static_cast<std::size_t>(depth_) * 2, ' ');
  text_ += line;
  text_ += '\n';
}

void Text::close(std::string_view after) {
  HONE_ASSERT(depth_ > 0, "a brace is closed that was not opened");
  --depth_;
  add(cat("}", after));
}

std::string_view memory_type(DType t) {
  if (is_coded(t)) t = code_dtype(t);
  switch (t) {
    case DType::b1:
    case DType::u8:
      return "uint8_t";
    case DType::i8:
      return "int8_t";
    case DType::i16:
      return "int16_t";
    case DType::i32:
      return "int32_t";
    case DType::i64:
      return "int64_t";
    case DType::u16:
    case DType::f16:
    case DType::bf16:
      return "uint16_t";
    case DType::u32:
      return "uint32_t";
    case DType::u64:
      return "uint64_t";
    case DType::f32:
      return "float";
    case DType::f64:
      return "double";
    default:
      break;
  }
  throw InternalError("dtype without a C type");
}

std::string_view register_type(DType t) {
  return t == DType::b1 ? "bool" : memory_type(register_dtype(t));
}

std::string_view wrapping_type(DType t) { return byte_size(t) == 8 ? "uint64_t" : "uint32_t"; }

std::string literal(double x, DType t) {
  const bool is_single = register_dtype(t) == DType::f32;
  if (std::isnan(x)) return is_single ? "NAN" : "(double)NAN";
  if (std::isinf(x)) {
    std::string sign = x < 0 ? "-" : "";
    return is_single ? cat("(", sign, "INFINITY)") : cat("(", sign, "(double)INFINITY)");
  }
  if (is_single) x = static_cast<double>(static_cast<float>(x));
  if (is_single && std::isinf(x)) return literal(x, t);
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", x);
  // Nine digits tell all numbers of f32 apart, but some compilers compute with what is written.
  if (std::strtod(text, nullptr) != x) std::snprintf(text, sizeof text, "%.17g", x);
  std::string out = text;
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  if (is_single) out += 'f';
  return std::signbit(x) ? cat("(", out, ")") : out;
}

std::string literal(std::int64_t n, DType t) {
  if (t == DType::b1) return n ? "true" : "false";
  if (t == DType::u64) return cat("UINT64_C(", static_cast<std::uint64_t>(n), ")");
  if (t == DType::u32) return cat(static_cast<std::uint32_t>(n), "u");
  if (n == std::numeric_limits<std::int64_t>::min()) return "INT64_MIN";
  if (t == DType::i64) return n < 0 ? cat("(-INT64_C(", -n, "))") : cat("INT64_C(", n, ")");
  if (n == std::numeric_limits<std::int32_t>::min()) return "INT32_MIN";
  return n < 0 ? cat("(", n, ")") : cat(n);
}

std::string index(std::int64_t n) {
  const bool is_short =
      n <= std::numeric_limits<std::int32_t>::max() && n > std::numeric_limits<std::int32_t>::min();
  return is_short ? (n < 0 ? cat("(", n, ")") : cat(n)) : literal(n, DType::i64);
}

std::string in_comment(std::string_view text) {
  std::string out;
  for (char c : text) {
    const bool is_plain = c >= ' ' && c <= '~' && c != '\\';
    const char next = is_plain ? c : '?', last = out.empty() ? ' ' : out.back();
    // "*/", "/*", which gcc warns about, and trigraphs; "//" would join lines with a backslash
    // only.
    if ((next == '/' && last == '*') || (next == '*' && last == '/') ||
        (next == '?' && last == '?'))
      out += ' ';
    out += next;
  }
  // A final star or slash would combine with the following text.
  if (!out.empty() && (out.back() == '*' || out.back() == '/')) out += ' ';
  return out;
}

std::string identifier(std::string_view name) {
  std::string out;
  for (char c : name) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool is_digit = c >= '0' && c <= '9';
    if (is_digit && out.empty()) out += 'n';
    // Names with two consecutive underscores are reserved.
    if (is_letter || is_digit)
      out += c;
    else if (!out.empty() && out.back() != '_')
      out += '_';
  }
  while (!out.empty() && out.back() == '_') out.pop_back();
  static constexpr std::string_view words[] = {
      "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break",
      "case", "catch", "char", "class", "compl", "concept", "const", "consteval", "constexpr",
      "constinit", "continue", "decltype", "default", "delete", "do", "double", "else", "enum",
      "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline",
      "int", "long", "main", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr",
      "operator", "or", "or_eq", "private", "protected", "public", "register", "requires",
      "restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch", "template",
      "this", "throw", "true", "try", "typedef", "typename", "typeid", "typeof", "union",
      "unsigned", "using", "virtual", "void", "volatile", "while", "xor", "xor_eq",
      // Macros of compilers and of the included headers.
      "errno", "linux", "unix", "NAN", "INFINITY", "NULL", "EOF"};
  if (out.empty()) return "value";
  const bool is_taken = std::find(std::begin(words), std::end(words), out) != std::end(words);
  return is_taken ? out + "_" : out;
}

}  // namespace hone::c
