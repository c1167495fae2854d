// Single tensors in files: NumPy's .npy, ONNX's TensorProto .pb, and raw bytes. Reading gives views
// over a memory map. Not for models or for many tensors in one file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "type/array.h"

namespace hone {

// Versions 1 to 3, little-endian, C order. bf16, which NumPy lacks, is written as void of two bytes
// ("|V2", as the ml_dtypes package does) and read back as bf16. Small floats are written as void of
// one byte, small integers as bytes; both are read back as u8 or i8, and by read_tensor_file as
// what they are meant to be. Texts are "<U" and their width: one that ends in zeros loses them.
Array read_npy(const std::filesystem::path&);
void write_npy(const std::filesystem::path&, const Array&);

// The arrays of an .npz file, by name, stored or compressed. Throws UserError naming the array.
struct NpzEntry {
  std::string name;
  Array data;
};
std::vector<NpzEntry> read_npz(const std::filesystem::path&);

// Elements of a small dtype, which .npy files hold as their codes; others as they are.
Array as_type(const Array&, const Type& like);

// A serialized TensorProto, as in the test sets that come with ONNX models.
Array read_tensor_pb(const std::filesystem::path&);

// A serialized SequenceProto or OptionalProto: the tensors in it, in order.
std::vector<Array> read_sequence_pb(const std::filesystem::path&);

// Any of the three; a file that reads as a tensor is one.
std::vector<Array> read_tensors_pb(const std::filesystem::path&);

// By ending: .npy, .pb; anything else is raw little-endian elements of `like`, at most one of whose
// sizes may be open: it follows from the file's. Whether an .npy or .pb fits is the caller's
// question.
Array read_tensor_file(const std::filesystem::path&, const Type& like);

}  // namespace hone
