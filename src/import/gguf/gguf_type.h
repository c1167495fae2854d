// The element and block types of GGUF files.
#pragma once

#include <cstdint>
#include <string_view>

namespace hone {

// The values are the format's type numbers.
enum class GgufType : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  i8 = 24,
  i16 = 25,
  i32 = 26,
  i64 = 27,
  f64 = 28,
  bf16 = 30,
};
std::string_view gguf_type_name(GgufType);  // "Q4_K"

}  // namespace hone
