#include "backend/vulkan/target/glsl.h"

#include <algorithm>
#include <cctype>

#include "backend/vulkan/target/glsl_math.h"
#include "backend/vulkan/target/glsl_vectors.h"
#include "codegen/c/module.h"
#include "kernel/walk.h"
#include "ops/ops.h"

namespace hone::c {

namespace {

// Conversions are exact even on machines that treat denormals as zeros.
constexpr Helper own_helpers[] = {
    {"bits_f32", "", "#define hone_bits_f32 floatBitsToUint\n"},
    {"f32_bits", "", "#define hone_f32_bits uintBitsToFloat\n"},
    {"bits_f64", "", "#define hone_bits_f64 doubleBitsToInt64\n"},
    {"f64_bits", "", "#define hone_f64_bits int64BitsToDouble\n"},
    {"fma_f32", "", "#define hone_fma_f32 fma\n"},
    {"fma_f64", "", "#define hone_fma_f64 fma\n"},
    // Mesa up to 23 evaluates (int64_t)x < 20 as false because it folds the conversion into the
    // comparison.
    {"i64_of_i32", "",
     R"(int64_t hone_i64_of_i32(int32_t x) {
  return (int64_t)x << 32 >> 32;
}
)"},
    {"min_i32", "", "#define hone_min_i32 min\n"},
    {"max_i32", "", "#define hone_max_i32 max\n"},
    // The device converts f16 as IEEE requires, including subnormal numbers.
    {"converts_halves", "", "layout(constant_id = 1) const bool hone_converts_halves = false;\n"},
    {"f32_of_f16", "converts_halves",
     R"(float hone_f32_of_f16(uint16_t h) {
  if (hone_converts_halves) return unpackHalf2x16((uint32_t)h).x;
  const uint32_t exponent = (uint32_t)(h >> 10) & 31u, rest = (uint32_t)h & 1023u;
  const uint32_t sign = ((uint32_t)h & 0x8000u) << 16;
  const float subnormal = (float)rest * 5.9604644775390625e-8f;
  const uint32_t shifted = (exponent == 31u ? 0x7f800000u : (exponent + 112u) << 23) | rest << 13;
  return uintBitsToFloat(sign | (exponent == 0u ? floatBitsToUint(subnormal) : shifted));
}
)"},
    {"f16_of_f32", "converts_halves",
     R"(uint16_t hone_f16_of_f32(float x) {
  if (hone_converts_halves) return (uint16_t)packHalf2x16(vec2(x, 0.0f));
  const uint32_t bits = floatBitsToUint(x), rest = bits & 0x7fffffffu;
  const uint32_t special = rest > 0x7f800000u ? 0x7e00u : 0x7c00u;
  const uint32_t small = floatBitsToUint(uintBitsToFloat(rest) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (rest - 0x38000000u + 0xfffu + ((rest >> 13) & 1u)) >> 13;
  const uint32_t finite = rest < 0x38800000u ? small : normal;
  return (uint16_t)(((bits >> 16) & 0x8000u) | (rest >= 0x47800000u ? special : finite));
}
)"},
    // For bits that may be converted back at once: a driver that sees both conversions may remove
    // them, and with them the rounding. z is always 1.
    {"kept_f16_of_f32", "f16_of_f32",
     R"(uint16_t hone_kept_f16_of_f32(float x) {
  return hone_f16_of_f32(x) | (uint16_t)(gl_NumWorkGroups.z - 1u);
}
)"},
    // Whether exp2 of this device is within 2 units in the last place.
    {"raises_two", "", "layout(constant_id = 2) const bool hone_raises_two = false;\n"},
    {"short_power_f32", "exp_f32 raises_two",
     R"(float hone_short_power_f32(float x) {
  return hone_raises_two ? exp2(x) : hone_exp_f32(x * 0.693147181f);
}
)"},
    // exp(x) = 2^t * exp(x - t ln(2)), where t is x / ln(2) rounded.
    {"exp_f32", "polynomial_exp_f32 raises_two fma_f32",
     R"(float hone_exp_f32(float x) {
  if (!hone_raises_two) return hone_polynomial_exp_f32(x);
  const float bounded = x < -104.0f ? -104.0f : x > 89.0f ? 89.0f : x, t = bounded * 1.44269504f;
  const float left = hone_fma_f32(t, 1.90465421e-9f, hone_fma_f32(t, -0.693147182f, bounded));
  return exp2(t) * (left + 1.0f);
}
)"},
    {"floor_mod", "",
     R"(int64_t hone_floor_mod(int64_t a, int64_t b) {
  const int64_t rest = a - a / b * b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
)"},
    {"floor_div", "",
     R"(int64_t hone_floor_div(int64_t a, int64_t b) {
  const int64_t quotient = a / b, rest = a - quotient * b;
  return rest != 0 && (rest < 0) != (b < 0) ? quotient - 1 : quotient;
}
)"},
};

// In GLSL, % of a negative number is undefined, and bool has no arithmetic.
constexpr IntegerHelper own_integers[] = {
    {"rem",
     "$T $F($T a, $T b) {\n"
     "  return b == 0 ? a : b == -1 ? ($T)0 : ($T)(a - a / b * b);\n"
     "}\n",
     "$T $F($T a, $T b) {\n"
     "  return b == 0 ? a : ($T)(a % b);\n"
     "}\n"},
    {"div",
     "$T $F($T a, $T b) {\n"
     "  return b == 0 ? ($T)-1 : b == -1 ? ($T)(($U)0 - ($U)a) : ($T)(a / b);\n"
     "}\n",
     "$T $F($T a, $T b) {\n"
     "  return b == 0 ? ($T)~($U)0 : ($T)(a / b);\n"
     "}\n"},
    {"sign",
     "$T $F($T a) {\n"
     "  return ($T)((int)(a > 0) - (int)(a < 0));\n"
     "}\n",
     ""},
};

std::string bits_as(DType from, DType to) {
  const auto bits = [](DType t) { return byte_size(t) == 8 ? "64" : ""; };
  HONE_ASSERT(byte_size(from) >= 4 && is_float(from) != is_float(to), "bits of ", from, " as ", to);
  if (is_float(from))
    return cat(from == DType::f64 ? "double" : "float", "BitsTo", is_signed(to) ? "Int" : "Uint",
               bits(to));
  return cat(is_signed(from) ? "int" : "uint", bits(from), "BitsTo",
             to == DType::f64 ? "Double" : "Float");
}

constexpr std::string_view glsl_version = "#version 460\n";
constexpr std::string_view glsl_preamble =
    R"c(#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_buffer_reference2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#define INFINITY uintBitsToFloat(0x7f800000u)
#define NAN uintBitsToFloat(0x7fc00000u)
#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295u
#define INT64_MIN (-9223372036854775807l - 1l)
#define INT64_MAX 9223372036854775807l
#define UINT64_MAX 18446744073709551615ul
#define fabsf abs
#define fabs abs
#define floorf floor
#define ceilf ceil
#define rintf roundEven
#define rint roundEven
#define truncf trunc
#define sqrtf sqrt
#define copysignf(a, b) \
  uintBitsToFloat((floatBitsToUint(a) & 0x7fffffffu) | (floatBitsToUint(b) & 0x80000000u))
)c";

// ---- C becomes GLSL: conversions are calls, doubles and 64-bit numbers have suffixes

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

bool is_type(std::string_view word) {
  static constexpr std::string_view types[] = {"int8_t",  "uint8_t",  "int16_t", "uint16_t",
                                               "int32_t", "uint32_t", "int64_t", "uint64_t",
                                               "int",     "float",    "double",  "bool"};
  return std::ranges::find(types, word) != std::end(types);
}

class Respelling {
 public:
  explicit Respelling(std::string_view c) : c_(c) {}

  std::string run() {
    std::string out;
    while (at_ < c_.size()) out += next();
    return out;
  }

 private:
  std::size_t word_end(std::size_t from) const {
    while (from < c_.size() && is_word(c_[from])) ++from;
    return from;
  }
  // The position after the bracket that closes the one at `from`.
  std::size_t closed(std::size_t from) const {
    int depth = 0;
    for (std::size_t i = from; i < c_.size(); ++i) {
      depth += c_[i] == '(' || c_[i] == '[' ? 1 : c_[i] == ')' || c_[i] == ']' ? -1 : 0;
      if (depth == 0) return i + 1;
    }
    throw InternalError("a bracket is open in: ", c_.substr(from, 80));
  }

  std::string next() {
    const char c = c_[at_];
    if (c == '(') {
      const std::size_t end = word_end(at_ + 1);
      const bool is_call = at_ > 0 && is_word(c_[at_ - 1]);
      const std::string_view type = c_.substr(at_ + 1, end - at_ - 1);
      if (!is_call && end < c_.size() && c_[end] == ')' && is_type(type)) {
        at_ = end + 1;
        return cat(type, "(", operand(), ")");
      }
    }
    if (std::isdigit(static_cast<unsigned char>(c))) return number();
    if (is_word(c)) return word();
    ++at_;
    return std::string(1, c);
  }

  // The operand of a conversion.
  std::string operand() {
    std::string out;
    while (c_[at_] == '-' || c_[at_] == '~' || c_[at_] == '!') out += c_[at_++];
    if (c_[at_] == '(') {
      const std::string before = next();
      if (before != "(") return out + before;  // another conversion
      --at_;
      out += bracket();
    } else {
      out += next();
    }
    for (;;) {
      if (at_ < c_.size() && (c_[at_] == '(' || c_[at_] == '['))
        out += bracket();
      else if (at_ + 1 < c_.size() && c_[at_] == '.' && is_word(c_[at_ + 1]))
        out += c_[at_++], out += next();
      else
        return out;
    }
  }

  std::string bracket() {
    const std::size_t end = closed(at_);
    std::string inside = Respelling(c_.substr(at_ + 1, end - at_ - 2)).run();
    const std::string out = cat(c_[at_], inside, c_[end - 1]);
    at_ = end;
    return out;
  }

  std::string number() {
    const std::size_t from = at_;
    const bool is_hexadecimal = c_.substr(at_, 2) == "0x";
    bool is_real = false;
    while (at_ < c_.size()) {
      const char c = c_[at_];
      const bool is_sign = (c == '+' || c == '-') && !is_hexadecimal && at_ > from &&
                           (c_[at_ - 1] == 'e' || c_[at_ - 1] == 'E');
      if (!is_word(c) && c != '.' && !is_sign) break;
      is_real = is_real || (!is_hexadecimal && (c == '.' || c == 'e'));
      ++at_;
    }
    const std::string_view text = c_.substr(from, at_ - from);
    return cat(text, is_real && text.back() != 'f' && text.back() != 'F' ? "lf" : "");
  }

  std::string word() {
    const std::size_t end = word_end(at_);
    const std::string_view word = c_.substr(at_, end - at_);
    at_ = end;
    if (word == "INT64_C" || word == "UINT64_C") {
      const std::size_t close = closed(at_);
      const std::string_view digits = c_.substr(at_ + 1, close - at_ - 2);
      at_ = close;
      return cat(digits, word == "INT64_C" ? "l" : "ul");
    }
    if (word == "HONE_INLINE") return "";
    return cat(word, word == "half" || word == "out" ? "_" : "");  // reserved words of GLSL
  }

  std::string_view c_;
  std::size_t at_ = 0;
};

std::string respell(std::string_view c) {
  // Preprocessor lines and comments stay.
  std::string out, text;
  auto flush = [&] { out += Respelling(std::exchange(text, "")).run(); };
  for (std::size_t at = 0; at < c.size();) {
    const bool is_comment = c.substr(at, 2) == "/*";
    const bool is_directive = c[at] == '#' && (at == 0 || c[at - 1] == '\n');
    if (!is_comment && !is_directive) {
      text += c[at++];
      continue;
    }
    flush();
    const std::size_t end = is_comment ? c.find("*/", at) + 2 : c.find('\n', at);
    out += c.substr(at, end - at);
    at = end;
  }
  flush();
  return out;
}

// A block of elements accessed by address.
std::string array_type(DType t) {
  const std::string_view type = memory_type(t);
  const int bytes = byte_size(is_coded(t) ? code_dtype(t) : t);
  return cat("layout(buffer_reference, scalar, buffer_reference_align = ", bytes, ") buffer ", type,
             "_array { ", type, " at[]; };\n");
}

// subgroupMax of floats is undefined if one of them is NaN.
std::string join_subgroup(const Op& op, DType t) {
  const bool is_real = t == DType::f32 || t == DType::f64;
  if (!is_real && t != DType::i32 && t != DType::u32) return "";
  if (&op == &ops::add) return "subgroupAdd(own)";
  if (&op == &ops::mul) return "subgroupMul(own)";
  if (&op == &ops::maximum)
    return is_real ? cat("subgroupAny(own != own) ? ", register_type(t), "(NAN) : subgroupMax(own)")
                   : "subgroupMax(own)";
  // NVIDIA's driver 580.159 crashes on a shader that has a division and subgroupMin(x) of floats,
  // or -subgroupMax(-x). So minima of floats use shared memory.
  if (is_real) return "";
  if (&op == &ops::minimum) return "subgroupMin(own)";
  if (&op == &ops::bit_and) return "subgroupAnd(own)";
  if (&op == &ops::bit_or) return "subgroupOr(own)";
  return &op == &ops::bit_xor ? "subgroupXor(own)" : "";
}

// The subgroup barrier reconverges threads that ran different loop iterations. Each subgroup then
// combines the results of all subgroups.
constexpr std::string_view reduce_by_subgroups = R"({
  $T own = $X;
  subgroupBarrier();
  own = $S;
  if (subgroupElect()) $A[gl_SubgroupID] = own;
  barrier();
  own = $0;
  for (uint32_t i = gl_SubgroupInvocationID; i < gl_NumSubgroups; i += gl_SubgroupSize) {
    const $T a = own, b = $A[i];
    own = $E;
  }
  subgroupBarrier();
  $R = $S;
  barrier();
})";

constexpr std::string_view reduce_neighbours_by_shuffles = R"({
  $T own = $X;
  subgroupBarrier();
  for (uint32_t h = $Nu / 2u; h > 0u; h /= 2u) {
    const $T a = own, b = subgroupShuffleXor(own, h);
    own = $E;
  }
  $R = own;
})";

constexpr std::string_view shuffle_preamble =
    "#extension GL_KHR_shader_subgroup_shuffle : require\n";

constexpr std::string_view subgroup_preamble = R"(#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_vote : require
)";

// Kernels with matrices declare the memory model that matrices require.
constexpr std::string_view matrix_preamble = R"(#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_NV_cooperative_matrix : require
)";

std::string matrix_types() {
  constexpr std::string_view names[] = {"hone_left", "hone_right", "hone_sums"};
  std::string out;
  for (std::size_t i = 0; i < std::size(names); ++i)
    out += cat("layout(constant_id = ", matrix_rows[i], ") const uint ", names[i],
               "_rows = 16;\n#define ", names[i], " fcoopmatNV<", i < 2 ? 16 : 32,
               ", gl_ScopeSubgroup, ", names[i], "_rows, 16>\n");
  return out;
}

constexpr MatrixWords matrix_words = {
    .first_thread = "(int32_t)(gl_SubgroupID * 32u)",
    .barrier = "barrier();",
    .subgroup_barrier = "subgroupBarrier();",
    .word = "uvec4",
    .zero = "uvec4(0u)",
    .element = "uintBitsToFloat($A[(int32_t)($I) / 4][(int32_t)($I) % 4])",
    .unpack = "$V = hone_unpack_$T_x$N($W);",
    .pack = "$W = hone_pack_$T_x$N($V);",
    .read = "hone_read_$T_x$N($P, (int64_t)($I))",
    .left = "hone_left",
    .right = "hone_right",
    .sums = "hone_sums",
    .fill = "$V = hone_sums($X);",
    .load = "coopMatLoadNV($V, $A, (uint32_t)($I), $Pu, $C);",
    .store = "coopMatStoreNV($V, $A, (uint32_t)($I), $Pu, false);",
    .multiply = "$S = coopMatMulAddNV($L, $R, $S);",
};

std::span<const Helper> all_helpers() {
  static const std::vector<Helper> all = [] {
    std::vector<Helper> out(std::begin(own_helpers), std::end(own_helpers));
    out.insert(out.end(), glsl_math_helpers().begin(), glsl_math_helpers().end());
    return out;
  }();
  return all;
}

}  // namespace

const Dialect glsl = {
    .language = "GLSL",
    .preamble = glsl_preamble,
    .helpers = all_helpers(),
    .integer_helpers = own_integers,
    .has_math = false,
    .bitcast = bits_as,
    .promotes_integers = false,
    .zero = "uintBitsToFloat(gl_NumWorkGroups.z - 1u)",
    .choice_skips_loads = false,
    .element = "$P.at[$I]",
    .far_element = "$T_array(uint64_t($P) + (uint64_t)($I) * $B).at[0]",
    .size = "arguments.sizes[$I]",
    .has_groups = true,
    .group = "gl_WorkGroupID.x",
    .groups = "gl_NumWorkGroups.x",
    .thread = "gl_LocalInvocationID.x",
    .barrier = "groupMemoryBarrier(); barrier();",
    .unroll = "[[unroll]]",
    .keep_loop = "[[dont_unroll]]",
    .most_products_to_unroll = 32,
    .vector_type = "$T_x$N",
    .vector_load = "$V = hone_load_$T_x$N($P, (int64_t)($I));",
    .vector_store = "hone_store_$T_x$N($P, (int64_t)($I), $V);",
    .least_vector_bytes = 4,
    .reduce_group = reduce_by_subgroups,
    .join_subgroup = join_subgroup,
    .matrices = &matrix_words,
    .scratch = "$T_array $P = $T_array(scratch + (uint64_t)$O);",
    .respell = respell,
};

namespace {

// Whether a kernel reduces neighbours, all of them in subgroups of this size and of types that
// threads can exchange.
bool joins_within(const Kernel& kernel, int subgroup) {
  bool joins = false, fits = subgroup > 0 && group_threads(kernel) % std::max(subgroup, 1) == 0;
  for_each_statement(kernel.body, [&](const Stmt& s) {
    if (s.kind != Stmt::Kind::reduce_group || s.extent == Dim(1)) return;
    const DType t = register_dtype(s.value.dtype());
    joins = true;
    fits = fits && s.extent.number() <= subgroup &&
           (t == DType::f32 || t == DType::f64 || t == DType::i32 || t == DType::u32);
  });
  return joins && fits;
}

// Writes the complete shader around the kernel's text.
void write_shader(const Kernel& kernel, const GroupText& text, Shader& out, std::string& whole) {
  out.uses_scratch = text.uses_scratch;
  out.words =
      static_cast<int>(kernel.params.size() + kernel.sizes.size()) + (out.uses_scratch ? 2 : 0);
  std::string types, members;
  auto use_type = [&](DType t) {
    const std::string type = array_type(t);
    if (types.find(type) == std::string::npos) types += type;
  };
  for (const KernelMemory& m : kernel.memory) use_type(m.dtype);
  for (std::size_t i = 0; i < kernel.params.size(); ++i) {
    use_type(kernel.params[i].dtype);
    members += cat("  ", memory_type(kernel.params[i].dtype), "_array p", i, ";\n");
  }
  if (!kernel.sizes.empty()) members += cat("  int64_t sizes[", kernel.sizes.size(), "];\n");
  if (out.uses_scratch) members += "  uint64_t scratch, scratch_bytes;\n";
  std::string arguments;
  if (!members.empty() && out.words <= Shader::most_pushed)
    arguments =
        cat("layout(push_constant, scalar) uniform Arguments {\n", members, "} arguments;\n");
  else if (!members.empty())
    arguments = cat("layout(buffer_reference, scalar) readonly buffer Arguments {\n", members,
                    "};\nlayout(push_constant, scalar) uniform Pushed { Arguments arguments; };\n");
  std::string shared, locals;
  for (const std::string& array : text.shared) shared += cat("shared ", array, ";\n");
  for (std::size_t i = 0; i < kernel.params.size(); ++i)
    locals +=
        cat("  ", memory_type(kernel.params[i].dtype), "_array p", i, " = arguments.p", i, ";\n");
  const int threads = group_threads(kernel);
  if (out.uses_scratch)
    locals += cat("  uint64_t scratch = arguments.scratch + uint64_t(gl_WorkGroupID.x * ", threads,
                  "u + gl_LocalInvocationID.x) * arguments.scratch_bytes;\n");
  whole = cat(glsl_version, text.uses_subgroups ? subgroup_preamble : "",
              out.subgroup > 0 ? shuffle_preamble : "", text.uses_matrices ? matrix_preamble : "",
              glsl_preamble, "/* ", in_comment(kernel.name), " */\nlayout(local_size_x = ", threads,
              ") in;\n", types, arguments, text.uses_matrices ? matrix_types() : "", shared,
              glsl_vectors(text.vectors, text.uses_matrices), respell(text.helpers),
              "void main() {\n", locals, respell(text.body), "}\n");
}

}  // namespace

Shader shader(const Kernel& kernel, int subgroup) {
  Shader out;
  out.subgroup = has_matrices(kernel) ? 32 : joins_within(kernel, subgroup) ? subgroup : 0;
  Dialect dialect = glsl;
  if (out.subgroup > 0) {
    dialect.subgroup = out.subgroup;
    dialect.thread = "(gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID)";
    dialect.reduce_neighbours = reduce_neighbours_by_shuffles;
  }
  const GroupText text = group_text(kernel, dialect);
  out.uses_vectors = !text.vectors.empty();
  write_shader(kernel, text, out, out.text);
  if (!text.uses_subgroups || out.subgroup > 0) return out;
  Dialect plain = glsl;
  plain.reduce_group = {};
  plain.join_subgroup = nullptr;
  write_shader(kernel, group_text(kernel, plain), out, out.plain_text);
  return out;
}

}  // namespace hone::c
