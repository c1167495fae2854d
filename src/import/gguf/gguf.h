// GGUF files (versions 2 and 3): named tensors and metadata, read in place from a memory map.
// Quantised blocks are stored as bytes, not as element types; dequantize() decodes them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "import/gguf/gguf_type.h"
#include "type/array.h"

namespace hone {

struct GgufTensor {
  std::string name;
  GgufType type = GgufType::f32;
  std::vector<std::int64_t> dims;  // elements, slowest axis first (the file has the opposite order)
  Storage data;

  // Whether the type packs several elements of the last axis into a block.
  bool is_quantized() const;
  // The data as in the file: elements of their dtype, or u8 with the bytes of a row as last axis.
  Array stored() const;
};

struct Gguf {
  std::uint32_t version = 0;
  std::int64_t alignment = 32;                                // of each tensor, bytes
  std::vector<std::pair<std::string, std::string>> metadata;  // as strings; arrays as "i32[5]"
  std::vector<GgufTensor> tensors;                            // in the file's order

  // Null when there is none. Linear.
  const GgufTensor* find(std::string_view name) const;
};

// Throws UserError with the path and the reason for anything invalid or unsupported: other
// versions, big-endian files, unknown types, counts and sizes that overflow or do not fit the file,
// rows that are not whole blocks, repeated names, tensors that overlap or are misaligned. Takes
// time linear in the header. The tensors keep the map alive.
Gguf read_gguf(std::shared_ptr<const MappedFile>);
inline Gguf read_gguf(const std::filesystem::path& path) {
  return read_gguf(MappedFile::open(path));
}

// The decoded numbers in f32 (unquantised elements are rounded to f32 once).
Array dequantize(const GgufTensor&);

}  // namespace hone
