// The part of cuBLASLt's binary interface in use, declared from its documentation: the header is
// only distributed together with the library, which has 500 MB.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace hone::cublaslt {

using Handle = struct HandleBody*;
using Description = struct DescriptionBody*;
using Layout = struct LayoutBody*;
using Preference = struct PreferenceBody*;

enum Status : int { success = 0 };
enum DataType : int { r_32f = 0, r_64f = 1, r_16f = 2, r_16bf = 14 };  // cudaDataType
enum Compute : int { compute_32f = 68, compute_64f = 70, compute_32f_tf32 = 77 };
enum DescriptionAttribute : int { trans_a = 3, trans_b = 4, epilogue = 7, bias_pointer = 8 };
enum LayoutAttribute : int { batch_count = 5, batch_stride = 6 };
enum PreferenceAttribute : int {
  workspace_bytes = 1,
  alignment_a = 5,
  alignment_b = 6,
  alignment_c = 7,
  alignment_d = 8,
};
enum Epilogue : std::uint32_t { plain = 1, relu = 2, bias = 4, gelu = 32 };  // bias is added to one

struct Algorithm {
  std::uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  std::size_t workspace_bytes;
  Status state;
  float waves;
  int reserved[4];
};

// The library's functions and their types.
// clang-format off
#define HONE_CUBLASLT_FUNCTIONS(X) \
  X(create, cublasLtCreate, Status(Handle*)) \
  X(version, cublasLtGetVersion, std::size_t()) \
  X(status_name, cublasLtGetStatusName, const char*(Status)) \
  X(create_description, cublasLtMatmulDescCreate, Status(Description*, Compute, DataType)) \
  X(destroy_description, cublasLtMatmulDescDestroy, Status(Description)) \
  X(set_description, cublasLtMatmulDescSetAttribute, Status(Description, DescriptionAttribute, \
    const void*, std::size_t)) \
  X(create_layout, cublasLtMatrixLayoutCreate, Status(Layout*, DataType, std::uint64_t, \
    std::uint64_t, std::int64_t)) \
  X(destroy_layout, cublasLtMatrixLayoutDestroy, Status(Layout)) \
  X(set_layout, cublasLtMatrixLayoutSetAttribute, Status(Layout, LayoutAttribute, const void*, \
    std::size_t)) \
  X(create_preference, cublasLtMatmulPreferenceCreate, Status(Preference*)) \
  X(destroy_preference, cublasLtMatmulPreferenceDestroy, Status(Preference)) \
  X(set_preference, cublasLtMatmulPreferenceSetAttribute, Status(Preference, \
    PreferenceAttribute, const void*, std::size_t)) \
  X(heuristics, cublasLtMatmulAlgoGetHeuristic, Status(Handle, Description, Layout, Layout, \
    Layout, Layout, Preference, int, Heuristic*, int*)) \
  X(matmul, cublasLtMatmul, Status(Handle, Description, const void*, const void*, Layout, \
    const void*, Layout, const void*, const void*, Layout, void*, Layout, const Algorithm*, \
    void*, std::size_t, CUstream))
// clang-format on

}  // namespace hone::cublaslt
