// Names of files, and the writer for directories of our own.
#pragma once

#include <string>
#include <string_view>

#include "base/file.h"

namespace hone {

// As write_atomic(), but what has the name already, be it a link, pipe or device, is replaced and
// never opened.
void replace_file(const std::filesystem::path& path,
                  std::span<const std::span<const std::byte>> parts, Sync = Sync::yes);

constexpr std::size_t most_name_bytes = 255;  // of a file's name, on Linux
// NAME + ENDING. Where that is longer than `most`, a hash of `name` takes the place of its end, so
// that long names that differ stay different.
std::string fit_file_name(std::string_view name, std::string_view ending,
                          std::size_t most = most_name_bytes);

}  // namespace hone
