// The part of cuDNN's graph interface in use, declared from its documentation. Available since 9.0.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace hone::cudnn {

using Handle = struct HandleBody*;
using Body = struct DescriptorBody*;

// 3000 to 3999: not supported; the number says why.
enum Status : int { success = 0, not_supported = 3000 };

enum Kind : int {
  pointwise_kind = 0,
  convolution_kind = 1,
  engine_kind = 2,
  engine_config_kind = 3,
  engine_heuristics_kind = 4,
  execution_plan_kind = 5,
  operation_convolution_kind = 10,
  operation_pointwise_kind = 13,
  operation_graph_kind = 15,
  variant_pack_kind = 16,
  tensor_kind = 17,
  matmul_kind = 18,
  operation_matmul_kind = 19,
  reduction_kind = 21,
  operation_reduction_kind = 22,
};

enum Attribute : int {
  pointwise_mode = 0,
  pointwise_precision = 1,
  pointwise_axis = 9,
  convolution_type = 100,
  convolution_mode = 101,
  convolution_dilations = 102,
  convolution_strides = 103,
  convolution_pads_high = 104,
  convolution_pads_low = 105,
  convolution_axes = 106,
  heuristics_mode = 200,
  heuristics_graph = 201,
  heuristics_results = 202,
  config_engine = 300,
  plan_handle = 400,
  plan_config = 401,
  plan_workspace = 402,
  operation_convolution_alpha = 700,
  operation_convolution_beta = 701,
  operation_convolution_description = 702,
  operation_convolution_w = 703,
  operation_convolution_x = 704,
  operation_convolution_y = 705,
  operation_pointwise_description = 750,
  operation_pointwise_x = 751,
  operation_pointwise_b = 752,
  operation_pointwise_y = 753,
  operation_pointwise_t = 758,
  graph_handle = 800,
  graph_operations = 801,
  tensor_alignment = 900,
  tensor_type = 901,
  tensor_dims = 902,
  tensor_strides = 903,
  tensor_id = 906,
  tensor_is_virtual = 907,
  tensor_is_by_value = 908,
  pack_ids = 1000,
  pack_pointers = 1001,
  pack_workspace = 1003,
  engine_numerical_notes = 1303,
  engine_behavior_notes = 1305,
  matmul_type = 1500,
  operation_matmul_a = 1520,
  operation_matmul_b = 1521,
  operation_matmul_c = 1522,
  operation_matmul_description = 1523,
  reduction_operator = 1600,
  reduction_type = 1601,
  operation_reduction_x = 1610,
  operation_reduction_y = 1611,
  operation_reduction_description = 1612,
};

// The element kind of an attribute.
enum ElementKind : int {
  of_handle = 0,
  of_data_type = 1,
  of_bool = 2,
  of_int64 = 3,
  of_float = 4,
  of_pointer = 6,
  of_convolution_mode = 7,
  of_heuristics_mode = 8,
  of_numerical_note = 11,
  of_pointwise_mode = 14,
  of_descriptor = 15,
  of_reduction = 18,
  of_behavior_note = 19,
};

enum DataType : int { r_32f = 0, r_16f = 2, r_32i = 4, r_16bf = 9, r_bool = 11 };
enum ConvolutionMode : int { cross_correlation = 1 };
enum HeuristicsMode : int { decision_tree = 3 };
enum Reduction : int { sum = 0, largest = 3 };
enum Pointwise : int {
  add = 0,
  multiply = 1,
  divide = 6,
  subtract = 9,
  exponential = 13,
  logarithm = 15,
  relu = 100,
  is_at_least = 303,
  index_along = 501,
  choose = 601,
};
enum NumericalNote : int {
  uses_tensor_cores = 0,  // f32 operands are rounded to tf32
  narrows_inputs = 1,
  narrows_sums = 2,
  nondeterministic = 4,
};
enum BehaviorNote : int { compiles_at_run_time = 0 };

// The library's functions and their types.
// clang-format off
#define HONE_CUDNN_FUNCTIONS(X) \
  X(version, cudnnGetVersion, std::size_t()) \
  X(cuda_version, cudnnGetCudartVersion, std::size_t()) \
  X(status_name, cudnnGetErrorString, const char*(Status)) \
  X(last_error, cudnnGetLastErrorString, void(char*, std::size_t)) \
  X(create, cudnnCreate, Status(Handle*)) \
  X(set_stream, cudnnSetStream, Status(Handle, CUstream)) \
  X(create_descriptor, cudnnBackendCreateDescriptor, Status(Kind, Body*)) \
  X(destroy_descriptor, cudnnBackendDestroyDescriptor, Status(Body)) \
  X(finalize, cudnnBackendFinalize, Status(Body)) \
  X(set_attribute, cudnnBackendSetAttribute, Status(Body, Attribute, ElementKind, std::int64_t, \
    const void*)) \
  X(get_attribute, cudnnBackendGetAttribute, Status(Body, Attribute, ElementKind, std::int64_t, \
    std::int64_t*, void*)) \
  X(execute, cudnnBackendExecute, Status(Handle, Body, Body))
// clang-format on

}  // namespace hone::cudnn
