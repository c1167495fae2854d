#include "runtime/cache.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "base/replace_file.h"

namespace hone {

namespace fs = std::filesystem;

namespace {

struct Header {
  std::array<char, 8> magic;
  Hash128 key, content;
  std::uint64_t size;
};
constexpr std::array<char, 8> magic = {'h', 'o', 'n', 'e', 'c', 'a', 'c', '1'};

// Once for each path: every compilation opens the cache several times.
void warn(const fs::path& path, std::string_view why) {
  static std::mutex mutex;
  static std::set<fs::path> told;
  const std::scoped_lock lock(mutex);
  if (told.insert(path).second) log_warning(cat("compile cache: ", path.string(), ": ", why));
}

// Entries are machine code: anyone who can write here can run code as this user.
bool is_private(const fs::path& dir) {
  std::error_code error;
  const bool is_directory = fs::is_directory(fs::symlink_status(dir, error));
  const std::string why = is_directory ? why_not_private(dir) : "is not a directory";
  if (why.empty()) return true;
  warn(
      dir,
      cat(why,
          "; the cache is not used; set HONE_CACHE_DIR to a directory that only you can write to"));
  return false;
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
  if (is_private(directory) && is_private(dir)) directory_ = dir;
}

std::optional<std::vector<std::byte>> CompileCache::find(const Hash128& key) const {
  if (!keeps()) return std::nullopt;
  fs::path path = directory_ / to_hex(key);
  std::error_code error;
  if (fs::symlink_status(path, error).type() != fs::file_type::regular) return std::nullopt;
  if (const std::string why = why_not_private(path); !why.empty()) {
    warn(directory_, cat("entry ", path.filename().string(), " ", why, "; it is not used"));
    return std::nullopt;
  }
  try {
    auto file = MappedFile::open_private(path);
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
    replace_file(directory_ / to_hex(key), parts, Sync::no);
  } catch (const UserError& e) {
    static bool told = (warn(directory_, e.what()), true);
    static_cast<void>(told);
  }
}

}  // namespace hone
