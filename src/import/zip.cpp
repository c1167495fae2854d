#include "import/zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "base/amount.h"
#include "base/error.h"
#include "base/file.h"

namespace hone {

namespace {

// Fields of the format, little-endian: APPNOTE.TXT of PKWARE, sections 4.3.7, 4.3.12 and 4.3.16.
constexpr std::uint32_t local_mark = 0x04034b50, central_mark = 0x02014b50, end_mark = 0x06054b50;
constexpr std::size_t local_bytes = 30, central_bytes = 46, end_bytes = 22;
constexpr std::uint16_t stored = 0, deflated = 8;
constexpr std::uint32_t elsewhere = 0xffffffff;  // the number is in a zip64 field
// The maximum expansion ratio of deflate.
constexpr std::uint64_t most_expansion = 1032;

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, std::string path)
      : bytes_(bytes), path_(std::move(path)) {}

  std::vector<ZipEntry> run() {
    const std::size_t end = find_end();
    const std::size_t count = read<std::uint16_t>(end + 10);
    std::size_t at = read<std::uint32_t>(end + 16);
    std::vector<ZipEntry> out;
    for (std::size_t i = 0; i < count; ++i) {
      if (read<std::uint32_t>(at) != central_mark) fail("its directory is damaged");
      const std::size_t name = read<std::uint16_t>(at + 28), extra = read<std::uint16_t>(at + 30),
                        comment = read<std::uint16_t>(at + 32);
      out.push_back(entry(at, text(at + central_bytes, name)));
      at += central_bytes + name + extra + comment;
    }
    return out;
  }

 private:
  [[noreturn]] void fail(std::string_view why) const {
    throw UserError(path_, ": cannot be read as a zip archive: ", why);
  }
  std::span<const std::byte> part(std::uint64_t at, std::uint64_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) fail("it is truncated or damaged");
    return bytes_.subspan(at, size);
  }
  template <class T>
  T read(std::uint64_t at) const {
    T n;
    std::memcpy(&n, part(at, sizeof n).data(), sizeof n);
    return n;
  }
  std::string text(std::uint64_t at, std::uint64_t size) const {
    const auto bytes = part(at, size);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  // Only a comment of at most 65,535 bytes follows it.
  std::size_t find_end() const {
    constexpr std::size_t most_comment = 0xffff;
    if (bytes_.size() < end_bytes)
      fail(cat("it has only ", amount(bytes_.size(), "byte", "bytes")));
    const std::size_t last = bytes_.size() - end_bytes;
    for (std::size_t back = 0; back <= std::min(last, most_comment); ++back)
      if (read<std::uint32_t>(last - back) == end_mark) return last - back;
    fail("it has no directory; is it truncated?");
  }

  ZipEntry entry(std::size_t at, std::string name) const {
    const auto flags = read<std::uint16_t>(at + 8), method = read<std::uint16_t>(at + 10);
    const auto crc = read<std::uint32_t>(at + 16), packed = read<std::uint32_t>(at + 20),
               size = read<std::uint32_t>(at + 24), local = read<std::uint32_t>(at + 42);
    if (packed == elsewhere || size == elsewhere || local == elsewhere)
      fail(cat("'", name, "' has 4 GiB or more; save it as .npy"));
    if ((flags & 1) != 0) fail(cat("'", name, "' is encrypted"));
    if (method != stored && method != deflated)
      fail(cat("'", name, "' uses compression method ", method,
               ", expected 0 (stored) or 8 (deflated)"));
    if (read<std::uint32_t>(local) != local_mark)
      fail(cat("'", name, "' is not where the directory says"));
    const std::uint64_t start = std::uint64_t{local} + local_bytes +
                                read<std::uint16_t>(local + 26) + read<std::uint16_t>(local + 28);
    const std::span<const std::byte> data = part(start, packed);
    if (size > std::uint64_t{packed} * most_expansion + 64)
      fail(cat("'", name, "' has an impossible size"));
    const Storage content = method == stored ? Storage::copy(data) : inflated(data, size, name);
    const auto* bytes = reinterpret_cast<const Bytef*>(content.bytes().data());
    if (content.size() != size || ::crc32_z(0, bytes, content.size()) != crc)
      fail(cat("'", name, "' does not match its checksum; it is damaged"));
    return {std::move(name), content};
  }

  Storage inflated(std::span<const std::byte> from, std::size_t size,
                   const std::string& name) const {
    std::vector<std::byte> out(size);
    z_stream z = {};
    // Without zlib's own header.
    if (::inflateInit2(&z, -MAX_WBITS) != Z_OK) throw OutOfMemory(path_, ": out of memory");
    z.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(from.data()));
    z.avail_in = static_cast<uInt>(from.size());
    z.next_out = reinterpret_cast<Bytef*>(out.data());
    z.avail_out = static_cast<uInt>(out.size());
    const int status = ::inflate(&z, Z_FINISH);
    const bool is_whole = status == Z_STREAM_END && z.total_out == size;
    ::inflateEnd(&z);
    if (!is_whole) fail(cat("'", name, "' is damaged"));
    return Storage::copy(out);
  }

  std::span<const std::byte> bytes_;
  std::string path_;
};

}  // namespace

std::vector<ZipEntry> read_zip(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path);
  return Reader(file->bytes(), file->path()).run();
}

}  // namespace hone
