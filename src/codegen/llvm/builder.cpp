#include "codegen/llvm/builder.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>

#include <utility>

#include "base/error.h"
#include "base/sanitizer.h"
#include "plan/binary.h"

namespace hone::llvm {

struct Module::State {
  TargetSpec target;
  LLVMContextRef context = nullptr;
  LLVMModuleRef module = nullptr;
  LLVMBuilderRef builder = nullptr;
  bool contract = true;

  Function function;  // the one being built
  LLVMBasicBlockRef entry = nullptr, body = nullptr;
  std::string kernel;  // its exported name
  std::vector<LLVMTypeRef> parameters;
};

namespace {

unsigned size_of(const auto& list) { return static_cast<unsigned>(list.size()); }

constexpr unsigned on_function = static_cast<unsigned>(LLVMAttributeFunctionIndex);

LLVMAttributeRef attribute(LLVMContextRef context, std::string_view name, std::uint64_t value = 0) {
  unsigned kind = LLVMGetEnumAttributeKindForName(name.data(), name.size());
  HONE_ASSERT(kind != 0, "LLVM has no attribute ", name);
  return LLVMCreateEnumAttribute(context, kind, value);
}

void attach(LLVMValueRef function, unsigned index, LLVMAttributeRef a) {
  LLVMAddAttributeAtIndex(function, index, a);
}

void attach_text(LLVMContextRef context, LLVMValueRef function, std::string_view name,
                 std::string_view value) {
  attach(
      function, on_function,
      LLVMCreateStringAttribute(context, name.data(), size_of(name), value.data(), size_of(value)));
}

void attach_common(LLVMContextRef context, LLVMValueRef function, const TargetSpec& target) {
  attach(function, on_function, attribute(context, "nounwind"));
  attach_text(context, function, "prefer-vector-width", std::to_string(target.vector_bits));
  if (!target.tune.empty()) attach_text(context, function, "tune-cpu", target.tune);
  if (with_address_sanitizer) attach(function, on_function, attribute(context, "sanitize_address"));
  if (with_thread_sanitizer) attach(function, on_function, attribute(context, "sanitize_thread"));
}

}  // namespace

Module::Module(std::string_view name, const TargetSpec& target) : state_(new State) {
  state_->target = target;
  state_->context = LLVMContextCreate();
  state_->module = LLVMModuleCreateWithNameInContext(std::string(name).c_str(), state_->context);
  state_->builder = LLVMCreateBuilderInContext(state_->context);
  LLVMSetTarget(state_->module, target.triple.c_str());
  LLVMSetDataLayout(state_->module, target.data_layout.c_str());
}

Module::~Module() {
  LLVMDisposeBuilder(state_->builder);
  LLVMDisposeModule(state_->module);
  LLVMContextDispose(state_->context);
}

const TargetSpec& Module::target() const { return state_->target; }
LLVMModuleRef Module::module() const { return state_->module; }
LLVMContextRef Module::context() const { return state_->context; }
LLVMBuilderRef Module::builder() const { return state_->builder; }

bool Module::set_contract(bool on) { return std::exchange(state_->contract, on); }

LLVMValueRef Module::with_flags(LLVMValueRef ref) const {
  if (LLVMIsAInstruction(ref) && LLVMCanValueUseFastMathFlags(ref))
    LLVMSetFastMathFlags(ref, state_->contract ? LLVMFastMathAllowContract : LLVMFastMathNone);
  return ref;
}

// ---- types

LLVMTypeRef Module::pointer_type() const { return LLVMPointerTypeInContext(context(), 0); }

LLVMTypeRef Module::llvm_type(ValueType type) const {
  HONE_ASSERT(type.lanes >= 1 && type.dtype == register_dtype(type.dtype), type.dtype, " x ",
              type.lanes, " is not a register type");
  LLVMTypeRef one =
      type.dtype == DType::b1 ? LLVMInt1TypeInContext(context()) : memory_type(type.dtype, 1);
  return type.lanes == 1 ? one : LLVMVectorType(one, static_cast<unsigned>(type.lanes));
}

// f16 and bf16 are loaded and stored as i16: masked and gathered half vectors are not legal
// everywhere.
LLVMTypeRef Module::memory_type(DType dtype, int lanes) const {
  LLVMTypeRef one =
      dtype == DType::f32 ? LLVMFloatTypeInContext(context())
      : dtype == DType::f64
          ? LLVMDoubleTypeInContext(context())
          : LLVMIntTypeInContext(context(), static_cast<unsigned>(8 * byte_size(dtype)));
  return lanes == 1 ? one : LLVMVectorType(one, static_cast<unsigned>(lanes));
}

// ---- constants

namespace {

LLVMValueRef splat(LLVMValueRef one, int lanes) {
  if (lanes == 1) return one;
  std::vector<LLVMValueRef> all(static_cast<std::size_t>(lanes), one);
  return LLVMConstVector(all.data(), size_of(all));
}

}  // namespace

Value Module::real(double number, ValueType type) {
  HONE_ASSERT(is_float(type.dtype), type.dtype, " is given the real ", number);
  return wrap(splat(LLVMConstReal(llvm_type({type.dtype, 1}), number), type.lanes), type);
}

Value Module::integer(std::int64_t number, ValueType type) {
  HONE_ASSERT(!is_float(type.dtype), type.dtype, " is given the integer ", number);
  LLVMTypeRef one = llvm_type({type.dtype, 1});
  return wrap(splat(LLVMConstInt(one, static_cast<std::uint64_t>(number), true), type.lanes), type);
}

Value Module::boolean(bool on, int lanes) { return integer(on ? 1 : 0, {DType::b1, lanes}); }
Value Module::zero(ValueType type) { return wrap(LLVMConstNull(llvm_type(type)), type); }

Value Module::iota(ValueType type) {
  auto number = [&](int i) {
    return is_float(type.dtype) ? real(i, {type.dtype, 1}).ref : integer(i, {type.dtype, 1}).ref;
  };
  if (type.lanes == 1) return wrap(number(0), type);
  std::vector<LLVMValueRef> all;
  for (int i = 0; i < type.lanes; ++i) all.push_back(number(i));
  return wrap(LLVMConstVector(all.data(), size_of(all)), type);
}

Value Module::tail_mask(Value remaining, int lanes) {
  // 32-bit lanes compare in one instruction; more than `lanes` remaining means all of them.
  Value clamped = cast(minimum(remaining, integer(lanes)), DType::i32);
  return less(iota({DType::i32, lanes}), clamped);
}

Pointer Module::constant_data(std::span<const std::byte> bytes, int align) {
  LLVMValueRef data = LLVMConstStringInContext2(
      context(), reinterpret_cast<const char*>(bytes.data()), bytes.size(), true);
  LLVMValueRef global = LLVMAddGlobal(module(), LLVMTypeOf(data), "data");
  LLVMSetInitializer(global, data);
  LLVMSetGlobalConstant(global, true);
  LLVMSetLinkage(global, LLVMPrivateLinkage);
  LLVMSetUnnamedAddress(global, LLVMGlobalUnnamedAddr);
  LLVMSetAlignment(global, static_cast<unsigned>(align));
  return {global, this};
}

// ---- functions

Value KernelArguments::size(int index) const {
  return load(DType::i64, offset(sizes, DType::i64, index), 1, {.invariant = true});
}

namespace {

struct Parts {
  LLVMTypeRef type;
  LLVMValueRef function;
};

Parts add_function(Module& m, const std::string& name, LLVMTypeRef result,
                   std::vector<LLVMTypeRef> parameters, LLVMLinkage linkage) {
  LLVMTypeRef type = LLVMFunctionType(result, parameters.data(), size_of(parameters), false);
  HONE_ASSERT(!LLVMGetNamedFunction(m.module(), name.c_str()), "function ", name, " exists");
  LLVMValueRef function = LLVMAddFunction(m.module(), name.c_str(), type);
  LLVMSetLinkage(function, linkage);
  attach_common(m.context(), function, m.target());
  return {type, function};
}

// Attribute positions count from 1; 0 is the result.
void describe_pointer(Module& m, LLVMValueRef function, std::size_t parameter, const Buffer& b) {
  unsigned at = static_cast<unsigned>(parameter + 1);
  attach(function, at, attribute(m.context(), "nocapture"));
  attach(function, at, attribute(m.context(), "align", static_cast<std::uint64_t>(b.align)));
  if (b.is_read_only) attach(function, at, attribute(m.context(), "readonly"));
  if (b.restrict) attach(function, at, attribute(m.context(), "noalias"));
}

}  // namespace

Module::Arguments Module::begin_function(std::string_view name, std::optional<ValueType> result,
                                         std::span<const std::optional<ValueType>> parameters) {
  State& s = *state_;
  HONE_ASSERT(!s.function.ref, name, " begins inside another function");
  s.parameters.clear();
  for (const auto& p : parameters) s.parameters.push_back(p ? llvm_type(*p) : pointer_type());
  LLVMTypeRef result_type = result ? llvm_type(*result) : LLVMVoidTypeInContext(context());
  Parts parts =
      add_function(*this, std::string(name), result_type, s.parameters, LLVMInternalLinkage);
  s.function = {parts.function, parts.type, result};
  s.entry = LLVMAppendBasicBlockInContext(context(), parts.function, "entry");
  s.body = LLVMAppendBasicBlockInContext(context(), parts.function, "body");
  LLVMPositionBuilderAtEnd(builder(), s.body);
  Arguments out;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    LLVMValueRef argument = LLVMGetParam(parts.function, static_cast<unsigned>(i));
    if (parameters[i])
      out.values.push_back(wrap(argument, *parameters[i]));
    else
      out.pointers.push_back({argument, this});
  }
  return out;
}

Function Module::end_function(std::optional<Value> result) {
  State& s = *state_;
  HONE_ASSERT(result.has_value() == s.function.result.has_value(), "result of a function");
  if (result)
    LLVMBuildRet(builder(), result->ref);
  else
    LLVMBuildRetVoid(builder());
  LLVMPositionBuilderAtEnd(builder(), s.entry);
  LLVMBuildBr(builder(), s.body);
  return std::exchange(s.function, {});
}

// The body is a function with one parameter per buffer, because attributes such as noalias belong
// to parameters; the exported function reads the buffer table and calls it.
KernelArguments Module::begin_kernel(std::string_view name, std::span<const Buffer> buffers) {
  state_->kernel = name;
  std::vector<std::optional<ValueType>> parameters(buffers.size());  // pointers
  parameters.push_back(std::nullopt);                                // sizes
  parameters.push_back(ValueType{DType::i64, 1});
  parameters.push_back(ValueType{DType::i64, 1});
  parameters.push_back(std::nullopt);  // scratch
  Arguments in = begin_function(cat(name, ".body"), std::nullopt, parameters);
  LLVMValueRef function = state_->function.ref;
  for (std::size_t i = 0; i < buffers.size(); ++i) describe_pointer(*this, function, i, buffers[i]);
  describe_pointer(*this, function, buffers.size(), {.is_read_only = true, .align = 8});
  describe_pointer(*this, function, buffers.size() + 3, {.align = 64});
  KernelArguments out;
  out.scratch = in.pointers.back();
  in.pointers.pop_back();
  out.sizes = in.pointers.back();
  in.pointers.pop_back();
  out.buffers = std::move(in.pointers);
  out.begin = in.values[0];
  out.end = in.values[1];
  return out;
}

void Module::end_kernel() {
  State& s = *state_;
  HONE_ASSERT(!s.kernel.empty(), "end_kernel() without begin_kernel()");
  Function body = end_function();
  LLVMTypeRef pointer = pointer_type(), i64 = llvm_type({DType::i64, 1});
  Parts parts = add_function(*this, std::exchange(s.kernel, {}), LLVMVoidTypeInContext(context()),
                             {pointer, pointer, i64, i64, pointer}, LLVMExternalLinkage);
  LLVMPositionBuilderAtEnd(builder(),
                           LLVMAppendBasicBlockInContext(context(), parts.function, "entry"));
  // This wrapper is not worth optimising.
  for (const char* name : {"noinline", "optnone"})
    attach(parts.function, on_function, attribute(context(), name));
  auto parameter = [&](unsigned i) { return LLVMGetParam(parts.function, i); };
  std::vector<LLVMValueRef> arguments;
  for (std::size_t i = 0; i + 4 < s.parameters.size(); ++i) {
    LLVMValueRef at = LLVMConstInt(i64, i, false);
    LLVMValueRef slot = LLVMBuildInBoundsGEP2(builder(), pointer, parameter(0), &at, 1, "");
    arguments.push_back(LLVMBuildLoad2(builder(), pointer, slot, ""));
  }
  for (unsigned i = 1; i < 5; ++i) arguments.push_back(parameter(i));
  LLVMBuildCall2(builder(), body.type, body.ref, arguments.data(), size_of(arguments), "");
  LLVMBuildRetVoid(builder());
}

std::optional<Value> Module::call(const Function& function,
                                  std::span<const LLVMValueRef> arguments) {
  std::vector<LLVMValueRef> in(arguments.begin(), arguments.end());
  LLVMValueRef out =
      LLVMBuildCall2(builder(), function.type, function.ref, in.data(), size_of(in), "");
  if (!function.result) return std::nullopt;
  return wrap(out, *function.result);
}

namespace {

// Through memory, so that the code contains one call instead of one per lane.
Value lane_by_lane(Module& m, std::span<const Value> arguments,
                   const std::function<Value(const Values&)>& f) {
  const ValueType type = arguments[0].type;
  std::vector<Pointer> in;
  for (const Value& v : arguments) {
    in.push_back(m.local(type.dtype, type.lanes));
    store(type.dtype, in.back(), v);
  }
  Pointer out = m.local(type.dtype, type.lanes);
  m.loop(m.index(0), m.index(type.lanes), 1, [&](Value i) {
    Values one;
    for (Pointer p : in) one.push_back(load(type.dtype, offset(p, type.dtype, i)));
    store(type.dtype, offset(out, type.dtype, i), f(one));
  });
  return load(type.dtype, out, type.lanes);
}

}  // namespace

Value Module::call_helper(std::string_view name, std::span<const Value> arguments) {
  HONE_ASSERT(helper_number(name), name, " is not in the table of plan/binary.cpp");
  const ValueType type = arguments[0].type;
  LLVMTypeRef one = llvm_type({type.dtype, 1});
  std::vector<LLVMTypeRef> parameters(arguments.size(), one);
  LLVMTypeRef signature = LLVMFunctionType(one, parameters.data(), size_of(parameters), false);
  std::string symbol(name);
  LLVMValueRef helper = LLVMGetNamedFunction(module(), symbol.c_str());
  if (!helper) {
    helper = LLVMAddFunction(module(), symbol.c_str(), signature);
    attach(helper, static_cast<unsigned>(LLVMAttributeFunctionIndex),
           attribute(context(), "nounwind"));
  }
  auto call_one = [&](const Values& in) {
    std::vector<LLVMValueRef> refs;
    for (const Value& v : in) refs.push_back(v.ref);
    LLVMValueRef out = LLVMBuildCall2(builder(), signature, helper, refs.data(), size_of(refs), "");
    return wrap(out, {type.dtype, 1});
  };
  if (type.lanes == 1) return call_one(Values(arguments.begin(), arguments.end()));
  return lane_by_lane(*this, arguments, call_one);
}

Pointer Module::local(DType dtype, std::int64_t count, int align) {
  LLVMBasicBlockRef here = LLVMGetInsertBlock(builder());
  LLVMPositionBuilderAtEnd(builder(), state_->entry);
  LLVMTypeRef type = LLVMArrayType2(memory_type(dtype, 1), static_cast<std::uint64_t>(count));
  LLVMValueRef memory = LLVMBuildAlloca(builder(), type, "");
  LLVMSetAlignment(memory, static_cast<unsigned>(align));
  LLVMPositionBuilderAtEnd(builder(), here);
  return {memory, this};
}

LLVMValueRef Module::intrinsic(std::string_view name, std::span<const LLVMTypeRef> types,
                               std::span<const LLVMValueRef> arguments) {
  unsigned id = LLVMLookupIntrinsicID(name.data(), name.size());
  HONE_ASSERT(id != 0, "LLVM has no intrinsic ", name);
  std::vector<LLVMTypeRef> overloads(types.begin(), types.end());
  std::vector<LLVMValueRef> in(arguments.begin(), arguments.end());
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(module(), id, overloads.data(), overloads.size());
  LLVMTypeRef type = LLVMIntrinsicGetType(context(), id, overloads.data(), overloads.size());
  return with_flags(LLVMBuildCall2(builder(), type, f, in.data(), size_of(in), ""));
}

// ---- control flow

namespace {

LLVMBasicBlockRef block_here(const Module& m) { return LLVMGetInsertBlock(m.builder()); }
LLVMBasicBlockRef new_block(const Module& m, const char* name) {
  return LLVMCreateBasicBlockInContext(m.context(), name);
}
// Appends the block to the current function and continues there.
void enter(const Module& m, LLVMBasicBlockRef block) {
  LLVMAppendExistingBasicBlock(LLVMGetBasicBlockParent(block_here(m)), block);
  LLVMPositionBuilderAtEnd(m.builder(), block);
}

Value phi(Module& m, ValueType type) {
  return m.wrap(LLVMBuildPhi(m.builder(), m.llvm_type(type), ""), type);
}
Values phis(Module& m, const Values& like) {
  Values out;
  for (const Value& v : like) out.push_back(phi(m, v.type));
  return out;
}
void come_from(const Values& phis, const Values& values, LLVMBasicBlockRef from) {
  HONE_ASSERT(phis.size() == values.size(), "carried values: ", phis.size(), " and ",
              values.size());
  for (std::size_t i = 0; i < phis.size(); ++i) {
    HONE_ASSERT(phis[i].type == values[i].type, "carried value ", i, " changes its type");
    LLVMValueRef v = values[i].ref;
    LLVMAddIncoming(phis[i].ref, &v, &from, 1);
  }
}

}  // namespace

Values Module::loop(Value begin, Value end, Value step, Values carried,
                    const std::function<Values(Value, const Values&)>& body) {
  LLVMBasicBlockRef from = block_here(*this);
  LLVMBasicBlockRef turn = new_block(*this, "loop"), after = new_block(*this, "after");
  LLVMBuildCondBr(builder(), less(begin, end).ref, turn, after);
  enter(*this, turn);
  Values index = {phi(*this, begin.type)}, now = phis(*this, carried);
  come_from(index, {begin}, from);
  come_from(now, carried, from);
  Values next = body(index[0], now);
  Value next_index = wrap(LLVMBuildNSWAdd(builder(), index[0].ref, step.ref, ""), begin.type);
  Value more = less(next_index, end);
  LLVMBasicBlockRef last = block_here(*this);
  come_from(index, {next_index}, last);
  come_from(now, next, last);
  LLVMBuildCondBr(builder(), more.ref, turn, after);
  enter(*this, after);
  Values out = phis(*this, carried);
  come_from(out, carried, from);
  come_from(out, next, last);
  return out;
}

Values Module::loop(Value begin, Value end, std::int64_t step, Values carried,
                    const std::function<Values(Value, const Values&)>& body) {
  return loop(begin, end, integer_like(begin, step), std::move(carried), body);
}
void Module::loop(Value begin, Value end, Value step, const std::function<void(Value)>& body) {
  loop(begin, end, step, Values{}, [&](Value i, const Values&) {
    body(i);
    return Values{};
  });
}
void Module::loop(Value begin, Value end, std::int64_t step,
                  const std::function<void(Value)>& body) {
  loop(begin, end, integer_like(begin, step), body);
}

Values Module::while_(Values carried, const std::function<Value(const Values&)>& condition,
                      const std::function<Values(const Values&)>& body) {
  LLVMBasicBlockRef from = block_here(*this);
  LLVMBasicBlockRef test = new_block(*this, "while"), turn = new_block(*this, "turn"),
                    after = new_block(*this, "after");
  LLVMBuildBr(builder(), test);
  enter(*this, test);
  Values now = phis(*this, carried);
  come_from(now, carried, from);
  LLVMBuildCondBr(builder(), condition(now).ref, turn, after);
  enter(*this, turn);
  Values next = body(now);
  come_from(now, next, block_here(*this));
  LLVMBuildBr(builder(), test);
  enter(*this, after);
  return now;
}

Values Module::if_values(Value condition, const std::function<Values()>& then,
                         const std::function<Values()>& otherwise) {
  HONE_ASSERT(condition.type == (ValueType{DType::b1, 1}), "a condition is one bit");
  LLVMBasicBlockRef yes = new_block(*this, "then"), no = new_block(*this, "else"),
                    after = new_block(*this, "after");
  LLVMBuildCondBr(builder(), condition.ref, yes, no);
  enter(*this, yes);
  Values from_yes = then();
  LLVMBasicBlockRef yes_end = block_here(*this);
  LLVMBuildBr(builder(), after);
  enter(*this, no);
  Values from_no = otherwise();
  LLVMBasicBlockRef no_end = block_here(*this);
  LLVMBuildBr(builder(), after);
  enter(*this, after);
  Values out = phis(*this, from_yes);
  come_from(out, from_yes, yes_end);
  come_from(out, from_no, no_end);
  return out;
}

void Module::if_(Value condition, const std::function<void()>& then,
                 const std::function<void()>& otherwise) {
  auto run = [](const std::function<void()>& f) {
    if (f) f();
    return Values{};
  };
  if_values(condition, [&] { return run(then); }, [&] { return run(otherwise); });
}

// ---- the finished module

std::string Module::text() const {
  char* text = LLVMPrintModuleToString(module());
  std::string out = text;
  LLVMDisposeMessage(text);
  return out;
}

void Module::verify() const {
  HONE_ASSERT(!state_->function.ref, "a function is not ended");
  char* message = nullptr;
  bool broken = LLVMVerifyModule(module(), LLVMReturnStatusAction, &message);
  std::string why = message ? message : "";
  LLVMDisposeMessage(message);
  HONE_ASSERT(!broken, why, "\n", text());
}

}  // namespace hone::llvm
