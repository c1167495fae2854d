// Safetensors in several files: an index (model.safetensors.index.json) whose weight_map names the
// file of each tensor. Knows nothing of what the tensors are for.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "type/safetensors.h"

namespace hone {

struct ShardedSafetensors {
  std::vector<std::string> files;         // as the index names them, each once
  std::vector<SafetensorsEntry> tensors;  // in the order of the index, views into the files
  std::vector<std::string> unlisted;      // tensors of the files that the index does not name
  std::int64_t file_bytes = 0;
};

// The files lie beside the index or below: no absolute path, no "..", no link
// out of there. Throws UserError
// with the path when the index is no such JSON, when a file is missing or wrong, or when a tensor
// is not in the file that it should be in.
ShardedSafetensors read_sharded_safetensors(const std::filesystem::path& index);

}  // namespace hone
