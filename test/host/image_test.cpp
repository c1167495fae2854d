// Images as bytes: what is decoded, and what is refused before a pixel is read.
#include "host/image.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"

namespace hone {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::span<const std::byte> bytes_of(const Bytes& b) { return std::as_bytes(std::span(b)); }
Bytes text(const std::string& s) { return Bytes(s.begin(), s.end()); }

Bytes decoded(const Bytes& file, PixelFormat format, ImageSize& size) {
  Bytes out(1000);
  size = decode_image(bytes_of(file), format, std::as_writable_bytes(std::span(out)));
  out.resize(static_cast<std::size_t>(size.height * size.width * size.channels));
  return out;
}

std::string refusal(const Bytes& file, std::size_t room = 1000) {
  Bytes out(room);
  try {
    decode_image(bytes_of(file), PixelFormat::rgb, std::as_writable_bytes(std::span(out)));
  } catch (const UserError& e) {
    return e.what();
  }
  return "decoded";
}

// Two rows of three pixels, in every format.
const Bytes pixels = {255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30, 40, 50, 60, 70, 80, 90};

Bytes ppm() {
  Bytes file = text("P6 # made here\n3 2\n255\n");
  file.insert(file.end(), pixels.begin(), pixels.end());
  return file;
}

void put(Bytes& b, std::size_t at, std::uint32_t n, int bytes = 4) {
  for (int i = 0; i < bytes; ++i) b[at + static_cast<std::size_t>(i)] = (n >> (8 * i)) & 255;
}

// 24 bits, lowest row first, rows of 12 bytes.
Bytes bmp(std::int32_t height = 2, std::uint32_t width = 3) {
  Bytes file(54 + 24, 0);
  file[0] = 'B', file[1] = 'M';
  put(file, 10, 54), put(file, 14, 40), put(file, 18, width);
  put(file, 22, static_cast<std::uint32_t>(height)), put(file, 26, 1, 2), put(file, 28, 24, 2);
  for (std::size_t y = 0; y < 2; ++y)
    for (std::size_t x = 0; x < 3; ++x)
      for (std::size_t k = 0; k < 3; ++k)
        file[54 + (height > 0 ? 1 - y : y) * 12 + x * 3 + k] = pixels[(y * 3 + x) * 3 + 2 - k];
  return file;
}

const Bytes png = {
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52,
    0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x02, 0x08, 0x02, 0x00, 0x00, 0x00, 0x12, 0x16, 0xf1,
    0x4d, 0x00, 0x00, 0x00, 0x17, 0x49, 0x44, 0x41, 0x54, 0x78, 0xda, 0x63, 0xf8, 0xcf, 0xc0, 0xc0,
    0x00, 0xc1, 0x5c, 0x22, 0x72, 0x1a, 0x46, 0x36, 0x6e, 0x01, 0x51, 0x00, 0x33, 0x59, 0x04, 0xc0,
    0x5c, 0x9b, 0xe1, 0x8c, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};

TEST(Image, IsReadInEveryFormat) {
  for (const Bytes& file : {ppm(), bmp(), bmp(-2), png}) {
    ImageSize size;
    EXPECT_EQ(decoded(file, PixelFormat::rgb, size), pixels);
    EXPECT_EQ(size.height, 2);
    EXPECT_EQ(size.width, 3);
    const Bytes bgr = decoded(file, PixelFormat::bgr, size);
    EXPECT_EQ(bgr[2], 255);
    EXPECT_EQ(bgr[15], 90);
    const Bytes gray = decoded(file, PixelFormat::gray, size);
    EXPECT_EQ(size.channels, 1);
    EXPECT_EQ(gray, (Bytes{76, 150, 29, 18, 48, 78}));
  }
  ImageSize size;
  EXPECT_EQ(decoded(text("P5 2 1 255 ab"), PixelFormat::rgb, size), text("aaabbb"));
}

TEST(Image, LargerThanItsRoomIsRefused) {
  EXPECT_NE(refusal(ppm(), 17).find("at most 17"), std::string::npos);
  EXPECT_NE(refusal(bmp(1 << 30, 1 << 30)).find("at most 1000"), std::string::npos);
  EXPECT_NE(refusal(text("P6 999999999 999999999 255 x")).find("at most 1000"), std::string::npos);
  Bytes bomb = png;
  bomb[18] = 0xff, bomb[19] = 0xff, bomb[22] = 0xff, bomb[23] = 0xff;
  EXPECT_NE(refusal(bomb), "decoded");
}

TEST(Image, DamagedOnesAreRefused) {
  for (const Bytes& whole : {ppm(), bmp(), png})
    for (std::size_t n = 0; n < whole.size(); ++n) {
      // What ends a PNG and its last chunk of pixels may be missing.
      if (whole == png && n + 24 >= whole.size()) continue;
      EXPECT_NE(refusal(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n))),
                "decoded")
          << n << " of " << whole.size();
    }
  for (const char* no_image : {"", "P6", "P6 3", "P6 -1 2 255 ", "P6 0 0 255 ", "GIF89a", "BM",
                               "\xff\xd8\xff\xe0", "RIFFxxxxWEBP", "P7 1 1 255 aaa"})
    EXPECT_NE(refusal(text(no_image)), "decoded") << no_image;
}

// Every byte changed once: an answer or a refusal, never more than the room.
TEST(Image, ChangedBytesDoNoHarm) {
  for (const Bytes& whole : {ppm(), bmp(), png})
    for (std::size_t i = 0; i < whole.size(); ++i)
      for (std::uint8_t change : {0x01, 0x80, 0xff}) {
        Bytes file = whole;
        file[i] ^= change;
        refusal(file, 18);
      }
}

}  // namespace
}  // namespace hone
