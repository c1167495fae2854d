#include "base/file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

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
  // Kernels before 5.6: walk the components, refusing links and "..".
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

// Fresh memory with the file's first `size` bytes.
void* read_whole(int fd, std::size_t size, const std::string& path) {
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw UserError(path, ": there is no memory to read it: ", reason());
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

std::shared_ptr<const MappedFile> MappedFile::map(int fd, std::string path, bool is_contained) {
  struct stat st;
  if (::fstat(fd, &st) != 0) throw UserError(path, ": cannot read its size: ", reason());
  if (!S_ISREG(st.st_mode))
    throw UserError(path, ": is not a regular file; give a file, not a directory or device");
  if (is_contained && st.st_nlink > 1 && flag("HONE_HARD_LINKS") != "1")
    throw UserError(path, ": has ", st.st_nlink,
                    " names (hard links), and another may lie outside "
                    "of the model's directory; copy it, or set HONE_HARD_LINKS=1 to allow it");
  std::shared_ptr<MappedFile> file(new MappedFile);
  file->path_ = std::move(path);
  file->size_ = static_cast<std::size_t>(st.st_size);
  file->identity_ =
      mix(static_cast<std::uint64_t>(st.st_dev), static_cast<std::uint64_t>(st.st_ino));
  if (file->size_ == 0) return file;
  void* data = flag("HONE_MAP_FILES") == "0"
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
                                                             std::string_view relative) {
  std::string name(relative);
  if (name.empty() || name.find('\0') != std::string::npos)
    throw UserError(root.string(), ": external data location is empty or holds a zero byte");
  Fd dir(::open(root.empty() ? "." : root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (dir.fd < 0) throw UserError(root.string(), ": cannot be opened: ", reason());
  Fd fd(open_beneath(dir.fd, name));
  if (fd.fd < 0)
    throw UserError(name, ": external data cannot be opened below ", root.string(), ": ", reason(),
                    "; it must be a regular file in the model's own directory, without links");
  return map(fd.fd, (root / name).string(), true);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

void exit_when_a_file_is_gone(int code) {
  static std::atomic<int> exit_code;
  exit_code = code;
  struct sigaction on_bus = {};
  // Only what a signal handler may do.
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

fs::path unused_name(const fs::path& path) {
  static std::atomic<unsigned> serial{0};
  fs::path out = path;
  out += cat(".tmp.", ::getpid(), ".", serial.fetch_add(1));
  return out;
}

void rename_file(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0)
    throw UserError(to.string(), ": cannot be renamed into place: ", reason());
  sync_directory_of(to);
}

void write_atomic(const fs::path& path, std::span<const std::span<const std::byte>> parts,
                  Sync sync) {
  const fs::path temp = unused_name(path);
  auto fail = [&](std::string_view what) {
    std::string why = reason();
    ::unlink(temp.c_str());
    throw UserError(path.string(), ": cannot be ", what, ": ", why);
  };
  {
    Fd fd(::open(temp.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (fd.fd < 0) fail("created");
    for (std::span<const std::byte> part : parts) {
      while (!part.empty()) {
        ssize_t n = ::write(fd.fd, part.data(), part.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail("written");
        part = part.subspan(static_cast<std::size_t>(n));
      }
    }
    if (sync == Sync::yes && ::fsync(fd.fd) != 0) fail("synced");
  }
  if (::rename(temp.c_str(), path.c_str()) != 0) fail("renamed into place");
  if (sync == Sync::yes) sync_directory_of(path);
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
