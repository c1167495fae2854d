#include "codegen/c/helpers.h"

#include <algorithm>
#include <sstream>

#include "codegen/c/text.h"

namespace hone::c {

namespace {

std::string unsigned_type(DType t) { return cat("uint", 8 * byte_size(t), "_t"); }

// 2^n
std::string power_of_two(int n, DType t) {
  double x = 1;
  for (int i = 0; i < n; ++i) x *= 2;
  return literal(x, t);
}

std::string lowest(DType t) { return is_signed(t) ? cat("INT", 8 * byte_size(t), "_MIN") : "0"; }
std::string highest(DType t) {
  return cat(is_signed(t) ? "INT" : "UINT", 8 * byte_size(t), "_MAX");
}

constexpr IntegerHelper integer_texts[] = {
    {"div",
     "HONE_INLINE $T $F($T a, $T b) {\n"
     "  return b == 0 ? ($T)-1 : b == -1 ? ($T)(($U)0 - ($U)a) : ($T)(a / b);\n"
     "}\n",
     "HONE_INLINE $T $F($T a, $T b) {\n"
     "  return b == 0 ? ($T)~($U)0 : ($T)(a / b);\n"
     "}\n"},
    {"rem",
     "HONE_INLINE $T $F($T a, $T b) {\n"
     "  return b == 0 ? a : b == -1 ? ($T)0 : ($T)(a % b);\n"
     "}\n",
     "HONE_INLINE $T $F($T a, $T b) {\n"
     "  return b == 0 ? a : ($T)(a % b);\n"
     "}\n"},
    {"shift_left",
     "HONE_INLINE $T $F($T a, $T n) {\n"
     "  return ($V)n < $B ? ($T)(($U)a << ($V)n) : ($T)0;\n"
     "}\n",
     ""},
    {"shift_right",
     "HONE_INLINE $T $F($T a, $T n) {\n"
     "  return ($T)(a >> (($V)n < $B ? ($V)n : $B - 1));\n"
     "}\n",
     "HONE_INLINE $T $F($T a, $T n) {\n"
     "  return n < $B ? ($T)(a >> n) : ($T)0;\n"
     "}\n"},
    {"abs",
     "HONE_INLINE $T $F($T a) {\n"
     "  return ($T)(a < 0 ? ($U)0 - ($U)a : ($U)a);\n"
     "}\n",
     "HONE_INLINE $T $F($T a) {\n"
     "  return a;\n"
     "}\n"},
    {"sign",
     "HONE_INLINE $T $F($T a) {\n"
     "  return ($T)((a > 0) - (a < 0));\n"
     "}\n",
     "HONE_INLINE $T $F($T a) {\n"
     "  return ($T)(a > 0);\n"
     "}\n"},
    {"pow",
     "HONE_INLINE $T $F($T x, $T n) {\n"
     "  $U power = 1, square = ($U)x, rest = ($U)n;\n"
     "  if (n < 0) {\n"
     "    /* 1 / x^-n, truncated */\n"
     "    if (x == 1) return ($T)1;\n"
     "    if (x == -1) return (n & 1) != 0 ? ($T)-1 : ($T)1;\n"
     "    return x == 0 ? ($T)-1 : ($T)0;\n"
     "  }\n"
     "  for (; rest != 0; rest >>= 1) {\n"
     "    if ((rest & 1) != 0) power *= square;\n"
     "    square *= square;\n"
     "  }\n"
     "  return ($T)power;\n"
     "}\n",
     "HONE_INLINE $T $F($T x, $T n) {\n"
     "  $U power = 1, square = x, rest = n;\n"
     "  for (; rest != 0; rest >>= 1) {\n"
     "    if ((rest & 1) != 0) power *= square;\n"
     "    square *= square;\n"
     "  }\n"
     "  return ($T)power;\n"
     "}\n"},
};

constexpr std::string_view saturate_text =
    "HONE_INLINE $T $F($S x) {\n"
    "  return x != x ? ($T)0 : x < $L ? ($T)$M : x >= $H ? ($T)$X : ($T)x;\n"
    "}\n";

constexpr std::string_view bitcast_text =
    "HONE_INLINE $T $F($S x) {\n"
    "  $T y;\n"
    "  memcpy(&y, &x, sizeof y);\n"
    "  return y;\n"
    "}\n";

constexpr std::string_view plain_sums_text =
    "#define $N_MULADD(sum, x, v) ((sum) += (x) * (v))\n"
    "#define $N_MULADD2(sum, v, w) ((sum) += (v) * (w))\n";

// C has no fused multiply-add of vectors: clang contracts; gcc has functions for the vectors of
// <immintrin.h> and finds others itself.
constexpr std::string_view fused_sums_text = R"c(#if defined(__clang__)
#define $N_MULADD(sum, x, v) \
  do { \
    _Pragma("STDC FP_CONTRACT ON") (sum) += (x) * (v); \
  } while (0)
#define $N_MULADD2(sum, v, w) $N_MULADD(sum, v, w)
#elif defined($I)
#include <immintrin.h>
#define $N_MULADD(sum, x, v) ((sum) = ($V)$P_fmadd_$S($P_set1_$S(x), ($T)(v), ($T)(sum)))
#define $N_MULADD2(sum, v, w) ((sum) = ($V)$P_fmadd_$S(($T)(v), ($T)(w), ($T)(sum)))
#elif HONE_FUSES
#define $N_MULADD(sum, x, v) \
  do { \
    for (int l = 0; l < $L; ++l) (sum)[l] = $F((x), (v)[l], (sum)[l]); \
  } while (0)
#define $N_MULADD2(sum, v, w) \
  do { \
    for (int l = 0; l < $L; ++l) (sum)[l] = $F((v)[l], (w)[l], (sum)[l]); \
  } while (0)
#else
#define $N_MULADD(sum, x, v) ((sum) += (x) * (v))
#define $N_MULADD2(sum, v, w) ((sum) += (v) * (w))
#endif
)c";

// Statements, not functions: vectors as arguments would depend on the machine's calling convention.
constexpr std::string_view vector_text = R"c(#if defined(__GNUC__)
typedef $E $V __attribute__((vector_size($B)));
typedef $E $V_in_memory __attribute__((vector_size($B), aligned($A), may_alias));
#define $N_LOAD(v, p) ((v) = *(const $V_in_memory *)(const void *)(p))
#define $N_STORE(p, v) (*($V_in_memory *)(void *)(p) = (v))
$Q#else
typedef struct {
  $E of[$L];
} $V;
static inline void $V_muladd($V *sum, $E x, const $V *v) {
#pragma STDC FP_CONTRACT ON
  for (int i = 0; i < $L; ++i) sum->of[i] += x * v->of[i];
}
static inline void $V_muladd2($V *sum, const $V *v, const $V *w) {
#pragma STDC FP_CONTRACT ON
  for (int i = 0; i < $L; ++i) sum->of[i] += v->of[i] * w->of[i];
}
#define $N_LOAD(v, p) (memcpy(&(v), (p), sizeof(v)))
#define $N_STORE(p, v) (memcpy((p), &(v), sizeof(v)))
#define $N_MULADD(sum, x, v) ($V_muladd(&(sum), (x), &(v)))
#define $N_MULADD2(sum, v, w) ($V_muladd2(&(sum), &(v), &(w)))
#endif
#define $N_ZERO(v) (memset(&(v), 0, sizeof(v)))
#define $N_LOAD_PART(v, p, n) \
  ($N_ZERO(v), (void)((n) > 0 ? memcpy(&(v), (p), sizeof($E) * (size_t)((n) < $L ? (n) : $L)) : &(v)))
)c";

}  // namespace

std::string filled(std::string_view pattern,
                   std::initializer_list<std::pair<std::string_view, std::string>> words) {
  std::string out(pattern);
  for (const auto& [from, to] : words)
    for (std::size_t at = out.find(from); at != std::string::npos; at = out.find(from, at))
      out.replace(at, from.size(), to), at += to.size();
  return out;
}

bool Helpers::add(const std::string& name, std::string text) {
  if (!texts_.emplace(name, std::move(text)).second) return false;
  order_.push_back(name);
  return true;
}

const Helper* Helpers::find(std::string_view name) const {
  for (std::span<const Helper> list : {dialect_->helpers, std::span<const Helper>(math_helpers())})
    if (auto it = std::ranges::find(list, name, &Helper::name); it != list.end()) return &*it;
  return nullptr;
}

std::string Helpers::use(std::string_view name) {
  const Helper* it = find(name);
  HONE_ASSERT(it, "no ", dialect_->language, " helper ", name);
  if (!texts_.contains(name)) {
    std::istringstream needs{std::string(it->needs)};
    for (std::string need; needs >> need;) use(need);
    add(std::string(name), std::string(it->text));
  }
  return cat("hone_", name);
}

std::string Helpers::integer(std::string_view function, DType t) {
  const std::string name = cat(function, "_", t);
  for (std::span<const IntegerHelper> list :
       {dialect_->integer_helpers, std::span<const IntegerHelper>(integer_texts)}) {
    const auto i = std::ranges::find(list, function, &IntegerHelper::name);
    if (i == list.end()) continue;
    const bool is_plain = !is_signed(t) && !i->without_sign.empty();
    add(name,
        filled(is_plain ? i->without_sign : i->with_sign, {{"$T", std::string(memory_type(t))},
                                                           {"$U", std::string(wrapping_type(t))},
                                                           {"$V", unsigned_type(t)},
                                                           {"$B", cat(8 * byte_size(t))},
                                                           {"$F", "hone_" + name}}));
    return "hone_" + name;
  }
  throw InternalError("no C helper ", name);
}

std::string Helpers::saturate(DType from, DType to) {
  const std::string name = cat(to, "_of_", from);
  const int bits = 8 * byte_size(to) - (is_signed(to) ? 1 : 0);
  add(name, filled(saturate_text,
                   {{"$T", std::string(memory_type(to))},
                    {"$S", std::string(memory_type(from))},
                    {"$L", is_signed(to) ? cat("-", power_of_two(bits, from)) : literal(0.0, from)},
                    {"$H", power_of_two(bits, from)},
                    {"$M", lowest(to)},
                    {"$X", highest(to)},
                    {"$F", "hone_" + name}}));
  return "hone_" + name;
}

std::string Helpers::bitcast(DType from, DType to) {
  if (dialect_->bitcast) return dialect_->bitcast(from, to);
  const std::string name = cat(to, "_of_bits_of_", from);
  add(name, filled(bitcast_text, {{"$T", std::string(memory_type(to))},
                                  {"$S", std::string(memory_type(from))},
                                  {"$F", "hone_" + name}}));
  return "hone_" + name;
}

std::string Helpers::vector_type(DType t, int lanes) { return cat("hone_", t, "x", lanes); }

std::string Helpers::vector(DType t, int lanes) {
  std::string name = vector_type(t, lanes), macro = name;
  std::transform(macro.begin(), macro.end(), macro.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  const int bytes = lanes * byte_size(t);
  // Sums of integers wrap.
  const bool wraps = !is_float(t), is_long = bytes > 32, is_double = t == DType::f64;
  add(name, filled(vector_text, {{"$Q", std::string(wraps ? plain_sums_text : fused_sums_text)},
                                 {"$F", is_double ? "fma" : "fmaf"},
                                 {"$I", is_long ? "__AVX512F__" : "__FMA__"},
                                 {"$P", is_long ? "_mm512" : "_mm256"},
                                 {"$T", cat(is_long ? "__m512" : "__m256", is_double ? "d" : "")},
                                 {"$S", is_double ? "pd" : "ps"},
                                 {"$E", wraps ? unsigned_type(t) : std::string(memory_type(t))},
                                 {"$B", cat(bytes)},
                                 {"$A", cat(byte_size(t))},
                                 {"$L", cat(lanes)},
                                 {"$N", macro},
                                 {"$V", name}}));
  return macro;
}

std::string Helpers::text() const {
  std::string out;
  for (const std::string& name : order_) out += texts_.at(name) + "\n";
  return out;
}

namespace {

constexpr std::string_view c11_preamble =
    R"c(#if defined(__GNUC__) && !defined(__clang__)
/* What is fused says so; errno and traps of arithmetic are nobody's concern. */
#pragma GCC optimize("fp-contract=off", "no-math-errno", "no-trapping-math")
#define HONE_INDEPENDENT _Pragma("GCC ivdep")
#elif defined(__clang__)
#pragma STDC FP_CONTRACT OFF
/* Loops whose turns are independent are not all worth vectors. */
#pragma clang diagnostic ignored "-Wpass-failed"
#define HONE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#pragma STDC FP_CONTRACT OFF
#define HONE_INDEPENDENT
#endif
#if defined(__GNUC__)
#define HONE_INLINE static inline __attribute__((always_inline))
/* Kernels stay apart: they see the same memory as numbers of different types. */
#define HONE_KERNEL static __attribute__((noinline))
#if defined(__clang__) && defined(__x86_64__)
/* Vectors are as long as they are written, where the machine has such. */
#define HONE_TILES static __attribute__((noinline, __min_vector_width__(512)))
#else
#define HONE_TILES HONE_KERNEL
#endif
#else
#define HONE_TILES static
#define HONE_INLINE static inline
#define HONE_KERNEL static
#endif

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Whether a multiply-add with one rounding is fast. */
#if (defined(FP_FAST_FMA) && defined(FP_FAST_FMAF)) || defined(__FMA__) || defined(__aarch64__)
#define HONE_FUSES 1
#else
#define HONE_FUSES 0
#endif

)c";

}  // namespace

constinit const Dialect c11 = {.language = "C", .preamble = c11_preamble};

}  // namespace hone::c
