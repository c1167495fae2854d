#include "backend/vulkan/target/glsl_vectors.h"

#include <algorithm>

#include "base/error.h"

namespace hone::c {

namespace {

constexpr std::string_view sign_less[] = {"uint8_t", "uint16_t", "uint32_t", "uint64_t"};

std::string_view unsigned_of(std::int64_t bytes) {
  return sign_less[bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3];
}

constexpr std::int64_t piece_bytes = 16, piece_words = piece_bytes / 4;  // size of one access

std::int64_t pieces_of(const VectorType& v) { return (v.bytes + piece_bytes - 1) / piece_bytes; }

// The i-th 4-byte word of w0, w1, ...
std::string word(std::int64_t i, const VectorType& v) {
  const std::string piece = cat("w", i / piece_words);
  return v.bytes == 4 ? piece : cat(piece, "[", i % piece_words, "]");
}

// Element l, extracted from the words.
std::string element(const VectorType& v, std::int64_t l) {
  const std::int64_t size = v.bytes / v.width;
  if (size == 8) {
    const std::string both = cat("uvec2(", word(2 * l, v), ", ", word(2 * l + 1, v), ")");
    return v.type == "double" ? cat("packDouble2x32(", both, ")")
                              : cat(v.type, "(packUint2x32(", both, "))");
  }
  const std::int64_t in_word = 4 / size;
  const std::string whole = word(l / in_word, v);
  if (v.type == "float") return cat("uintBitsToFloat(", whole, ")");
  const std::int64_t shift = l % in_word * size * 8;
  return cat(v.type, "(", unsigned_of(size), "(", whole, shift ? cat(" >> ", shift) : "", "))");
}

// The i-th 4-byte word, made of elements of x.
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

// The words of a piece of x, as one value.
std::string piece_of(const VectorType& v, std::int64_t piece) {
  if (v.bytes == 4) return word_of(v, 0);
  std::string all;
  const std::int64_t words = std::min(v.bytes / 4, piece_words);
  for (std::int64_t i = 0; i < words; ++i)
    all += cat(i ? ", " : "", word_of(v, piece * piece_words + i));
  return cat("uvec", words, "(", all, ")");
}

std::string functions(const VectorType& v) {
  const std::string name = cat(v.type, "_x", v.width), array = cat(v.type, "_array");
  const std::int64_t words = std::min(v.bytes / 4, piece_words);
  const auto access = [&](std::int64_t piece) {
    return cat("hone_words", words, "(at", piece ? cat(" + ", piece * piece_bytes) : "", ").at");
  };
  const std::string at =
      cat("  const uint64_t at = uint64_t(p) + uint64_t(i) * ", v.bytes / v.width, "ul;\n");
  Text out;
  out.line("struct ", name, " { ", v.type, " of[", v.width, "]; };");
  out.open(name, " hone_load_", name, "(", array, " p, int64_t i)");
  out.paste(at);
  out.line(name, " x;");
  out.open("if (is_aligned)");
  for (std::int64_t i = 0; i < pieces_of(v); ++i)
    out.line("const ", words == 1 ? "uint" : cat("uvec", words), " w", i, " = ", access(i), ";");
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
  for (std::int64_t i = 0; i < pieces_of(v); ++i) out.line(access(i), " = ", piece_of(v, i), ";");
  out.close(" else {");
  out.indent();
  for (std::int64_t l = 0; l < v.width; ++l) out.line(array, "(at).at[", l, "] = x.of[", l, "];");
  out.close();
  out.close();
  return out.str();
}

// Conversions between a vector and its words of 16 bytes.
std::string word_functions(const VectorType& v) {
  const std::string name = cat(v.type, "_x", v.width);
  Text out;
  std::string parameters;
  for (std::int64_t i = 0; i < pieces_of(v); ++i) parameters += cat(i ? ", " : "", "uvec4 w", i);
  out.open(name, " hone_unpack_", name, "(", parameters, ")");
  out.line(name, " x;");
  for (std::int64_t l = 0; l < v.width; ++l) out.line("x.of[", l, "] = ", element(v, l), ";");
  out.line("return x;");
  out.close();
  if (pieces_of(v) > 1) return out.str();
  out.open("uvec4 hone_pack_", name, "(", name, " x)");
  out.line("return ", piece_of(v, 0), ";");
  out.close();
  const std::string array = cat(v.type, "_array");
  out.open("uvec4 hone_read_", name, "(", array, " p, int64_t i)");
  out.line("if (is_aligned) return hone_words4(uint64_t(p) + uint64_t(i) * ", v.bytes / v.width,
           "ul).at;");
  out.line("return hone_pack_", name, "(hone_load_", name, "(p, i));");
  out.close();
  return out.str();
}

}  // namespace

std::string glsl_vectors(std::span<const VectorType> vectors, bool of_words) {
  if (vectors.empty()) return "";
  std::string out = "layout(constant_id = 0) const bool is_aligned = true;\n";
  for (std::int64_t bytes : {4, 8, 16})
    if (std::ranges::any_of(
            vectors, [&](const VectorType& v) { return std::min(v.bytes, piece_bytes) == bytes; }))
      out += words_block(bytes);
  for (const VectorType& v : vectors) {
    HONE_ASSERT(v.bytes == 4 || v.bytes == 8 || v.bytes % piece_bytes == 0, "a vector of ", v.bytes,
                " bytes");
    out += functions(v);
    if (of_words && v.bytes % piece_bytes == 0) out += word_functions(v);
  }
  return out;
}

}  // namespace hone::c
