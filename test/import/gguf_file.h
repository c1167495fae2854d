// Writes GGUF files from a description, including invalid ones. Not a test itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

struct GgufFile {
  std::string bytes;

  template <class T>
  GgufFile& put(T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  GgufFile& text(std::string_view s) {
    put<std::uint64_t>(s.size());
    bytes += s;
    return *this;
  }
  GgufFile& head(std::uint64_t tensors, std::uint64_t pairs, std::uint32_t version = 3) {
    bytes += "GGUF";
    return put(version).put(tensors).put(pairs);
  }
  GgufFile& alignment(std::uint32_t n) {
    return text("general.alignment").put<std::uint32_t>(4).put(n);
  }
  // `sizes` in the file's order, fastest first.
  GgufFile& tensor(std::string_view name, std::vector<std::uint64_t> sizes, std::uint32_t type,
                   std::uint64_t offset) {
    text(name).put(static_cast<std::uint32_t>(sizes.size()));
    for (std::uint64_t n : sizes) put(n);
    return put(type).put(offset);
  }
  GgufFile& data(std::size_t count, std::size_t alignment = 32) {
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment, '\0');
    for (std::size_t i = 0; i < count; ++i) bytes += static_cast<char>(i);
    return *this;
  }
};

}  // namespace hone
