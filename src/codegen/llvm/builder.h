// A thin layer over the LLVM C API for writing kernels: typed values with operators, memory access,
// structured control flow. Does not optimise. Arithmetic follows docs/numbers.md: multiply-add may
// be contracted, nothing else is relaxed.
#pragma once

#include <llvm-c/Types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "codegen/llvm/target_spec.h"
#include "type/dtype.h"

namespace hone::llvm {

class Module;

// The type of a register: `lanes` elements. f16 and bf16 exist in memory only (here they are f32);
// b1 is one bit per lane, a mask.
struct ValueType {
  DType dtype = DType::i64;
  int lanes = 1;
  bool operator==(const ValueType&) const = default;
};

// The dtype in which elements of `t` are computed: f32 for f16 and bf16, the code's dtype for coded
// dtypes, else `t`.
constexpr DType register_dtype(DType t) {
  if (is_coded(t)) return code_dtype(t);
  return t == DType::f16 || t == DType::bf16 ? DType::f32 : t;
}

struct Value {
  LLVMValueRef ref = nullptr;
  Module* module = nullptr;
  ValueType type;

  DType dtype() const { return type.dtype; }
  int lanes() const { return type.lanes; }
};
using Values = std::vector<Value>;

struct Pointer {
  LLVMValueRef ref = nullptr;
  Module* module = nullptr;
};

// ---- arithmetic. Both operands have the same dtype; a scalar is broadcast to the other's lanes.

Value operator+(Value, Value);
Value operator-(Value, Value);
Value operator*(Value, Value);
Value operator/(Value, Value);  // integers: truncates; by zero: all ones; least / -1 wraps
Value operator%(Value, Value);  // integers only, sign of the dividend; by zero: the dividend
Value operator-(Value);
Value operator&(Value, Value);  // integers and masks
Value operator|(Value, Value);
Value operator^(Value, Value);
Value operator~(Value);
Value operator<<(Value, Value);  // an amount outside [0, bits) shifts every bit out
Value operator>>(Value, Value);  // arithmetic for signed dtypes

Value equal(Value, Value);  // comparisons return a mask; with NaN only not_equal holds
Value not_equal(Value, Value);
Value less(Value, Value);
Value less_equal(Value, Value);
Value greater(Value, Value);
Value greater_equal(Value, Value);
Value is_nan(Value);
Value unordered(Value, Value);  // at least one is NaN
Value select(Value mask, Value if_true, Value if_false);
Pointer select(Value mask, Pointer if_true, Pointer if_false);

Value fma(Value a, Value b, Value c);  // a * b + c, rounded once
Value minimum(Value, Value);           // NaN wins; of two zeros, either one
Value maximum(Value, Value);
Value abs(Value);
Value copysign(Value magnitude, Value sign);
Value sqrt(Value);
Value floor(Value);
Value ceil(Value);
Value trunc(Value);
Value round_even(Value);
Value popcount(Value);

// n / d and n % d for indices: n >= 0, d > 0, neither checked.
Value divide_index(Value n, Value d);
Value modulo_index(Value n, Value d);

// ---- conversions

// By value: float to integer truncates, saturates, and gives 0 for NaN; a cast to f16 or bf16
// rounds (ties to even, once) and the result is held in f32.
Value cast(Value, DType to);
// The same bits as another dtype of that size; f16, bf16 and b1 have no register form here.
Value bitcast(Value, DType to);

// ---- lanes

Value broadcast(Value scalar, int lanes);
Value extract(Value, int lane);
Value extract(Value, Value lane);
Value insert(Value vector, Value scalar, int lane);
// Lane i of the result is lane lanes[i] of a and b laid end to end; -1 leaves it undefined.
Value permute(Value a, Value b, std::span<const int> lanes);
Value slice_lanes(Value, int first, int count);
Value concat_lanes(Value low, Value high);  // equal lane counts
// Folds lanes pairwise, upper half onto lower half, until one is left: the order depends only on
// the lane count (a power of two).
Value reduce(Value, const std::function<Value(Value, Value)>&);
Value any(Value mask);  // one bit
Value all(Value mask);

// ---- C++ numbers as operands: x * 0.5, i + 1

Value real_like(Value, double);
Value integer_like(Value, std::int64_t);
template <class T>
  requires std::is_arithmetic_v<T>
Value like(Value v, T number) {
  if constexpr (std::is_floating_point_v<T>)
    return real_like(v, number);
  else
    return is_float(v.dtype()) ? real_like(v, static_cast<double>(number))
                               : integer_like(v, static_cast<std::int64_t>(number));
}

#define HONE_WITH_NUMBER(name)       \
  template <class T>                 \
    requires std::is_arithmetic_v<T> \
  Value name(Value a, T b) {         \
    return name(a, like(a, b));      \
  }                                  \
  template <class T>                 \
    requires std::is_arithmetic_v<T> \
  Value name(T a, Value b) {         \
    return name(like(b, a), b);      \
  }
HONE_WITH_NUMBER(operator+)
HONE_WITH_NUMBER(operator-)
HONE_WITH_NUMBER(operator*)
HONE_WITH_NUMBER(operator/)
HONE_WITH_NUMBER(operator%)
HONE_WITH_NUMBER(operator&)
HONE_WITH_NUMBER(operator|)
HONE_WITH_NUMBER(operator^)
HONE_WITH_NUMBER(operator<<)
HONE_WITH_NUMBER(operator>>)
HONE_WITH_NUMBER(equal)
HONE_WITH_NUMBER(not_equal)
HONE_WITH_NUMBER(less)
HONE_WITH_NUMBER(less_equal)
HONE_WITH_NUMBER(greater)
HONE_WITH_NUMBER(greater_equal)
HONE_WITH_NUMBER(minimum)
HONE_WITH_NUMBER(maximum)
HONE_WITH_NUMBER(divide_index)
HONE_WITH_NUMBER(modulo_index)
#undef HONE_WITH_NUMBER

// ---- memory. Indices count elements of the dtype in memory (b1 is a byte, 0 or 1).

struct Access {
  int align = 0;             // alignment of the address in bytes; 0: one element
  bool nontemporal = false;  // bypasses the caches; `align` must be a whole register
  bool invariant = false;    // loads: not written while the kernel runs
};

Pointer offset(Pointer, DType, Value index);
Pointer offset(Pointer, DType, std::int64_t index);
Pointer offset_bytes(Pointer, Value bytes);

Value load(DType, Pointer, int lanes = 1, Access = {});
void store(DType, Pointer, Value, Access = {});
// Lanes outside the mask are not touched; they read as zero.
Value load_masked(DType, Pointer, Value mask, Access = {});
void store_masked(DType, Pointer, Value, Value mask, Access = {});
// Lane i is element indices[i] (i32 or i64) from the pointer.
Value gather(DType, Pointer, Value indices);
Value gather_masked(DType, Pointer, Value indices, Value mask);
void scatter(DType, Pointer, Value indices, Value);
void scatter_masked(DType, Pointer, Value indices, Value, Value mask);
void prefetch(Pointer, bool for_write = false, int locality = 3);
// Orders earlier cache-bypassing stores before all later stores.
void fence_stores(Module&);
Value address_of(Pointer);  // i64
void copy_bytes(Pointer to, Pointer from, Value bytes);
void fill_bytes(Pointer to, int byte, Value bytes);

// Conversions of an element of `dtype` between memory and register form.
namespace detail {
LLVMValueRef to_memory(DType, const Value&);
Value from_memory(Module&, DType, LLVMValueRef, int lanes);
}  // namespace detail

// ---- functions

struct Function {
  LLVMValueRef ref = nullptr;
  LLVMTypeRef type = nullptr;
  std::optional<ValueType> result;
};

// One entry of the kernel's `buffers`. `restrict`: while the kernel runs, memory accessed through
// this one is not written through another.
struct Buffer {
  bool is_read_only = false;
  bool restrict = true;
  int align = 64;
};

// The arguments of kernel_abi.h, inside the kernel.
struct KernelArguments {
  std::vector<Pointer> buffers;
  Pointer sizes;
  Value begin, end;  // chunks of the parallel space to compute
  Pointer scratch;   // aligned to 64 bytes, this thread's own

  Value size(int index) const;
};

// One module of IR with its context; belongs to one thread.
class Module {
 public:
  Module(std::string_view name, const TargetSpec& target);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const TargetSpec& target() const;
  LLVMModuleRef module() const;
  LLVMContextRef context() const;
  LLVMBuilderRef builder() const;

  // Constants.
  Value real(double, ValueType = {DType::f32, 1});
  Value integer(std::int64_t, ValueType = {DType::i64, 1});
  Value index(std::int64_t n) { return integer(n); }
  Value boolean(bool, int lanes = 1);
  Value zero(ValueType);
  Value iota(ValueType);  // 0, 1, 2, ...; any numeric dtype
  // Lane i is set when i < remaining: the mask of a tail.
  Value tail_mask(Value remaining, int lanes);
  // Read-only bytes in the blob.
  Pointer constant_data(std::span<const std::byte>, int align = 64);

  // An exported kernel of the ABI. Code built until end_kernel() is its body.
  KernelArguments begin_kernel(std::string_view name, std::span<const Buffer> buffers);
  void end_kernel();

  // A function private to the module; a nullopt in `parameters` is a Pointer. Arguments are Values
  // and Pointers in their order. Kernels call it with call(). Cannot be nested in a kernel: build
  // it first.
  struct Arguments {
    Values values;
    std::vector<Pointer> pointers;
  };
  Arguments begin_function(std::string_view name, std::optional<ValueType> result,
                           std::span<const std::optional<ValueType>> parameters);
  Function end_function(std::optional<Value> result = std::nullopt);
  // Arguments are LLVM values because they mix Values and Pointers: {x.ref, pointer.ref}.
  std::optional<Value> call(const Function&, std::span<const LLVMValueRef> arguments);
  // A scalar C function of the closed table (plan/binary.h), for instance "fmodf"; arguments and
  // result have the same type, and each lane is one call.
  Value call_helper(std::string_view name, std::span<const Value> arguments);

  // Stack memory of the current function, allocated once at its entry.
  Pointer local(DType, std::int64_t count, int align = 64);

  // for (i = begin; i < end; i += step), with i64 scalars, step > 0.
  void loop(Value begin, Value end, Value step, const std::function<void(Value i)>& body);
  void loop(Value begin, Value end, std::int64_t step, const std::function<void(Value i)>& body);
  // The same with loop-carried values; returns the values of the last iteration.
  Values loop(Value begin, Value end, Value step, Values carried,
              const std::function<Values(Value i, const Values& carried)>& body);
  Values loop(Value begin, Value end, std::int64_t step, Values carried,
              const std::function<Values(Value i, const Values& carried)>& body);
  // while (condition(carried)) carried = body(carried)
  Values while_(Values carried, const std::function<Value(const Values&)>& condition,
                const std::function<Values(const Values&)>& body);
  void if_(Value condition, const std::function<void()>& then,
           const std::function<void()>& otherwise = {});
  Values if_values(Value condition, const std::function<Values()>& then,
                   const std::function<Values()>& otherwise);

  // While false, products and sums are rounded separately. Returns the previous setting.
  bool set_contract(bool);

  // Vector intrinsic by LLVM name, overloaded on `types`, without checks: for operations not listed
  // above.
  LLVMValueRef intrinsic(std::string_view name, std::span<const LLVMTypeRef> types,
                         std::span<const LLVMValueRef> arguments);
  LLVMTypeRef llvm_type(ValueType) const;
  LLVMTypeRef memory_type(DType, int lanes) const;
  LLVMTypeRef pointer_type() const;
  Value wrap(LLVMValueRef ref, ValueType type) { return {ref, this, type}; }
  // Sets the fast-math flags of this module on `ref` if it can have them.
  LLVMValueRef with_flags(LLVMValueRef ref) const;

  // Throws InternalError with LLVM's message and the IR when the module is not well formed.
  void verify() const;
  std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hone::llvm
