#include "base/replace_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"

namespace hone {

namespace fs = std::filesystem;

void replace_file(const fs::path& path, std::span<const std::span<const std::byte>> parts,
                  Sync sync) {
  const fs::path temporary = unused_name(path.parent_path() / "new");
  write_atomic(temporary, parts, sync);
  if (::rename(temporary.c_str(), path.c_str()) == 0) return;
  const std::string why = std::strerror(errno);
  ::unlink(temporary.c_str());
  throw UserError(path.string(), ": cannot be renamed into place: ", why);
}

std::string fit_file_name(std::string_view name, std::string_view ending, std::size_t most) {
  if (name.size() + ending.size() <= most) return cat(name, ending);
  const std::string mark = "-" + to_hex(hash128(name)).substr(0, 8);
  std::size_t kept = most - ending.size() - mark.size();
  const auto continues = [&](std::size_t i) {  // a character of UTF-8
    return (static_cast<unsigned char>(name[i]) & 0xC0U) == 0x80U;
  };
  while (kept > 0 && continues(kept)) --kept;
  return cat(name.substr(0, kept), mark, ending);
}

}  // namespace hone
