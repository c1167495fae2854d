// Files: memory maps, the one atomic writer, and the contained opener for paths that a model names.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

// A whole file mapped read-only. The map lives as long as a copy of the shared_ptr. Somebody who
// shortens the file meanwhile takes pages away from under it, and who reads them gets SIGBUS: with
// HONE_MAP_FILES=0 files are read into memory instead.
class MappedFile {
 public:
  // How data that an untrusted file names may be reached.
  enum class Links : bool {
    // A link is followed when what it leads to lies below `root` or, where root is below
    // CACHE/snapshots, in CACHE/blobs: so Hugging Face's cache is laid out.
    contained,
    any,  // anywhere, and files with several names
  };

  // Throws UserError naming the path and the reason.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  // Of code that is to be run: refuses a link, and what why_not_private() has something against.
  static std::shared_ptr<const MappedFile> open_private(const std::filesystem::path& path);
  // Opens `relative` below `root` for data that an untrusted file names: no absolute path, no
  // "..", no symbolic link out of there, regular files only (openat2 RESOLVE_BENEATH, or a checked
  // walk), and none with a second name, which may lie anywhere.
  static std::shared_ptr<const MappedFile> open_contained(const std::filesystem::path& root,
                                                          std::string_view relative,
                                                          Links = Links::contained);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }
  // Identity of the file on disk: device and inode, mixed.
  std::uint64_t identity() const { return identity_; }

 private:
  MappedFile() = default;
  static std::shared_ptr<const MappedFile> map(int fd, std::string path, bool has_one_name);
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::uint64_t identity_ = 0;
  std::string path_;
};

// Why somebody else could have written the file or directory: it is a link, belongs to another user
// than the effective one of this process, or others may write to it. Empty: nobody else could.
std::string why_not_private(const std::filesystem::path& path);

// For programs: reading a mapped file whose bytes are gone ends the process with this code and a
// message on stderr, not by SIGBUS.
void exit_when_a_file_is_gone(int code);

// Whether a written file must survive a power cut: entries of a cache need not, since a broken one
// is found by its hash.
enum class Sync : bool { no, yes };

// Whether it is a file that this process has mapped: an input, which no output may replace.
bool is_mapped(const std::filesystem::path&);
// Whether two paths are one file, or would be if it were written. Never throws.
bool is_same_file(const std::filesystem::path&, const std::filesystem::path&);
// What keeps from writing a file there, and what to do: it is a directory, its directory is missing
// or must not be written to. Nothing: empty. Leaves no file behind.
std::string why_not_writable(const std::filesystem::path&);

// Writes parts one after another to a temporary file beside `path`, syncs, renames over `path`, and
// syncs the directory: readers see the old file or the new one, never a part. A link stays a link:
// what it leads to is replaced. A device or pipe is written to and stays what it is.
void write_atomic(const std::filesystem::path& path,
                  std::span<const std::span<const std::byte>> parts, Sync = Sync::yes);
void write_atomic(const std::filesystem::path& path, std::string_view text);

// A name that no other process takes, from which move_file() can bring a file to `path`.
std::filesystem::path unused_name(const std::filesystem::path& path);
// In one step, over an older file of that name; syncs the directory. Links, devices and pipes as
// for write_atomic(). Throws UserError.
void move_file(const std::filesystem::path& from, const std::filesystem::path& to);

// The directory for cached data: HONE_CACHE_DIR, else $XDG_CACHE_HOME/hone, else ~/.cache/hone.
// Created with mode 0700. Empty when none can be made.
std::filesystem::path cache_directory();

}  // namespace hone
