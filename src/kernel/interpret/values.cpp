// The interpreter's arithmetic: each operation as one loop over the lanes, for each kind of cell.
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <unordered_map>

#include "kernel/interpret/program.h"
#include "ops/ops.h"

namespace hone::interpreter {

namespace {

using Runs = std::array<Run, cell_count>;

template <class T>
using Bits = std::make_unsigned_t<T>;

template <template <class> class Loop>
constexpr Runs runs_of() {
  return {Loop<bool>::run,          Loop<std::int8_t>::run,   Loop<std::int16_t>::run,
          Loop<std::int32_t>::run,  Loop<std::int64_t>::run,  Loop<std::uint8_t>::run,
          Loop<std::uint16_t>::run, Loop<std::uint32_t>::run, Loop<std::uint64_t>::run,
          Loop<float>::run,         Loop<double>::run};
}

template <class T>
constexpr bool is_real = std::is_floating_point_v<T>;
template <class T>
constexpr bool is_flag = std::is_same_v<T, bool>;

// Arithmetic that wraps.
template <class T, class F>
T wrapped(T a, T b, F f) {
  return static_cast<T>(f(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
}

struct Add {
  template <class T>
  static T of(T a, T b) {
    if constexpr (is_real<T>) return a + b;
    return wrapped(a, b, std::plus<>());
  }
};
struct Sub {
  template <class T>
  static T of(T a, T b) {
    if constexpr (is_real<T>) return a - b;
    return wrapped(a, b, std::minus<>());
  }
};
struct Mul {
  template <class T>
  static T of(T a, T b) {
    if constexpr (is_real<T>) return a * b;
    return wrapped(a, b, std::multiplies<>());
  }
};
struct Div {
  template <class T>
  static T of(T a, T b) {
    if constexpr (is_real<T>) return a / b;
    if (b == T(0)) return static_cast<T>(-1);
    if constexpr (std::is_signed_v<T>)
      if (b == T(-1)) return wrapped(T(0), a, std::minus<>());
    return static_cast<T>(a / b);
  }
};
struct Rem {
  template <class T>
  static T of(T a, T b) {
    if constexpr (is_real<T>) {
      return std::fmod(a, b);
    } else {
      if (b == T(0)) return a;
      if constexpr (std::is_signed_v<T>)
        if (b == T(-1)) return 0;
      return static_cast<T>(a % b);
    }
  }
};
struct Pow {
  template <class T>
  static T of(T a, T b) {
    if constexpr (is_real<T>) {
      return std::pow(a, b);
    } else {
      if constexpr (std::is_signed_v<T>)
        if (b < 0)
          return static_cast<T>(a == 0 ? -1 : a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0);
      std::uint64_t result = 1, base = static_cast<std::uint64_t>(a);
      for (auto k = static_cast<std::uint64_t>(b); k != 0; k >>= 1, base *= base)
        if (k & 1) result *= base;
      return static_cast<T>(result);
    }
  }
};
struct Maximum {
  template <class T>
  static T of(T a, T b) {
    if constexpr (is_real<T>) return a > b || a != a ? a : b;
    return a > b ? a : b;
  }
};
struct Minimum {
  template <class T>
  static T of(T a, T b) {
    if constexpr (is_real<T>) return a < b || a != a ? a : b;
    return a < b ? a : b;
  }
};
struct BitAnd {
  template <class T>
  static T of(T a, T b) {
    if constexpr (is_real<T>)
      return a;
    else
      return static_cast<T>(a & b);
  }
};
struct BitOr {
  template <class T>
  static T of(T a, T b) {
    if constexpr (is_real<T>)
      return a;
    else
      return static_cast<T>(a | b);
  }
};
struct BitXor {
  template <class T>
  static T of(T a, T b) {
    if constexpr (is_real<T>)
      return a;
    else
      return static_cast<T>(a ^ b);
  }
};
struct ShiftLeft {
  template <class T>
  static T of(T a, T b) {
    if constexpr (is_real<T> || is_flag<T>)
      return a;
    else {
      const auto distance = static_cast<Bits<T>>(b);
      return distance >= 8 * sizeof(T) ? T(0)
                                       : static_cast<T>(static_cast<std::uint64_t>(a) << distance);
    }
  }
};
struct ShiftRight {
  template <class T>
  static T of(T a, T b) {
    if constexpr (is_real<T> || is_flag<T>)
      return a;
    else {
      const auto distance = static_cast<Bits<T>>(b);
      if (distance >= 8 * sizeof(T)) return static_cast<T>(std::is_signed_v<T> && a < 0 ? -1 : 0);
      return static_cast<T>(a >> distance);
    }
  }
};
struct Eq {
  template <class T>
  static bool of(T a, T b) {
    return a == b;
  }
};
struct Ne {
  template <class T>
  static bool of(T a, T b) {
    return a != b;
  }
};
struct Lt {
  template <class T>
  static bool of(T a, T b) {
    return a < b;
  }
};
struct Le {
  template <class T>
  static bool of(T a, T b) {
    return a <= b;
  }
};

template <class F>
struct Binary {
  template <class T>
  struct Loop {
    static void run(Frame& f, const Instr& i) {
      auto* to = f.at<decltype(F::of(T(), T()))>(i.to);
      const T *a = f.at<T>(i.a), *b = f.at<T>(i.b);
      const std::int64_t n = f.lanes(i);
      for (std::int64_t l = 0; l < n; ++l) to[l] = F::of(a[l], b[l]);
    }
  };
  static constexpr Runs runs = runs_of<Loop>();
};

// ---- with one operand

struct Neg {
  template <class T>
  static T of(T x) {
    if constexpr (is_real<T>) return -x;
    return wrapped(T(0), x, std::minus<>());
  }
};
struct Abs {
  template <class T>
  static T of(T x) {
    if constexpr (is_real<T>)
      return std::fabs(x);
    else if constexpr (std::is_signed_v<T>)
      return x < 0 ? Neg::of(x) : x;
    else
      return x;
  }
};
struct Sign {
  template <class T>
  static T of(T x) {
    if constexpr (is_real<T>)
      return x > 0 ? T(1) : x < 0 ? T(-1) : x;
    else if constexpr (std::is_signed_v<T>)
      return static_cast<T>((x > 0) - (x < 0));
    else
      return static_cast<T>(x != T(0));
  }
};
struct BitNot {
  template <class T>
  static T of(T x) {
    if constexpr (is_flag<T>)
      return !x;
    else if constexpr (is_real<T>)
      return x;
    else
      return static_cast<T>(~x);
  }
};
struct Relu {
  template <class T>
  static T of(T x) {
    return x < T(0) ? T(0) : x;
  }
};
struct Square {
  template <class T>
  static T of(T x) {
    return Mul::of(x, x);
  }
};

// Op::real; integers are unchanged.
template <class T>
struct RealFunction {
  static void run(Frame& f, const Instr& i) {
    T* to = f.at<T>(i.to);
    const T* a = f.at<T>(i.a);
    const std::int64_t n = f.lanes(i);
    const auto function = f.program.functions[i.detail];
    for (std::int64_t l = 0; l < n; ++l)
      if constexpr (is_real<T>)
        to[l] = static_cast<T>(function(a[l]));
      else
        to[l] = a[l];
  }
};

template <class F>
struct Unary {
  template <class T>
  struct Loop {
    static void run(Frame& f, const Instr& i) {
      T* to = f.at<T>(i.to);
      const T* a = f.at<T>(i.a);
      const std::int64_t n = f.lanes(i);
      for (std::int64_t l = 0; l < n; ++l) to[l] = F::of(a[l]);
    }
  };
  static constexpr Runs runs = runs_of<Loop>();
};

Run find(const std::unordered_map<const Op*, const Runs*>& table, const Op& op, Cell cell) {
  auto it = table.find(&op);
  return it == table.end() ? nullptr : (*it->second)[static_cast<std::size_t>(cell)];
}

}  // namespace

Run binary_run(const Op& op, Cell cell) {
  static const std::unordered_map<const Op*, const Runs*> table = {
      {&ops::add, &Binary<Add>::runs},
      {&ops::sub, &Binary<Sub>::runs},
      {&ops::mul, &Binary<Mul>::runs},
      {&ops::div, &Binary<Div>::runs},
      {&ops::rem, &Binary<Rem>::runs},
      {&ops::pow, &Binary<Pow>::runs},
      {&ops::maximum, &Binary<Maximum>::runs},
      {&ops::minimum, &Binary<Minimum>::runs},
      {&ops::bit_and, &Binary<BitAnd>::runs},
      {&ops::bit_or, &Binary<BitOr>::runs},
      {&ops::bit_xor, &Binary<BitXor>::runs},
      {&ops::shift_left, &Binary<ShiftLeft>::runs},
      {&ops::shift_right, &Binary<ShiftRight>::runs},
      {&ops::eq, &Binary<Eq>::runs},
      {&ops::ne, &Binary<Ne>::runs},
      {&ops::lt, &Binary<Lt>::runs},
      {&ops::le, &Binary<Le>::runs},
  };
  return find(table, op, cell);
}

Run unary_run(const Op& op, Cell cell) {
  if (op.real) {
    static constexpr Runs runs = runs_of<RealFunction>();
    return runs[static_cast<std::size_t>(cell)];
  }
  static const std::unordered_map<const Op*, const Runs*> table = {
      {&ops::neg, &Unary<Neg>::runs},   {&ops::abs, &Unary<Abs>::runs},
      {&ops::sign, &Unary<Sign>::runs}, {&ops::bit_not, &Unary<BitNot>::runs},
      {&ops::relu, &Unary<Relu>::runs}, {&ops::square, &Unary<Square>::runs},
  };
  return find(table, op, cell);
}

// ---- choosing and copying

namespace {

template <class T>
struct Select {
  static void run(Frame& f, const Instr& i) {
    T* to = f.at<T>(i.to);
    const bool* which = f.at<bool>(i.a);
    const T *a = f.at<T>(i.b), *b = f.at<T>(i.c);
    const std::int64_t n = f.lanes(i);
    for (std::int64_t l = 0; l < n; ++l) to[l] = which[l] ? a[l] : b[l];
  }
};

template <class T>
struct Copy {
  static void run(Frame& f, const Instr& i) {
    std::memcpy(f.at<T>(i.to), f.at<T>(i.a), static_cast<std::size_t>(f.lanes(i)) * sizeof(T));
  }
};

template <class T>
struct CopyMasked {
  static void run(Frame& f, const Instr& i) {
    if (!f.mask) return Copy<T>::run(f, i);
    T* to = f.at<T>(i.to);
    const T* a = f.at<T>(i.a);
    for (std::int64_t l = 0; l < f.width; ++l)
      if (f.mask[l]) to[l] = a[l];
  }
};

template <class T>
struct Broadcast {
  static void run(Frame& f, const Instr& i) {
    std::fill_n(f.at<T>(i.to), f.program.width, *f.at<T>(i.a));
  }
};

template <class F>
struct JoinLanes {
  template <class T>
  struct Loop {
    // Joins in halves, so that rounding errors do not add up; the order depends only on the width.
    static void run(Frame& f, const Instr& i) {
      T* a = f.at<T>(i.a);
      for (std::int64_t n = f.program.width; n > 1; n = (n + 1) / 2)
        for (std::int64_t l = 0; l < n / 2; ++l) a[l] = F::of(a[l], a[l + (n + 1) / 2]);
      T& to = *f.at<T>(i.to);
      to = F::of(to, a[0]);
    }
  };
  static constexpr Runs runs = runs_of<Loop>();
};

template <class F>
struct ReduceGroup {
  template <class T>
  struct Loop {
    static void run(Frame& f, const Instr& i) {
      T* all = f.at<T>(i.to);
      std::copy_n(f.at<T>(i.a), f.width, all);
      // detail: number of neighbours to join; 1: all threads.
      const std::int64_t neighbours = i.detail > 1 ? i.detail : f.width;
      for (T* to = all; to < all + f.width; to += neighbours) {
        for (std::int64_t n = neighbours; n > 1; n = (n + 1) / 2)
          for (std::int64_t l = 0; l < n / 2; ++l) to[l] = F::of(to[l], to[l + (n + 1) / 2]);
        std::fill_n(to, neighbours, to[0]);
      }
    }
  };
  static constexpr Runs runs = runs_of<Loop>();
};

template <template <class> class By>
const std::unordered_map<const Op*, const Runs*>& joiners() {
  static const std::unordered_map<const Op*, const Runs*> table = {
      {&ops::add, &By<Add>::runs},         {&ops::mul, &By<Mul>::runs},
      {&ops::maximum, &By<Maximum>::runs}, {&ops::minimum, &By<Minimum>::runs},
      {&ops::bit_and, &By<BitAnd>::runs},  {&ops::bit_or, &By<BitOr>::runs},
      {&ops::bit_xor, &By<BitXor>::runs}};
  return table;
}

Run at(const Runs& runs, Cell c) { return runs[static_cast<std::size_t>(c)]; }

}  // namespace

Run select_run(Cell c) {
  static constexpr Runs runs = runs_of<Select>();
  return at(runs, c);
}
Run copy_run(Cell c) {
  static constexpr Runs runs = runs_of<Copy>();
  return at(runs, c);
}
Run copy_masked_run(Cell c) {
  static constexpr Runs runs = runs_of<CopyMasked>();
  return at(runs, c);
}
Run broadcast_run(Cell c) {
  static constexpr Runs runs = runs_of<Broadcast>();
  return at(runs, c);
}
Run join_lanes_run(const Op& op, Cell c) { return find(joiners<JoinLanes>(), op, c); }
Run reduce_group_run(const Op& op, Cell c) { return find(joiners<ReduceGroup>(), op, c); }

// ---- conversions

namespace {

template <class To>
To saturated(double x) {
  if (!(x == x)) return 0;
  constexpr double low = static_cast<double>(std::numeric_limits<To>::min()),
                   high = static_cast<double>(std::numeric_limits<To>::max());
  if (x <= low) return std::numeric_limits<To>::min();
  return x >= high ? std::numeric_limits<To>::max() : static_cast<To>(x);
}

template <class From, class To>
To converted(From x) {
  if constexpr (is_flag<To>)
    return x != From(0);
  else if constexpr (is_real<From> && !is_real<To>)
    return saturated<To>(static_cast<double>(x));
  else
    return static_cast<To>(x);
}

template <class From>
struct CastFrom {
  template <class To>
  struct Loop {
    static void run(Frame& f, const Instr& i) {
      To* to = f.at<To>(i.to);
      const From* a = f.at<From>(i.a);
      const std::int64_t n = f.lanes(i);
      for (std::int64_t l = 0; l < n; ++l) to[l] = converted<From, To>(a[l]);
    }
  };
  static constexpr Runs runs = runs_of<Loop>();
};

template <class From, DType to>
void round_to(Frame& f, const Instr& i) {
  float* out = f.at<float>(i.to);
  const From* a = f.at<From>(i.a);
  const std::int64_t n = f.lanes(i);
  for (std::int64_t l = 0; l < n; ++l) {
    if constexpr (to == DType::f16)
      out[l] =
          f16_to_f32(sizeof(From) == 8 ? f64_to_f16(a[l]) : f32_to_f16(static_cast<float>(a[l])));
    else
      out[l] = bf16_to_f32(sizeof(From) == 8 ? f64_to_bf16(a[l])
                                             : f32_to_bf16(static_cast<float>(a[l])));
  }
}

// Reinterprets the bits of a `from` as `to`; both have the same size.
template <DType from, class To>
void bits_of_narrow(Frame& f, const Instr& i) {
  const float* a = f.at<float>(i.a);
  const std::int64_t n = f.lanes(i);
  for (std::int64_t l = 0; l < n; ++l) {
    const std::uint16_t bits = from == DType::f16 ? f32_to_f16(a[l]) : f32_to_bf16(a[l]);
    f.at<To>(i.to)[l] = std::bit_cast<To>(bits);
  }
}
template <DType to, class From>
void narrow_of_bits(Frame& f, const Instr& i) {
  const std::int64_t n = f.lanes(i);
  for (std::int64_t l = 0; l < n; ++l) {
    const auto bits = std::bit_cast<std::uint16_t>(f.at<From>(i.a)[l]);
    f.at<float>(i.to)[l] = to == DType::f16 ? f16_to_f32(bits) : bf16_to_f32(bits);
  }
}
template <DType from, DType to>
void narrow_of_narrow(Frame& f, const Instr& i) {
  const float* a = f.at<float>(i.a);
  const std::int64_t n = f.lanes(i);
  for (std::int64_t l = 0; l < n; ++l) {
    const std::uint16_t bits = from == DType::f16 ? f32_to_f16(a[l]) : f32_to_bf16(a[l]);
    f.at<float>(i.to)[l] = to == DType::f16 ? f16_to_f32(bits) : bf16_to_f32(bits);
  }
}

}  // namespace

Run cast_run(Cell from, Cell to) {
  static constexpr std::array<const Runs*, cell_count> table = {
      &CastFrom<bool>::runs,          &CastFrom<std::int8_t>::runs,
      &CastFrom<std::int16_t>::runs,  &CastFrom<std::int32_t>::runs,
      &CastFrom<std::int64_t>::runs,  &CastFrom<std::uint8_t>::runs,
      &CastFrom<std::uint16_t>::runs, &CastFrom<std::uint32_t>::runs,
      &CastFrom<std::uint64_t>::runs, &CastFrom<float>::runs,
      &CastFrom<double>::runs};
  return (*table[static_cast<std::size_t>(from)])[static_cast<std::size_t>(to)];
}

Run round_run(DType t) {
  return t == DType::f16 ? round_to<float, DType::f16> : round_to<float, DType::bf16>;
}
Run round_double_run(DType t) {
  return t == DType::f16 ? round_to<double, DType::f16> : round_to<double, DType::bf16>;
}

Run bitcast_run(DType from, DType to) {
  if (is_narrow(from) && is_narrow(to)) {
    if (from == DType::f16)
      return to == DType::f16 ? narrow_of_narrow<DType::f16, DType::f16>
                              : narrow_of_narrow<DType::f16, DType::bf16>;
    return to == DType::f16 ? narrow_of_narrow<DType::bf16, DType::f16>
                            : narrow_of_narrow<DType::bf16, DType::bf16>;
  }
  if (is_narrow(from)) {
    if (to == DType::i16)
      return from == DType::f16 ? bits_of_narrow<DType::f16, std::int16_t>
                                : bits_of_narrow<DType::bf16, std::int16_t>;
    return from == DType::f16 ? bits_of_narrow<DType::f16, std::uint16_t>
                              : bits_of_narrow<DType::bf16, std::uint16_t>;
  }
  if (is_narrow(to)) {
    if (from == DType::i16)
      return to == DType::f16 ? narrow_of_bits<DType::f16, std::int16_t>
                              : narrow_of_bits<DType::bf16, std::int16_t>;
    return to == DType::f16 ? narrow_of_bits<DType::f16, std::uint16_t>
                            : narrow_of_bits<DType::bf16, std::uint16_t>;
  }
  return copy_run(cell_of(to));
}

Cell cell_of(DType t) {
  if (is_coded(t)) t = code_dtype(t);
  switch (t) {
    case DType::b1:
      return Cell::b1;
    case DType::i8:
      return Cell::i8;
    case DType::i16:
      return Cell::i16;
    case DType::i32:
      return Cell::i32;
    case DType::i64:
      return Cell::i64;
    case DType::u8:
      return Cell::u8;
    case DType::u16:
      return Cell::u16;
    case DType::u32:
      return Cell::u32;
    case DType::u64:
      return Cell::u64;
    case DType::f64:
      return Cell::f64;
    default:
      return Cell::f32;
  }
}

int byte_size(Cell c) {
  static constexpr int sizes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8};
  return sizes[static_cast<int>(c)];
}

// ---- positions

void linear(Frame& f, const Instr& i) {
  const Linear& sum = f.program.sums[i.detail];
  std::int64_t total = sum.constant;
  for (const Linear::Term& t : sum.terms) {
    std::int64_t product = t.factor;
    for (Slot s : t.slots) product *= f.integer(s);
    total += product;
  }
  *f.at<std::int64_t>(i.to) = total;
}

void spread(Frame& f, const Instr& i) {
  std::int64_t* to = f.at<std::int64_t>(i.to);
  const std::int64_t base = f.integer(i.a), step = f.integer(i.b);
  for (std::int64_t l = 0; l < f.width; ++l) to[l] = base + l * step;
}

namespace {

template <class F>
void position(Frame& f, const Instr& i) {
  std::int64_t* to = f.at<std::int64_t>(i.to);
  const std::int64_t *a = f.at<std::int64_t>(i.a), *b = f.at<std::int64_t>(i.b);
  const std::int64_t n = f.lanes(i);
  for (std::int64_t l = 0; l < n; ++l) to[l] = F::of(a[l], b[l]);
}

// May be hoisted out of the condition that guards it, so the divisor may be 0.
struct FloorDiv {
  static std::int64_t of(std::int64_t a, std::int64_t b) {
    if (b == 0) return 0;
    const std::int64_t q = Div::of(a, b);
    return q - (a % (b == -1 ? 1 : b) != 0 && (a < 0) != (b < 0));
  }
};
struct FloorMod {
  static std::int64_t of(std::int64_t a, std::int64_t b) {
    return b == 0 ? 0 : a - FloorDiv::of(a, b) * b;
  }
};
struct IsEqual {
  static std::int64_t of(std::int64_t a, std::int64_t b) { return a == b; }
};

}  // namespace

Run position_run(DimExpr::Kind kind) {
  switch (kind) {
    case DimExpr::Kind::floor_div:
      return position<FloorDiv>;
    case DimExpr::Kind::mod:
      return position<FloorMod>;
    case DimExpr::Kind::min:
      return position<Minimum>;
    case DimExpr::Kind::max:
      return position<Maximum>;
    default:
      return position<IsEqual>;
  }
}

}  // namespace hone::interpreter
