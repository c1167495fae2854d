// Files with single tensors: NumPy's .npy, ONNX's TensorProto .pb, and raw bytes. Results are views
// over a memory map. Not for models or for many tensors in one file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "type/array.h"

namespace hone {

// Versions 1 to 3, little-endian, C order. bf16, which NumPy lacks, is written as void of two bytes
// ("|V2", as the ml_dtypes package does) and read back as bf16. Small floats are written as void of
// one byte, small integers as bytes; both are read back as u8 or i8, and by read_tensor_file as the
// requested dtype. Strings are "<U" and their width, so trailing zeros of a string are lost.
Array read_npy(const std::filesystem::path&);
void write_npy(const std::filesystem::path&, const Array&);

// The arrays of an .npz file, by name, stored or compressed. Throws UserError naming the array.
struct NpzEntry {
  std::string name;
  Array data;
};
std::vector<NpzEntry> read_npz(const std::filesystem::path&);

// Turns codes read from an .npy file into elements of a small dtype; keeps other arrays.
Array as_type(const Array&, const Type& like);

// A serialized TensorProto, as in ONNX's test sets.
Array read_tensor_pb(const std::filesystem::path&);

// A serialized SequenceProto or OptionalProto: its tensors, in order.
std::vector<Array> read_sequence_pb(const std::filesystem::path&);

// Any of the three; a file that parses as a tensor is treated as one.
std::vector<Array> read_tensors_pb(const std::filesystem::path&);

// By extension: .npy, .pb; anything else is raw little-endian elements of `like`, which may have at
// most one open size: it follows from the file size. The caller must check that an .npy or .pb
// matches `like`.
Array read_tensor_file(const std::filesystem::path&, const Type& like);

}  // namespace hone
