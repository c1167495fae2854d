// Files: memory maps, the one atomic writer, and the opener for paths that a model names.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

// A whole file mapped read-only. The map lives as long as a copy of the shared_ptr. If the file is
// truncated meanwhile, reading the lost pages raises SIGBUS; with HONE_MAP_FILES=0 files are read
// into memory instead.
class MappedFile {
 public:
  // Which links may be followed to data that an untrusted file names.
  enum class Links : bool {
    // A link is followed when its target is below `root` or, when root is below CACHE/snapshots, in
    // CACHE/blobs: this is the layout of Hugging Face's cache.
    contained,
    any,  // any target, and files with several names
  };

  // Throws UserError naming the path and the reason.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  // For code that will be run: refuses links and files that why_not_private() objects to.
  static std::shared_ptr<const MappedFile> open_private(const std::filesystem::path& path);
  // Opens `relative` below `root` for data that an untrusted file names: no absolute path, no "..",
  // no symbolic link that leaves `root`, regular files only (openat2 RESOLVE_BENEATH, or a checked
  // walk), and no file with a second hard link, which may lie anywhere.
  static std::shared_ptr<const MappedFile> open_contained(const std::filesystem::path& root,
                                                          std::string_view relative,
                                                          Links = Links::contained);
  // The contents of a file that lie in memory already, which the owner keeps (null: the caller).
  // The name is for messages.
  static std::shared_ptr<const MappedFile> over(std::shared_ptr<const void> owner,
                                                std::span<const std::byte>, std::string name);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }
  // Identity of the file on disk: a hash of device and inode.
  std::uint64_t identity() const { return identity_; }

 private:
  MappedFile() = default;
  static std::shared_ptr<const MappedFile> map(int fd, std::string path, bool has_one_name);
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  bool is_mapped_ = false;
  std::shared_ptr<const void> owner_;  // of memory that is not mapped
  std::uint64_t identity_ = 0;
  std::string path_;
};

// Why another user could have written the file or directory: it is a link, it does not belong to
// the effective user of this process, or others may write to it. Empty: no other user could.
std::string why_not_private(const std::filesystem::path& path);

// For programs: makes a read of a truncated mapped file end the process with this code and a
// message on stderr instead of SIGBUS.
void exit_when_a_file_is_gone(int code);

// Whether a written file must survive a power cut. Cache entries need not: their hash detects a
// broken one.
enum class Sync : bool { no, yes };

// Whether this process has mapped the file: it is an input, which no output may replace.
bool is_mapped(const std::filesystem::path&);
// Whether two paths refer to one file, or would if it were written. Never throws.
bool is_same_file(const std::filesystem::path&, const std::filesystem::path&);
// Why a file cannot be written there, and what to do: the path is a directory, or its directory is
// missing or not writable. Empty: it can be written. Leaves no file behind.
std::string why_not_writable(const std::filesystem::path&);

// Writes parts one after another to a temporary file beside `path`, syncs, renames over `path`, and
// syncs the directory: readers see the old file or the new one, never a part. A link is kept and
// its target is replaced. A device or pipe is written to directly.
void write_atomic(const std::filesystem::path& path,
                  std::span<const std::span<const std::byte>> parts, Sync = Sync::yes);
void write_atomic(const std::filesystem::path& path, std::string_view text);

// A name that no other process uses, from which move_file() can move a file to `path`.
std::filesystem::path unused_name(const std::filesystem::path& path);
// Atomic, replaces an existing file; syncs the directory. Handles links, devices and pipes as
// write_atomic() does. Throws UserError.
void move_file(const std::filesystem::path& from, const std::filesystem::path& to);

// The directory for cached data: HONE_CACHE_DIR, else $XDG_CACHE_HOME/hone, else ~/.cache/hone.
// Created with mode 0700. Empty when it cannot be created.
std::filesystem::path cache_directory();

}  // namespace hone
