// Single tensors in files: NumPy's .npy, ONNX's TensorProto .pb, and raw bytes.
#pragma once

#include <filesystem>

#include "type/array.h"

namespace hone {

// .npy versions 1 to 3, little-endian, C order. Data is not copied.
Array read_npy(const std::filesystem::path&);
// Version 1. bf16, which NumPy lacks, is written as u2 bits.
void write_npy(const std::filesystem::path&, const Array&);

// A serialized TensorProto.
Array read_tensor_pb(const std::filesystem::path&);

// By ending: .npy, .pb; anything else is raw little-endian bytes of `like`, whose sizes must be
// numbers.
Array read_tensor_file(const std::filesystem::path&, const Type& like);

}  // namespace hone
