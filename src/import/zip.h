// The files in a zip archive, such as NumPy's .npz. Supports stored and deflated entries; no
// encrypted or split archives, and no files of 4 GiB or more.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "type/array.h"

namespace hone {

struct ZipEntry {
  std::string name;
  Storage content;  // aligned to 64 bytes
};

// Throws UserError naming the archive and the entry when it is damaged.
std::vector<ZipEntry> read_zip(const std::filesystem::path&);

}  // namespace hone
