#include "import/weights.h"

#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "import/gguf/gguf.h"
#include "import/safetensors/sharded.h"
#include "import/tensor_file.h"
#include "type/safetensors.h"

namespace hone {

namespace {

bool starts_with(const MappedFile& file, std::string_view text) {
  return file.bytes().size() >= text.size() &&
         std::memcmp(file.bytes().data(), text.data(), text.size()) == 0;
}

}  // namespace

std::map<std::string, Array> read_weights(const std::filesystem::path& path) {
  std::map<std::string, Array> out;
  const auto file = MappedFile::open(path);
  if (starts_with(*file, "GGUF")) {
    for (const GgufTensor& t : read_gguf(file).tensors)
      out.emplace(t.name, t.is_quantized() ? dequantize(t) : t.stored());
  } else if (starts_with(*file, "PK")) {
    for (NpzEntry& e : read_npz(path)) out.emplace(std::move(e.name), std::move(e.data));
  } else if (starts_with(*file, "{")) {
    for (SafetensorsEntry& e : read_sharded_safetensors(path).tensors)
      out.emplace(std::move(e.name), std::move(e.data));
  } else {
    for (SafetensorsEntry& e : read_safetensors(file).tensors)
      out.emplace(std::move(e.name), std::move(e.data));
  }
  return out;
}

}  // namespace hone
