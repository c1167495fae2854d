#include "codegen/c/glsl_vectors.h"

#include <algorithm>

#include "base/error.h"

namespace hone::c {

namespace {

constexpr std::string_view sign_less[] = {"uint8_t", "uint16_t", "uint32_t", "uint64_t"};

std::string_view unsigned_of(std::int64_t bytes) {
  return sign_less[bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3];
}

// Word number i of so many.
std::string word(std::int64_t i, std::int64_t words) {
  return words == 1 ? "w" : cat("w[", i, "]");
}

// Element l of the words w.
std::string element(const VectorType& v, std::int64_t l) {
  const std::int64_t size = v.bytes / v.width, words = v.bytes / 4;
  if (size == 8) {
    const std::string both = cat("uvec2(w[", 2 * l, "], w[", 2 * l + 1, "])");
    return v.type == "double" ? cat("packDouble2x32(", both, ")")
                              : cat(v.type, "(packUint2x32(", both, "))");
  }
  const std::int64_t in_word = 4 / size;
  const std::string whole = word(l / in_word, words);
  if (v.type == "float") return cat("uintBitsToFloat(", whole, ")");
  const std::int64_t shift = l % in_word * size * 8;
  return cat(v.type, "(", unsigned_of(size), "(", whole, shift ? cat(" >> ", shift) : "", "))");
}

// Word number i of the elements of x.
std::string word_of(const VectorType& v, std::int64_t i) {
  const std::int64_t size = v.bytes / v.width;
  if (size == 8)
    return cat(v.type == "double" ? "unpackDouble2x32(" : "unpackUint2x32(uint64_t(", "x.of[",
               i / 2, v.type == "double" ? "])" : "]))", "[", i % 2, "]");
  if (v.type == "float") return cat("floatBitsToUint(x.of[", i, "])");
  const std::int64_t in_word = 4 / size;
  std::string out;
  for (std::int64_t k = 0; k < in_word; ++k)
    out += cat(k ? " | " : "", "uint(", unsigned_of(size), "(x.of[", i * in_word + k, "]))",
               k ? cat(" << ", k * size * 8) : "");
  return out;
}

std::string words_block(std::int64_t bytes) {
  const std::int64_t words = bytes / 4;
  return cat("layout(buffer_reference, scalar, buffer_reference_align = ", bytes,
             ") buffer hone_words", words, " { ", words == 1 ? "uint" : cat("uvec", words),
             " at; };\n");
}

std::string functions(const VectorType& v) {
  const std::string name = cat(v.type, "_x", v.width), array = cat(v.type, "_array");
  const std::int64_t words = v.bytes / 4;
  const std::string at =
      cat("  const uint64_t at = uint64_t(p) + uint64_t(i) * ", v.bytes / v.width, "ul;\n");
  Text out;
  out.line("struct ", name, " { ", v.type, " of[", v.width, "]; };");
  out.open(name, " hone_load_", name, "(", array, " p, int64_t i)");
  out.paste(at);
  out.line(name, " x;");
  out.open("if (is_aligned)");
  out.line("const ", words == 1 ? "uint" : cat("uvec", words), " w = hone_words", words,
           "(at).at;");
  for (std::int64_t l = 0; l < v.width; ++l) out.line("x.of[", l, "] = ", element(v, l), ";");
  out.close(" else {");
  out.indent();
  for (std::int64_t l = 0; l < v.width; ++l)
    out.line("x.of[", l, "] = ", array, "(at).at[", l, "];");
  out.close();
  out.line("return x;");
  out.close();
  out.open("void hone_store_", name, "(", array, " p, int64_t i, ", name, " x)");
  out.paste(at);
  out.open("if (is_aligned)");
  std::string all;
  for (std::int64_t i = 0; i < words; ++i) all += cat(i ? ", " : "", word_of(v, i));
  out.line("hone_words", words, "(at).at = ", words == 1 ? all : cat("uvec", words, "(", all, ")"),
           ";");
  out.close(" else {");
  out.indent();
  for (std::int64_t l = 0; l < v.width; ++l) out.line(array, "(at).at[", l, "] = x.of[", l, "];");
  out.close();
  out.close();
  return out.str();
}

}  // namespace

std::string glsl_vectors(std::span<const VectorType> vectors) {
  if (vectors.empty()) return "";
  std::string out = "layout(constant_id = 0) const bool is_aligned = true;\n";
  for (std::int64_t bytes : {4, 8, 16})
    if (std::ranges::find(vectors, bytes, &VectorType::bytes) != vectors.end())
      out += words_block(bytes);
  for (const VectorType& v : vectors) {
    HONE_ASSERT(v.bytes == 4 || v.bytes == 8 || v.bytes == 16, "a vector of ", v.bytes, " bytes");
    out += functions(v);
  }
  return out;
}

}  // namespace hone::c
