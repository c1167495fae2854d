// TIFF by libtiff. Its functions are declared here, because only the library need be there.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "host/image_libraries.h"
#include "host/image_library.h"

namespace hone {

namespace {

using Bytes = std::span<const std::byte>;
using Size = std::int64_t;  // of the library: tmsize_t
using Offset = std::uint64_t;

struct Handle;
struct Options;
using Report = int (*)(Handle*, void*, const char* module, const char* format, va_list);
using Transfer = Size (*)(void*, void*, Size);

struct Tiff {
  static constexpr const char* name = "libtiff.so.6";
  void* library = open_library(name);
  Options* (*options)() = nullptr;
  void (*free_options)(Options*) = nullptr;
  void (*set_most_bytes)(Options*, Size) = nullptr;
  void (*set_errors)(Options*, Report, void*) = nullptr;
  void (*set_warnings)(Options*, Report, void*) = nullptr;
  Handle* (*open)(const char*, const char* mode, void*, Transfer read, Transfer write,
                  Offset (*seek)(void*, Offset, int), int (*close)(void*), Offset (*size)(void*),
                  int (*map)(void*, void**, Offset*), void (*unmap)(void*, void*, Offset),
                  Options*) = nullptr;
  void (*close)(Handle*) = nullptr;
  int (*field)(Handle*, std::uint32_t tag, ...) = nullptr;
  int (*read)(Handle*, std::uint32_t width, std::uint32_t height, std::uint32_t*, int orientation,
              int stops_at_errors) = nullptr;

  Tiff() {
    find(library, "TIFFOpenOptionsAlloc", options);
    find(library, "TIFFOpenOptionsFree", free_options);
    find(library, "TIFFOpenOptionsSetMaxSingleMemAlloc", set_most_bytes);
    find(library, "TIFFOpenOptionsSetErrorHandlerExtR", set_errors);
    find(library, "TIFFOpenOptionsSetWarningHandlerExtR", set_warnings);
    find(library, "TIFFClientOpenExt", open);
    find(library, "TIFFClose", close);
    find(library, "TIFFGetField", field);
    find(library, "TIFFReadRGBAImageOriented", read);
    if (!options || !free_options || !set_most_bytes || !set_errors || !set_warnings || !open ||
        !close || !field || !read)
      missing("TIFF", name);
  }
};

const Tiff& tiff() {
  static const Tiff library;
  return library;
}

struct TiffSource {
  Bytes bytes;
  Offset at = 0;
};

TiffSource& tiff_source(void* s) { return *static_cast<TiffSource*>(s); }

Size read_bytes(void* s, void* to, Size count) {
  TiffSource& from = tiff_source(s);
  const Offset left = from.bytes.size() - std::min<Offset>(from.at, from.bytes.size());
  const auto n = static_cast<std::size_t>(
      std::min<Offset>(static_cast<Offset>(std::max<Size>(count, 0)), left));
  if (n > 0) std::memcpy(to, from.bytes.data() + from.at, n);
  from.at += n;
  return static_cast<Size>(n);
}

Offset seek(void* s, Offset to, int whence) {
  TiffSource& from = tiff_source(s);
  if (whence == SEEK_CUR) to += from.at;
  if (whence == SEEK_END) to += from.bytes.size();
  return from.at = to;
}

// One file while it is open.
class TiffFile {
 public:
  explicit TiffFile(Bytes bytes) : source_{bytes} {
    // A pixel takes four bytes, and images of more than 64 Mi bytes are not decoded.
    constexpr Size most_bytes = Size{1} << 28;
    const Report is_handled = [](Handle*, void*, const char*, const char*, va_list) { return 1; };
    Options* options = tiff().options();
    if (!options) return;
    tiff().set_most_bytes(options, most_bytes);
    tiff().set_errors(options, is_handled, nullptr);
    tiff().set_warnings(options, is_handled, nullptr);
    file_ = tiff().open(
        "image", "rm", &source_, read_bytes, [](void*, void*, Size) { return Size{0}; }, seek,
        [](void*) { return 0; }, [](void* s) -> Offset { return tiff_source(s).bytes.size(); },
        [](void*, void**, Offset*) { return 0; }, [](void*, void*, Offset) {}, options);
    tiff().free_options(options);
  }
  ~TiffFile() {
    if (file_) tiff().close(file_);
  }
  TiffFile(const TiffFile&) = delete;

  bool size(std::uint32_t& height, std::uint32_t& width) const {
    constexpr std::uint32_t width_tag = 256, height_tag = 257;
    return file_ && tiff().field(file_, width_tag, &width) == 1 &&
           tiff().field(file_, height_tag, &height) == 1;
  }
  bool read(std::uint32_t height, std::uint32_t width, std::uint32_t* pixels) const {
    constexpr int from_top_left = 1;
    return tiff().read(file_, width, height, pixels, from_top_left, 1) == 1;
  }

 private:
  TiffSource source_;
  Handle* file_ = nullptr;
};

}  // namespace

bool tiff_size(Bytes file, std::int64_t& height, std::int64_t& width) {
  std::uint32_t h = 0, w = 0;
  const bool good = TiffFile(file).size(h, w);
  height = h;
  width = w;
  return good;
}

bool decode_tiff(Bytes file, std::span<std::byte> rgb) {
  const TiffFile image(file);
  std::uint32_t height = 0, width = 0;
  const bool good = image.size(height, width);
  if (!good || std::uint64_t{height} * width * 3 != rgb.size()) return false;
  std::vector<std::uint32_t> pixels(rgb.size() / 3);
  if (!image.read(height, width, pixels.data())) return false;
  for (std::size_t i = 0; i < pixels.size(); ++i)
    for (std::size_t k = 0; k < 3; ++k)
      rgb[3 * i + k] = static_cast<std::byte>(pixels[i] >> (8 * k) & 0xff);
  return true;
}

}  // namespace hone
