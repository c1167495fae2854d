#include "export/onnx/dtypes.h"

#include <algorithm>
#include <limits>

namespace hone::onnx {

namespace {

// What an operator does with integers decides which others can stand for them.
enum class Family {
  any,        // ONNX and its programs take all
  moving,     // takes all but those of less than 8 bits, and floats of 8
  selecting,  // the same, and no integers of 16 bits
  summing,    // sums and products, which may wrap
  ordering,   // looks at the order of elements
};

Family family_of(std::string_view op) {
  struct Entry {
    std::string_view op;
    Family family;
  };
  static constexpr Entry entries[] = {
      {"Slice", Family::moving},        {"Concat", Family::moving},
      {"Tile", Family::moving},         {"Expand", Family::moving},
      {"Gather", Family::moving},       {"GatherElements", Family::moving},
      {"GatherND", Family::moving},     {"ScatterElements", Family::moving},
      {"ScatterND", Family::moving},    {"Clip", Family::selecting},
      {"Max", Family::selecting},       {"Min", Family::selecting},
      {"Where", Family::selecting},     {"Pad", Family::selecting},
      {"CumSum", Family::summing},      {"CumProd", Family::summing},
      {"ReduceSum", Family::summing},   {"ReduceProd", Family::summing},
      {"ReduceMean", Family::summing},  {"Einsum", Family::summing},
      {"MatMul", Family::summing},      {"Pow", Family::summing},
      {"ReduceMax", Family::ordering},  {"ReduceMin", Family::ordering},
      {"ArgMax", Family::ordering},     {"ArgMin", Family::ordering},
      {"TopK", Family::ordering},       {"Less", Family::ordering},
      {"LessOrEqual", Family::ordering}};
  const auto at = std::ranges::find(entries, op, &Entry::op);
  return at == std::end(entries) ? Family::any : at->family;
}

bool is_compared(std::string_view op) { return op == "Less" || op == "LessOrEqual"; }

}  // namespace

DType dtype_for(std::string_view op, DType t) {
  const Family family = family_of(op);
  if (t == DType::text || family == Family::any) return t;
  if (is_small(t) && op != "Pad")
    return is_float(t) ? DType::f32 : is_signed(t) ? DType::i8 : DType::u8;
  if (t == DType::bf16 && (op == "TopK" || op == "Einsum")) return DType::f32;
  if (is_float(t) || family == Family::moving) return t;
  const bool is_short = bit_size(t) == 16;
  if (family == Family::selecting) {
    if (t == DType::b1) return op == "Pad" ? t : DType::u8;
    if (t == DType::u64 && op == "Where") return DType::i64;
    return is_short ? DType::i32 : t;
  }
  if (is_compared(op)) return t == DType::b1 ? DType::u8 : t;
  if (family == Family::ordering) {
    if (t == DType::b1) return op.starts_with("Reduce") ? t : DType::u8;
    return is_short ? DType::i32 : t == DType::u32 || t == DType::u64 ? DType::i64 : t;
  }
  if (t == DType::b1 || bit_size(t) < 32) return DType::i32;
  return is_signed(t) || op == "MatMul" ? t : DType::i64;
}

std::int64_t opset_for(std::string_view op, DType t) {
  static constexpr std::string_view later[] = {"Sin",     "Cos",         "Round", "Softplus",
                                               "MaxPool", "AveragePool", "Conv",  "LSTM"};
  return t == DType::bf16 && std::ranges::count(later, op) > 0 ? 22 : 21;
}

// Unsigned numbers of 64 bits keep their order as signed ones when the highest bit is inverted.
namespace {

bool inverts(std::string_view op, DType t) {
  return t == DType::u64 && family_of(op) == Family::ordering && !is_compared(op);
}

std::string with_highest_inverted(ExportGraph& g, const std::string& x) {
  const Array bit = Array::scalar_int(std::numeric_limits<std::int64_t>::min(), DType::u64);
  return g.one("BitwiseXor", {x, g.constant(bit)});
}

}  // namespace

std::string in_dtype_for(ExportGraph& g, std::string_view op, const std::string& x, DType from) {
  const DType to = dtype_for(op, from);
  if (to == from) return x;
  return g.cast(inverts(op, from) ? with_highest_inverted(g, x) : x, to);
}

std::string back_from(ExportGraph& g, std::string_view op, const std::string& y, DType to) {
  if (dtype_for(op, to) == to) return y;
  const std::string back = g.cast(y, to);
  return inverts(op, to) ? with_highest_inverted(g, back) : back;
}

std::string one_in_dtype(ExportGraph& g, std::string_view op, std::vector<std::string> operands,
                         DType t, const std::vector<std::string>& more,
                         const std::vector<Message>& attributes) {
  for (std::string& x : operands) x = in_dtype_for(g, op, x, t);
  operands.insert(operands.end(), more.begin(), more.end());
  return back_from(g, op, g.one(op, operands, attributes), t);
}

}  // namespace hone::onnx
