// The safetensors container: a JSON header followed by the bytes of named tensors, without gaps.
// Reads from a memory map without copying. Does not know what the tensors are for.
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

// File-level strings, in the file's order.
using SafetensorsMetadata = std::vector<std::pair<std::string, std::string>>;

struct SafetensorsEntry {
  std::string name;
  Array data;
};

struct Safetensors {
  std::shared_ptr<const MappedFile> map;  // contains the padding and the header
  SafetensorsMetadata metadata;
  std::vector<SafetensorsEntry> tensors;  // in the order of their bytes, without padding tensors
  std::vector<std::span<const std::byte>> padding;
  std::string_view header;  // the JSON text, in the map

  // Null when there is none. Linear: build an index for many lookups.
  const std::string* find_metadata(std::string_view key) const;
  const Array* find(std::string_view name) const;
};

// Rejects, with the path and the reason, everything the format forbids: a header that is too long
// or not JSON, unknown element types, sizes that overflow or do not match the bytes, overlaps,
// gaps, repeated names, bytes after the last tensor. The arrays keep the map alive.
Safetensors read_safetensors(std::shared_ptr<const MappedFile>);
inline Safetensors read_safetensors(const std::filesystem::path& path) {
  return read_safetensors(MappedFile::open(path));
}

// Tensors with this prefix are padding: they align the next tensor and carry no data.
inline constexpr std::string_view padding_prefix = "__padding__.";

// The file's bytes up to the first tensor, and the position of each tensor; every tensor starts at
// a multiple of 64 bytes from the start of the file.
class SafetensorsLayout {
 public:
  struct Tensor {
    std::string name;
    DType dtype;
    std::vector<std::int64_t> dims;
  };
  // Throws UserError when a name is repeated or reserved.
  SafetensorsLayout(const SafetensorsMetadata&, std::span<const Tensor>);

  // Includes the eight length bytes. Strings in it may be replaced by strings of equal length.
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
