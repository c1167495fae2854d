// A complete operation: its meaning, typing and expansion. One constant value per operation, in
// src/ops; not a class hierarchy.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <source_location>
#include <span>
#include <string_view>
#include <vector>

#include "ir/attr.h"
#include "ir/evaluation.h"

namespace hone {

struct Call;
class Pattern;
class Value;
template <class T>
concept Expression = std::same_as<T, Value> || std::same_as<T, Pattern>;

// What the compiler may assume about an operation without knowing its name.
enum class OpKind : std::uint8_t {
  leaf,         // param, constant, dims: no operands
  elementwise,  // element i of each result depends on element i of each operand
  movement,     // each result element is one operand element or a constant
  reduction,
  contraction,  // dot, conv
  control,      // if, while, refuse
  other,
};

// Operand types and attributes that the tests try on every backend.
struct Sample {
  std::vector<Type> operands;
  Attrs attrs = {};
};
using Samples = std::vector<Sample>;

// The equivalent operator of a file format: equal operands in the same order, no attributes.
struct OperatorName {
  std::string_view name = {};
  std::int64_t since = 1;  // the first opset version that has it
  std::size_t operands = 1;
};

struct Op {
  std::string_view name;
  std::string_view doc;
  OpKind kind = OpKind::other;
  // Result types; throws UserError for invalid operands or attributes.
  std::vector<Type> (*infer)(const Call&) = nullptr;
  // One gradient per operand (an invalid Value where there is none), given one dy per result
  // (invalid where unused). Null: differentiated through differentiable or expand; an op without
  // any of the three has no gradient.
  std::vector<Value> (*grad)(const Call&, std::span<const Value> results,
                             std::span<const Value> dy) = nullptr;
  // The same results made of ops that have gradients; used to differentiate this op.
  std::vector<Value> (*differentiable)(const Call&) = nullptr;
  // The same results made of smaller ops. Null: a core op.
  std::vector<Value> (*expand)(const Call&) = nullptr;
  // For ops that apply a function of one real number, without attributes: that function. Integers
  // are left unchanged.
  double (*real)(double) = nullptr;
  // The meaning of a core op; simple, not fast.
  std::vector<Wide> (*eval)(const Evaluation&) = nullptr;
  // Contents of an integer or bool result (one result, <= 64 elements) as sizes, when they follow
  // from the operands' contents; the node then becomes ops::dims.
  std::optional<Dims> (*contents)(const Call&, const Type& result) = nullptr;
  bool commutative = false;
  bool pure = true;     // false: has an effect, never merged, never dropped
  bool rising = false;  // monotonic: no result element decreases when operand elements increase
  bool is_function = false;  // an elementwise composite for which every renderer has a function
  bool is_row = false;       // a composite on whole rows that groups keep as one op
  double cost = 1;  // per element of an elementwise op, in multiply-adds of a vector machine
  // The allowed error of a kernel's float result for exact operands, in units in the last place. 0:
  // the result is exact, or only moved.
  double ulps = 1;
  // For an elementwise op: numbers, of either sign, at which its behaviour changes, such as those
  // beyond which e^x is infinity or zero. Verification feeds these and their neighbours to kernels.
  std::span<const double> edges = {};
  OperatorName onnx = {};
  Samples (*samples)() = nullptr;
  double low = -2, high = 2;  // range of random sample values

  bool is_core() const { return expand == nullptr; }

  // One notation for building graphs and for writing patterns. Returns result 0; others through
  // Value::result. The caller's line becomes the origin in graphs that record their source.
  using Where = std::source_location;
  template <Expression T>
  T operator()(T a, Where at = Where::current()) const {
    return apply(*this, std::span<const T>(&a, 1), Attrs{}, at);
  }
  template <Expression T>
  T operator()(T a, T b, Where at = Where::current()) const {
    const T operands[] = {a, b};
    return apply(*this, std::span<const T>(operands), Attrs{}, at);
  }
  template <Expression T>
  T operator()(T a, T b, T c, Where at = Where::current()) const {
    const T operands[] = {a, b, c};
    return apply(*this, std::span<const T>(operands), Attrs{}, at);
  }
  template <Expression T>
  T operator()(T a, T b, T c, T d, Where at = Where::current()) const {
    const T operands[] = {a, b, c, d};
    return apply(*this, std::span<const T>(operands), Attrs{}, at);
  }
  template <Expression T>
  T operator()(T a, Attrs attrs, Where at = Where::current()) const {
    return apply(*this, std::span<const T>(&a, 1), std::move(attrs), at);
  }
  template <Expression T>
  T operator()(const std::vector<T>& operands, Attrs attrs = {},
               Where at = Where::current()) const {
    return apply(*this, std::span<const T>(operands), std::move(attrs), at);
  }
};

// The nodes that every graph needs. All other ops are in src/ops.
namespace ops {
extern const Op param;     // attrs: index. Typed by its Function.
extern const Op constant;  // attrs: value (Array)
extern const Op dims;  // attrs: dims (contents), shape, dtype: an integer or bool tensor of sizes
}  // namespace ops

// Operations by name, for the parser. Registered by src/ops/all.cpp's list.
using OpLookup = const Op* (*)(std::string_view name);

}  // namespace hone
