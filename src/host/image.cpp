#include "host/image.h"

#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "host/image_libraries.h"

namespace hone {

namespace {

using Bytes = std::span<const std::byte>;

[[noreturn]] void damaged(std::string_view format) {
  throw UserError("image: the ", format, " data is damaged or truncated");
}

bool starts_with(Bytes file, std::string_view magic) {
  return file.size() >= magic.size() && std::memcmp(file.data(), magic.data(), magic.size()) == 0;
}

// The bytes that an image takes; refused when there is less room.
std::size_t bytes_of(std::string_view format, std::int64_t height, std::int64_t width,
                     std::int64_t channels, std::size_t room) {
  if (height < 1 || width < 1) damaged(format);
  const std::int64_t bytes = checked_mul(checked_mul(height, width), channels);
  if (static_cast<std::uint64_t>(bytes) > room)
    throw UserError("image: the ", format, " image is ", height, " x ", width, ", ", bytes,
                    " bytes, expected at most ", room);
  return static_cast<std::size_t>(bytes);
}

// Three bytes of red, green and blue become the format asked for.
class Pixels {
 public:
  Pixels(PixelFormat format, std::span<std::byte> out) : format_(format), out_(out) {}

  std::int64_t channels() const { return format_ == PixelFormat::gray ? 1 : 3; }
  void put(std::size_t pixel, std::uint32_t r, std::uint32_t g, std::uint32_t b) {
    if (format_ == PixelFormat::gray) {
      // ITU-R 601 in 16 bits, rounded.
      out_[pixel] = static_cast<std::byte>((r * 19595 + g * 38470 + b * 7471 + 0x8000) >> 16);
      return;
    }
    if (format_ == PixelFormat::bgr) std::swap(r, b);
    out_[3 * pixel] = static_cast<std::byte>(r);
    out_[3 * pixel + 1] = static_cast<std::byte>(g);
    out_[3 * pixel + 2] = static_cast<std::byte>(b);
  }

 private:
  PixelFormat format_;
  std::span<std::byte> out_;
};

std::uint32_t byte_at(Bytes file, std::size_t i) { return static_cast<std::uint32_t>(file[i]); }

// ==== PNM

// Numbers of the header, between spaces and comments.
class PnmHeader {
 public:
  explicit PnmHeader(Bytes file) : file_(file) {}

  std::int64_t number() {
    skip();
    std::int64_t n = 0;
    std::size_t digits = 0;
    for (; at_ < file_.size() && is_digit(); ++at_, ++digits) {
      n = n * 10 + (byte_at(file_, at_) - '0');
      if (digits > 9) damaged("PNM");
    }
    if (digits == 0) damaged("PNM");
    return n;
  }
  // One space ends the header.
  Bytes rest() const {
    if (at_ >= file_.size()) damaged("PNM");
    return file_.subspan(at_ + 1);
  }

 private:
  bool is_digit() const { return byte_at(file_, at_) >= '0' && byte_at(file_, at_) <= '9'; }
  void skip() {
    for (; at_ < file_.size(); ++at_) {
      if (byte_at(file_, at_) == '#')
        while (at_ < file_.size() && byte_at(file_, at_) != '\n') ++at_;
      else if (byte_at(file_, at_) > ' ')
        return;
    }
  }

  Bytes file_;
  std::size_t at_ = 2;
};

ImageSize decode_pnm(Bytes file, PixelFormat format, std::span<std::byte> out) {
  Pixels pixels(format, out);
  PnmHeader header(file);
  const std::int64_t width = header.number(), height = header.number(), most = header.number();
  if (most != 255)
    throw UserError("image: the greatest value of a PNM is ", most, ", expected 255");
  bytes_of("PNM", height, width, pixels.channels(), out.size());
  const std::size_t each = starts_with(file, "P6") ? 3 : 1;
  const auto count = static_cast<std::size_t>(height * width);
  const Bytes data = header.rest();
  if (data.size() < count * each) damaged("PNM");
  for (std::size_t i = 0; i < count; ++i)
    pixels.put(i, byte_at(data, i * each), byte_at(data, i * each + each / 2),
               byte_at(data, i * each + each - 1));
  return {height, width, pixels.channels()};
}

// ==== BMP

std::int64_t little(Bytes file, std::size_t at, int bytes) {
  if (at + static_cast<std::size_t>(bytes) > file.size()) damaged("BMP");
  std::uint64_t n = 0;
  for (int i = bytes; i-- > 0;) n = n << 8 | byte_at(file, at + static_cast<std::size_t>(i));
  if (bytes == 4) return static_cast<std::int32_t>(n);
  return static_cast<std::int64_t>(n);
}

// Rows are padded to four bytes; the lowest comes first unless the height is negative.
ImageSize decode_bmp(Bytes file, PixelFormat format, std::span<std::byte> out) {
  Pixels pixels(format, out);
  const std::int64_t start = little(file, 10, 4), header = little(file, 14, 4),
                     width = little(file, 18, 4), stored = little(file, 22, 4),
                     bits = little(file, 28, 2), packed = little(file, 30, 4);
  const std::int64_t height = stored < 0 ? -stored : stored;
  if (packed != 0 || header < 40 || (bits != 8 && bits != 24 && bits != 32))
    throw UserError("image: BMP of ", bits, " bits with compression ", packed,
                    ", expected 8, 24 or 32 bits without compression");
  bytes_of("BMP", height, width, pixels.channels(), out.size());
  const std::int64_t row_bytes = (width * bits + 31) / 32 * 4;
  const std::int64_t end = checked_add(start, checked_mul(row_bytes, height));
  if (start < 0 || end > static_cast<std::int64_t>(file.size())) damaged("BMP");
  const auto palette = static_cast<std::size_t>(14 + header);
  for (std::int64_t y = 0; y < height; ++y) {
    const std::int64_t row = start + (stored < 0 ? y : height - 1 - y) * row_bytes;
    for (std::int64_t x = 0; x < width; ++x) {
      auto at = static_cast<std::size_t>(row + x * bits / 8);
      if (bits == 8) at = palette + 4 * byte_at(file, at);
      if (at + 3 > file.size()) damaged("BMP");
      pixels.put(static_cast<std::size_t>(y * width + x), byte_at(file, at + 2),
                 byte_at(file, at + 1), byte_at(file, at));
    }
  }
  return {height, width, pixels.channels()};
}

// ==== by libraries

using DecodeRgb = bool (*)(Bytes, std::span<std::byte> rgb);
using ReadSize = bool (*)(Bytes, std::int64_t& height, std::int64_t& width);

ImageSize decode_by_library(std::string_view name, ReadSize size, DecodeRgb decode, Bytes file,
                            PixelFormat format, std::span<std::byte> out) {
  Pixels pixels(format, out);
  std::int64_t height = 0, width = 0;
  if (!size(file, height, width)) damaged(name);
  bytes_of(name, height, width, pixels.channels(), out.size());
  const auto count = static_cast<std::size_t>(height * width);
  if (format == PixelFormat::rgb) {
    if (!decode(file, out.first(count * 3))) damaged(name);
    return {height, width, 3};
  }
  std::vector<std::byte> rgb(count * 3);
  if (!decode(file, rgb)) damaged(name);
  for (std::size_t i = 0; i < count; ++i)
    pixels.put(i, byte_at(rgb, 3 * i), byte_at(rgb, 3 * i + 1), byte_at(rgb, 3 * i + 2));
  return {height, width, pixels.channels()};
}

}  // namespace

ImageSize decode_image(std::span<const std::byte> file, PixelFormat format,
                       std::span<std::byte> out) {
  if (starts_with(file, "P5") || starts_with(file, "P6")) return decode_pnm(file, format, out);
  if (starts_with(file, "BM")) return decode_bmp(file, format, out);
  if (starts_with(file, "\xff\xd8"))
    return decode_by_library("JPEG", jpeg_size, decode_jpeg, file, format, out);
  if (starts_with(file, "\x89PNG"))
    return decode_by_library("PNG", png_size, decode_png, file, format, out);
  if (starts_with(file, "RIFF") && file.size() > 12 && std::memcmp(file.data() + 8, "WEBP", 4) == 0)
    return decode_by_library("WebP", webp_size, decode_webp, file, format, out);
  if (starts_with(file, {"II*\0", 4}) || starts_with(file, {"MM\0*", 4}))
    return decode_by_library("TIFF", tiff_size, decode_tiff, file, format, out);
  if (starts_with(file, {"\0\0\0\x0cjP  \r\n", 10}) || starts_with(file, "\xff\x4f\xff\x51"))
    return decode_by_library("JPEG 2000", jpeg2000_size, decode_jpeg2000, file, format, out);
  throw UserError(
      "image: the format is unknown, expected JPEG, PNG, WebP, TIFF, JPEG 2000, BMP or PNM (P5, "
      "P6)");
}

}  // namespace hone
