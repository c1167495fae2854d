// Safetensors in several files: an index (model.safetensors.index.json) whose weight_map names the
// file of each tensor. Does not know what the tensors are for.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "type/safetensors.h"

namespace hone {

struct ShardedSafetensors {
  std::vector<std::string> files;         // as named in the index, without duplicates
  std::vector<SafetensorsEntry> tensors;  // in index order, views into the files
  std::vector<std::string> unlisted;      // tensors in the files that the index does not name
  std::int64_t file_bytes = 0;
};

// The files must be beside or below the index: no absolute path, no "..", no link that leaves the
// directory. Throws UserError with the path when the index is invalid, when a file is missing or
// invalid, or when a tensor is not in the file that the index names.
ShardedSafetensors read_sharded_safetensors(const std::filesystem::path& index);

}  // namespace hone
