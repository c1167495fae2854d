// The safetensors container: a JSON header and the bytes of named tensors behind it, without holes.
// Reads from a memory map without copying. Knows nothing of what the tensors are for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "type/array.h"

namespace hone {

// Text that belongs to the file as a whole, in the file's order.
using SafetensorsMetadata = std::vector<std::pair<std::string, std::string>>;

struct SafetensorsEntry {
  std::string name;
  Array data;
};

struct Safetensors {
  std::shared_ptr<const MappedFile> map;  // in which padding and header lie
  SafetensorsMetadata metadata;
  std::vector<SafetensorsEntry> tensors;  // in the order of their bytes, without padding tensors
  std::vector<std::span<const std::byte>> padding;
  std::string_view header;  // the JSON text, in the map

  // Null when there is none. Linear: who asks for many builds an index.
  const std::string* find_metadata(std::string_view key) const;
  const Array* find(std::string_view name) const;
};

// Refuses, with the path and the reason, whatever the format forbids: a header that is too long or
// no JSON, unknown element types, sizes that overflow or do not fit the bytes, overlaps, holes,
// repeated names, bytes behind the last tensor. The arrays keep the map alive.
Safetensors read_safetensors(std::shared_ptr<const MappedFile>);
inline Safetensors read_safetensors(const std::filesystem::path& path) {
  return read_safetensors(MappedFile::open(path));
}

// Tensors named so are holes between the others: they align what follows and mean nothing.
inline constexpr std::string_view padding_prefix = "__padding__.";

// The file's bytes up to the first tensor, and where each tensor goes; every tensor starts at a
// multiple of 64 bytes from the start of the file.
class SafetensorsLayout {
 public:
  struct Tensor {
    std::string name;
    DType dtype;
    std::vector<std::int64_t> dims;
  };
  // Throws UserError when a name stands twice or is reserved.
  SafetensorsLayout(const SafetensorsMetadata&, std::span<const Tensor>);

  // With its eight bytes of length. Text in it may be replaced by text of equal length.
  std::string& header() { return header_; }
  // The parts of the file in order, ready for write_atomic(); `data[i]` belongs to tensor i.
  std::vector<std::span<const std::byte>> parts(
      std::span<const std::span<const std::byte>> data) const;

 private:
  std::string header_;
  std::vector<std::size_t> padding_;  // zero bytes before tensor i
};

void write_safetensors(const std::filesystem::path&, const SafetensorsMetadata&,
                       std::span<const SafetensorsEntry>);

}  // namespace hone
