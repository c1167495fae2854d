// Loads and stores: contiguous, masked, gathered.
#include <llvm-c/Core.h>

#include "base/error.h"
#include "codegen/llvm/builder.h"

namespace hone::llvm {

namespace {

unsigned alignment(DType dtype, const Access& access) {
  return static_cast<unsigned>(access.align ? access.align : byte_size(dtype));
}

void mark(const Module& m, LLVMValueRef instruction, std::string_view kind, bool holds_one) {
  LLVMValueRef one = LLVMConstInt(LLVMInt32TypeInContext(m.context()), 1, false);
  LLVMMetadataRef operand = LLVMValueAsMetadata(one);
  LLVMMetadataRef node = LLVMMDNodeInContext2(m.context(), &operand, holds_one ? 1 : 0);
  unsigned id =
      LLVMGetMDKindIDInContext(m.context(), kind.data(), static_cast<unsigned>(kind.size()));
  LLVMSetMetadata(instruction, id, LLVMMetadataAsValue(m.context(), node));
}

LLVMValueRef align_argument(const Module& m, unsigned align) {
  return LLVMConstInt(LLVMInt32TypeInContext(m.context()), align, false);
}

// Element addresses, one per lane.
LLVMValueRef addresses(DType dtype, Pointer base, Value indices) {
  Module& m = *base.module;
  return LLVMBuildInBoundsGEP2(m.builder(), m.memory_type(dtype, 1), base.ref, &indices.ref, 1, "");
}

LLVMTypeRef addresses_type(const Module& m, int lanes) {
  return LLVMVectorType(m.pointer_type(), static_cast<unsigned>(lanes));
}

}  // namespace

Pointer offset(Pointer p, DType dtype, Value index) {
  return {addresses(dtype, p, index), p.module};
}
Pointer offset(Pointer p, DType dtype, std::int64_t index) {
  return index == 0 ? p : offset(p, dtype, p.module->index(index));
}
Pointer offset_bytes(Pointer p, Value bytes) { return offset(p, DType::u8, bytes); }

Value load(DType dtype, Pointer p, int lanes, Access access) {
  Module& m = *p.module;
  LLVMValueRef v = LLVMBuildLoad2(m.builder(), m.memory_type(dtype, lanes), p.ref, "");
  LLVMSetAlignment(v, alignment(dtype, access));
  if (access.invariant) mark(m, v, "invariant.load", false);
  return detail::from_memory(m, dtype, v, lanes);
}

void store(DType dtype, Pointer p, Value v, Access access) {
  Module& m = *p.module;
  // Narrowed values are written one register at a time, not concatenated first.
  const bool is_narrowed = dtype != DType::b1 && byte_size(dtype) < byte_size(v.dtype());
  if (const int lanes = m.target().lanes(byte_size(v.dtype())); is_narrowed && v.lanes() > lanes) {
    for (int i = 0; i < v.lanes(); i += lanes)
      store(dtype, offset(p, dtype, i), slice_lanes(v, i, lanes), access);
    return;
  }
  LLVMValueRef s = LLVMBuildStore(m.builder(), detail::to_memory(dtype, v), p.ref);
  LLVMSetAlignment(s, alignment(dtype, access));
  if (access.nontemporal) mark(m, s, "nontemporal", true);
}

Value load_masked(DType dtype, Pointer p, Value mask, Access access) {
  Module& m = *p.module;
  const int lanes = mask.lanes();
  if (lanes == 1) {
    Value zero = m.zero({register_dtype(dtype), 1});
    return m.if_values(
        mask, [&] { return Values{load(dtype, p, 1, access)}; }, [&] { return Values{zero}; })[0];
  }
  LLVMTypeRef type = m.memory_type(dtype, lanes);
  LLVMTypeRef types[] = {type, m.pointer_type()};
  LLVMValueRef in[] = {p.ref, align_argument(m, alignment(dtype, access)), mask.ref,
                       LLVMConstNull(type)};
  return detail::from_memory(m, dtype, m.intrinsic("llvm.masked.load", types, in), lanes);
}

void store_masked(DType dtype, Pointer p, Value v, Value mask, Access access) {
  Module& m = *p.module;
  HONE_ASSERT(v.lanes() == mask.lanes(), v.lanes(), " lanes, mask of ", mask.lanes());
  if (v.lanes() == 1) return m.if_(mask, [&] { store(dtype, p, v, access); });
  LLVMTypeRef types[] = {m.memory_type(dtype, v.lanes()), m.pointer_type()};
  LLVMValueRef in[] = {detail::to_memory(dtype, v), p.ref,
                       align_argument(m, alignment(dtype, access)), mask.ref};
  m.intrinsic("llvm.masked.store", types, in);
}

Value gather(DType dtype, Pointer p, Value indices) {
  if (indices.lanes() == 1) return load(dtype, offset(p, dtype, indices));
  return gather_masked(dtype, p, indices, p.module->boolean(true, indices.lanes()));
}

Value gather_masked(DType dtype, Pointer p, Value indices, Value mask) {
  Module& m = *p.module;
  const int lanes = indices.lanes();
  if (lanes == 1) return load_masked(dtype, offset(p, dtype, indices), mask);
  LLVMTypeRef type = m.memory_type(dtype, lanes);
  LLVMTypeRef types[] = {type, addresses_type(m, lanes)};
  LLVMValueRef in[] = {addresses(dtype, p, indices), align_argument(m, alignment(dtype, {})),
                       mask.ref, LLVMConstNull(type)};
  return detail::from_memory(m, dtype, m.intrinsic("llvm.masked.gather", types, in), lanes);
}

void scatter(DType dtype, Pointer p, Value indices, Value v) {
  if (indices.lanes() == 1) return store(dtype, offset(p, dtype, indices), v);
  scatter_masked(dtype, p, indices, v, p.module->boolean(true, indices.lanes()));
}

void scatter_masked(DType dtype, Pointer p, Value indices, Value v, Value mask) {
  Module& m = *p.module;
  HONE_ASSERT(v.lanes() == indices.lanes(), v.lanes(), " lanes, ", indices.lanes(), " indices");
  if (v.lanes() == 1) return store_masked(dtype, offset(p, dtype, indices), v, mask);
  LLVMTypeRef types[] = {m.memory_type(dtype, v.lanes()), addresses_type(m, v.lanes())};
  LLVMValueRef in[] = {detail::to_memory(dtype, v), addresses(dtype, p, indices),
                       align_argument(m, alignment(dtype, {})), mask.ref};
  m.intrinsic("llvm.masked.scatter", types, in);
}

void prefetch(Pointer p, bool for_write, int locality) {
  Module& m = *p.module;
  auto number = [&](int i) { return m.integer(i, {DType::i32, 1}).ref; };
  LLVMTypeRef type = m.pointer_type();
  LLVMValueRef in[] = {p.ref, number(for_write), number(locality), number(1)};
  m.intrinsic("llvm.prefetch", std::span(&type, 1), in);
}

void fence_stores(Module& m) { m.intrinsic("llvm.x86.sse.sfence", {}, {}); }

Value address_of(Pointer p) {
  Module& m = *p.module;
  const ValueType type = {DType::i64, 1};
  return m.wrap(LLVMBuildPtrToInt(m.builder(), p.ref, m.llvm_type(type), ""), type);
}

void copy_bytes(Pointer to, Pointer from, Value bytes) {
  LLVMBuildMemCpy(to.module->builder(), to.ref, 1, from.ref, 1, bytes.ref);
}

void fill_bytes(Pointer to, int byte, Value bytes) {
  Module& m = *to.module;
  LLVMBuildMemSet(m.builder(), to.ref, m.integer(byte, {DType::u8, 1}).ref, bytes.ref, 1);
}

}  // namespace hone::llvm
