#include "runtime/cache.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"

namespace hone {

namespace fs = std::filesystem;

namespace {

struct Header {
  std::array<char, 8> magic;
  Hash128 key, content;
  std::uint64_t size;
};
constexpr std::array<char, 8> magic = {'h', 'o', 'n', 'e', 'c', 'a', 'c', '1'};

// Who can write here can run code as us.
bool is_private(const fs::path& dir) {
  std::error_code error;
  fs::file_status status = fs::symlink_status(dir, error);
  if (error || status.type() != fs::file_type::directory) return false;
  return (status.permissions() & (fs::perms::group_write | fs::perms::others_write)) ==
         fs::perms::none;
}

void warn(const fs::path& path, std::string_view why) {
  log_warning(cat("compile cache: ", path.string(), ": ", why));
}

}  // namespace

CompileCache::CompileCache(const fs::path& directory, std::string_view kind) {
  if (directory.empty()) return;
  std::error_code error;
  fs::path dir = directory / kind;
  if (!fs::exists(dir, error)) {
    fs::create_directories(dir, error);
    fs::permissions(dir, fs::perms::owner_all, error);
  }
  if (is_private(directory) && is_private(dir))
    directory_ = dir;
  else
    warn(dir, "is not a directory that only its owner can write to; nothing is kept");
}

std::optional<std::vector<std::byte>> CompileCache::find(const Hash128& key) const {
  if (!keeps()) return std::nullopt;
  fs::path path = directory_ / to_hex(key);
  std::error_code error;
  if (fs::symlink_status(path, error).type() != fs::file_type::regular) return std::nullopt;
  try {
    auto file = MappedFile::open(path);
    std::span<const std::byte> bytes = file->bytes();
    Header h;
    if (bytes.size() < sizeof h) return std::nullopt;
    std::memcpy(&h, bytes.data(), sizeof h);
    std::span<const std::byte> content = bytes.subspan(sizeof h);
    if (h.magic != magic || h.key != key || h.size != content.size() ||
        h.content != hash128(content))
      return std::nullopt;
    return std::vector<std::byte>(content.begin(), content.end());
  } catch (const UserError&) {
    return std::nullopt;
  }
}

void CompileCache::store(const Hash128& key, std::span<const std::byte> content) const {
  if (!keeps()) return;
  Header h{magic, key, hash128(content), content.size()};
  std::span<const std::byte> parts[] = {std::as_bytes(std::span(&h, 1)), content};
  try {
    write_atomic(directory_ / to_hex(key), parts, Sync::no);
  } catch (const UserError& e) {
    static bool told = (warn(directory_, e.what()), true);
    static_cast<void>(told);
  }
}

}  // namespace hone
