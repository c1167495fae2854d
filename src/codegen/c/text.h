// Writes C text: types, numbers, indented lines. The result is C11 that is also C++11, without
// warnings under -Wall -Wextra -Wpedantic -Wconversion.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "type/dtype.h"

namespace hone::c {

// Lines of C, indented by open braces.
class Text {
 public:
  template <class... Parts>
  void line(const Parts&... parts) {
    add(cat(parts...));
  }
  // Writes "head {"; close() ends it.
  template <class... Parts>
  void open(const Parts&... head) {
    add(cat(head..., " {"));
    ++depth_;
  }
  void open() {
    add("{");
    ++depth_;
  }
  void close(std::string_view after = "");
  // After a close that opens the next block.
  void indent() { ++depth_; }
  // Appends text with its own line breaks, unchanged.
  void paste(std::string_view text) { text_ += text; }

  const std::string& str() const { return text_; }

 private:
  void add(std::string_view);

  std::string text_;
  int depth_ = 0;
};

// The dtype in which elements of `t` are computed: f32 for f16 and bf16, the code's dtype for coded
// dtypes, else `t`.
constexpr DType register_dtype(DType t) {
  if (is_coded(t)) return code_dtype(t);
  return t == DType::f16 || t == DType::bf16 ? DType::f32 : t;
}

// A vector of elements in memory.
struct VectorType {
  std::string_view type;  // from memory_type()
  std::int64_t width = 1, bytes = 1;

  bool operator==(const VectorType&) const = default;
};

// "float", "int8_t"; "uint16_t" for f16 and bf16, "uint8_t" for bool.
std::string_view memory_type(DType);
// The type of variables: "bool" for bool, "float" for f16.
std::string_view register_type(DType);
// The unsigned type in which integers of dtype `t` are added and multiplied, so that they wrap.
std::string_view wrapping_type(DType);

// A number of a register dtype as an operand: "-0.5f", "INT64_C(7)".
std::string literal(double, DType);
std::string literal(std::int64_t, DType);
// A number of bytes, elements or iterations, as an operand.
std::string index(std::int64_t);

// `text` made safe inside a comment: it cannot end the comment or the line.
std::string in_comment(std::string_view text);
// A C identifier made of a name; never empty, never a keyword of C or C++.
std::string identifier(std::string_view name);

}  // namespace hone::c
