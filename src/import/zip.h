// The files in a zip archive, such as NumPy's .npz. Reads what is stored or deflated; neither
// encrypted nor split archives, nor files of 4 GiB and more.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "type/array.h"

namespace hone {

struct ZipEntry {
  std::string name;
  Storage content;  // starts at a multiple of 64
};

// Throws UserError naming the archive and the entry when it is damaged.
std::vector<ZipEntry> read_zip(const std::filesystem::path&);

}  // namespace hone
