#include "base/file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_set>

#include "base/error.h"
#include "base/flags.h"
#include "base/hash.h"

namespace hone {

namespace fs = std::filesystem;

namespace {

struct Fd {
  int fd = -1;
  explicit Fd(int f) : fd(f) {}
  Fd(const Fd&) = delete;
  ~Fd() {
    if (fd >= 0) ::close(fd);
  }
};

std::string reason() { return std::strerror(errno); }

int open_beneath(int root, const std::string& relative) {
  open_how how = {};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  long fd = ::syscall(SYS_openat2, root, relative.c_str(), &how, sizeof how);
  if (fd >= 0 || errno != ENOSYS) return static_cast<int>(fd);
  // Kernels before 5.6: walk the components, rejecting links and "..".
  int at = ::dup(root);
  for (const fs::path& part : fs::path(relative)) {
    if (part == ".." || part.is_absolute()) {
      ::close(at);
      errno = EXDEV;
      return -1;
    }
    int next = ::openat(at, part.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ::close(at);
    if (next < 0) return -1;
    at = next;
  }
  return at;
}

int open_below(const fs::path& root, const std::string& relative) {
  Fd dir(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  return dir.fd < 0 ? -1 : open_beneath(dir.fd, relative);
}

// Whether `path` is below `root`; both must be free of links.
bool is_below(const fs::path& path, const fs::path& root) {
  return std::mismatch(root.begin(), root.end(), path.begin(), path.end()).first == root.end();
}

// Opens the target of the link at `relative` if model data may be there; else returns -1. The
// opened file is checked again without links, so that nobody can swap it meanwhile.
int follow_link(const fs::path& root, const std::string& relative) {
  std::error_code error;
  const fs::path real_root = fs::canonical(root, error);
  const fs::path target = error ? fs::path() : fs::canonical(root / relative, error);
  for (const fs::path& part : fs::path(relative))
    if (part == ".." || part.is_absolute()) return -1;
  if (error) return -1;
  std::vector<fs::path> allowed = {real_root};
  for (fs::path at = real_root; at.has_relative_path(); at = at.parent_path())
    if (at.filename() == "snapshots") allowed.push_back(at.parent_path() / "blobs");
  for (const fs::path& area : allowed)
    if (is_below(target, area)) return open_below(area, target.lexically_relative(area).string());
  return -1;
}

// Fresh memory with the file's first `size` bytes.
void* read_whole(int fd, std::size_t size, const std::string& path) {
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw UserError(path, ": not enough memory to read it: ", reason());
  for (std::size_t at = 0; at < size;) {
    const ssize_t n =
        ::pread(fd, static_cast<std::byte*>(data) + at, size - at, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n > 0) {
      at += static_cast<std::size_t>(n);
      continue;
    }
    const std::string why = n < 0 ? reason() : "it became shorter meanwhile";
    ::munmap(data, size);
    throw UserError(path, ": cannot be read: ", why);
  }
  ::mprotect(data, size, PROT_READ);
  return data;
}

std::string why_not_private(const struct stat& st) {
  if (S_ISLNK(st.st_mode)) return "is a link";
  if (st.st_uid != ::geteuid())
    return cat("belongs to user ", st.st_uid, ", not to user ", ::geteuid(), ", who runs this");
  if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "others may write to it";
  return "";
}

}  // namespace

std::string why_not_private(const fs::path& path) {
  struct stat st;
  if (::lstat(path.c_str(), &st) != 0) return cat("cannot be looked at: ", reason());
  return why_not_private(st);
}

namespace {

// Currently mapped files, by identity.
struct MappedNow {
  std::mutex mutex;
  std::unordered_multiset<std::uint64_t> identities;
};
MappedNow& mapped_now() {
  static MappedNow m;
  return m;
}

std::uint64_t identity_of(const struct stat& st) {
  return mix(static_cast<std::uint64_t>(st.st_dev), static_cast<std::uint64_t>(st.st_ino));
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::map(int fd, std::string path, bool has_one_name) {
  struct stat st;
  if (::fstat(fd, &st) != 0) throw UserError(path, ": cannot read its size: ", reason());
  if (!S_ISREG(st.st_mode))
    throw UserError(path, ": is not a regular file; give a file, not a directory or device");
  if (has_one_name && st.st_nlink > 1)
    throw UserError(path, ": has ", st.st_nlink,
                    " hard links, and another may be outside the model's directory; copy the file, "
                    "or allow links (--allow-links)");
  std::shared_ptr<MappedFile> file(new MappedFile);
  file->path_ = std::move(path);
  file->size_ = static_cast<std::size_t>(st.st_size);
  file->identity_ = identity_of(st);
  file->is_mapped_ = true;
  {
    std::lock_guard lock(mapped_now().mutex);
    mapped_now().identities.insert(file->identity_);
  }
  if (file->size_ == 0) return file;
  void* data = flag_number("HONE_MAP_FILES") == 0
                   ? read_whole(fd, file->size_, file->path_)
                   : ::mmap(nullptr, file->size_, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) throw UserError(file->path_, ": cannot be mapped: ", reason());
  file->data_ = static_cast<const std::byte*>(data);
  return file;
}

std::shared_ptr<const MappedFile> MappedFile::open(const fs::path& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.fd < 0) throw UserError(path.string(), ": cannot be opened: ", reason());
  return map(fd.fd, path.string(), false);
}

std::shared_ptr<const MappedFile> MappedFile::open_private(const fs::path& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (fd.fd < 0) throw UserError(path.string(), ": cannot be opened: ", reason());
  struct stat st;
  if (::fstat(fd.fd, &st) != 0) throw UserError(path.string(), ": cannot be read: ", reason());
  if (const std::string why = why_not_private(st); !why.empty())
    throw UserError(path.string(), ": ", why);
  return map(fd.fd, path.string(), false);
}

std::shared_ptr<const MappedFile> MappedFile::open_contained(const fs::path& root,
                                                             std::string_view relative,
                                                             Links links) {
  std::string name(relative);
  if (name.empty() || name.find('\0') != std::string::npos)
    throw UserError(root.string(), ": external data location is empty or contains a zero byte");
  const fs::path base = root.empty() ? fs::path(".") : root;
  if (links == Links::any) {
    Fd fd(::open((base / name).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (fd.fd < 0) throw UserError(name, ": external data cannot be opened: ", reason());
    return map(fd.fd, (base / name).string(), false);
  }
  Fd fd(open_below(base, name));
  const int error = fd.fd < 0 ? errno : 0;
  if (error == ELOOP || error == ENOTDIR)
    if (const int followed = follow_link(base, name); followed >= 0) {
      Fd owner(followed);
      return map(owner.fd, (base / name).string(), true);
    }
  if (fd.fd < 0)
    throw UserError(name, ": external data cannot be opened below ", root.string(), ": ",
                    error == ELOOP ? "a link leads out of it" : std::strerror(error),
                    "; it must be a file in the model's own directory, or links must be allowed "
                    "(--allow-links)");
  return map(fd.fd, (root / name).string(), true);
}

std::shared_ptr<const MappedFile> MappedFile::over(std::shared_ptr<const void> owner,
                                                   std::span<const std::byte> bytes,
                                                   std::string name) {
  std::shared_ptr<MappedFile> file(new MappedFile);
  file->data_ = bytes.data();
  file->size_ = bytes.size();
  file->owner_ = std::move(owner);
  file->path_ = std::move(name);
  return file;
}

MappedFile::~MappedFile() {
  if (!is_mapped_) return;
  {
    std::lock_guard lock(mapped_now().mutex);
    auto& all = mapped_now().identities;
    if (const auto at = all.find(identity_); at != all.end()) all.erase(at);
  }
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

bool is_mapped(const fs::path& path) {
  struct stat st;
  if (::stat(path.c_str(), &st) != 0) return false;
  std::lock_guard lock(mapped_now().mutex);
  return mapped_now().identities.contains(identity_of(st));
}

void exit_when_a_file_is_gone(int code) {
  static std::atomic<int> exit_code;
  exit_code = code;
  struct sigaction on_bus = {};
  // Async-signal-safe code only.
  on_bus.sa_handler = [](int) {
    constexpr char text[] =
        "hone: a file in use became shorter, or its disk cannot be read; leave files as they are\n"
        "while they are used, or set HONE_MAP_FILES=0 to have them read into memory first\n";
    const bool is_said = ::write(STDERR_FILENO, text, sizeof text - 1) > 0;
    ::_exit(is_said ? exit_code.load() : 1);
  };
  ::sigaction(SIGBUS, &on_bus, nullptr);
}

namespace {

void sync_directory_of(const fs::path& path) {
  const fs::path parent = path.parent_path();
  Fd dir(::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (dir.fd >= 0) ::fsync(dir.fd);
}

}  // namespace

namespace {

bool is_special(const fs::path& path) {
  struct stat st;
  return ::stat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode);
}

// The target of a link, existing or not; any other path unchanged. Circular links give a link.
fs::path behind_links(fs::path path) {
  constexpr int most = 40;
  std::error_code error;
  for (int i = 0; i < most && fs::is_symlink(path, error); ++i) {
    const fs::path target = fs::read_symlink(path, error);
    path = target.is_absolute() ? target : path.parent_path() / target;
  }
  return path;
}

void write_all(int fd, std::span<const std::byte> part, const fs::path& path) {
  while (!part.empty()) {
    const ssize_t n = ::write(fd, part.data(), part.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw UserError(path.string(), ": cannot be written: ", reason());
    part = part.subspan(static_cast<std::size_t>(n));
  }
}

// A device or pipe: it cannot be replaced by renaming.
void write_special(const fs::path& path, std::span<const std::span<const std::byte>> parts) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (fd.fd < 0) throw UserError(path.string(), ": cannot be opened for writing: ", reason());
  for (std::span<const std::byte> part : parts) write_all(fd.fd, part, path);
}

}  // namespace

bool is_same_file(const fs::path& a, const fs::path& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error)) return true;
  const auto whole = [&](const fs::path& p) {
    const fs::path real = behind_links(p);
    return fs::weakly_canonical(fs::absolute(real, error), error);
  };
  return whole(a) == whole(b);
}

std::string why_not_writable(const fs::path& path) {
  constexpr std::string_view another = ", or give another place";
  std::error_code error;
  if (fs::is_directory(path, error)) return "is a directory; give the name of a file";
  if (is_special(path))
    return ::access(path.c_str(), W_OK) == 0 ? "" : cat("cannot be written: ", reason(), another);
  const fs::path real = behind_links(path), parent = real.parent_path();
  if (fs::is_symlink(real, error))
    return "is a symbolic link that leads back to itself; give another place";
  if (!parent.empty() && !fs::is_directory(parent, error))
    return fs::exists(parent, error)
               ? cat("cannot be written: ", parent.string(), " is a file, not a directory", another)
               : cat("there is no directory ", parent.string(), "; create it first", another);
  const fs::path probe = unused_name(path);
  Fd fd(::open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (fd.fd < 0) return cat("cannot be written: ", reason(), another);
  ::unlink(probe.c_str());
  return "";
}

namespace {

// A temporary name beside `path`; the name of `path` is cut where the whole would be too long.
fs::path temporary_beside(const fs::path& path) {
  constexpr std::size_t most = 255;  // bytes of a name on Linux
  static std::atomic<unsigned> serial{0};
  const std::string ending = cat(".tmp.", ::getpid(), ".", serial.fetch_add(1));
  std::string name = path.filename().string();
  std::size_t kept = std::min(name.size(), most - ending.size());
  const auto continues = [&](std::size_t i) {  // a character of UTF-8
    return i < name.size() && (static_cast<unsigned char>(name[i]) & 0xC0U) == 0x80U;
  };
  while (kept > 0 && continues(kept)) --kept;
  return path.parent_path() / (name.substr(0, kept) + ending);
}

}  // namespace

fs::path unused_name(const fs::path& path) {
  std::error_code error;
  return temporary_beside(is_special(path) ? fs::temp_directory_path(error) / "hone"
                                           : behind_links(path));
}

void move_file(const fs::path& from, const fs::path& to) {
  if (is_special(to)) {
    const auto file = MappedFile::open(from);
    const std::span<const std::byte> all[] = {file->bytes()};
    write_special(to, all);
    ::unlink(from.c_str());
    return;
  }
  const fs::path real = behind_links(to);
  if (::rename(from.c_str(), real.c_str()) != 0)
    throw UserError(to.string(), ": cannot be renamed into place: ", reason());
  sync_directory_of(real);
}

void write_atomic(const fs::path& path, std::span<const std::span<const std::byte>> parts,
                  Sync sync) {
  if (is_special(path)) return write_special(path, parts);
  const fs::path real = behind_links(path), temp = temporary_beside(real);
  if (std::error_code error; fs::is_symlink(real, error))
    throw UserError(path.string(), ": is a symbolic link that leads back to itself");
  auto fail = [&](std::string_view what) {
    std::string why = reason();
    ::unlink(temp.c_str());
    throw UserError(path.string(), ": cannot be ", what, ": ", why);
  };
  {
    Fd fd(::open(temp.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (fd.fd < 0) fail("created");
    try {
      for (std::span<const std::byte> part : parts) write_all(fd.fd, part, path);
    } catch (const UserError&) {
      ::unlink(temp.c_str());
      throw;
    }
    if (sync == Sync::yes && ::fsync(fd.fd) != 0) fail("synced");
  }
  if (::rename(temp.c_str(), real.c_str()) != 0) fail("renamed into place");
  if (sync == Sync::yes) sync_directory_of(real);
}

void write_atomic(const fs::path& path, std::string_view text) {
  std::span<const std::byte> part = std::as_bytes(std::span(text));
  write_atomic(path, std::span(&part, 1));
}

fs::path cache_directory() {
  fs::path dir;
  if (const char* own = std::getenv("HONE_CACHE_DIR"); own && *own) {
    dir = own;
  } else if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg) {
    dir = fs::path(xdg) / "hone";
  } else if (const char* home = std::getenv("HOME"); home && *home) {
    dir = fs::path(home) / ".cache" / "hone";
  } else {
    return {};
  }
  std::error_code ignored;
  if (fs::is_directory(dir, ignored)) return dir;
  fs::create_directories(dir.parent_path(), ignored);
  if (::mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST) return {};
  return dir;
}

}  // namespace hone
