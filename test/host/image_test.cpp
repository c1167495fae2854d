// Images as bytes: decoded images, and images refused before a pixel is read.
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

// Lossless, with the name of the program that wrote it in a comment.
const Bytes jp2 = {
    0x00, 0x00, 0x00, 0x0c, 0x6a, 0x50, 0x20, 0x20, 0x0d, 0x0a, 0x87, 0x0a, 0x00, 0x00, 0x00, 0x14,
    0x66, 0x74, 0x79, 0x70, 0x6a, 0x70, 0x32, 0x20, 0x00, 0x00, 0x00, 0x00, 0x6a, 0x70, 0x32, 0x20,
    0x00, 0x00, 0x00, 0x2d, 0x6a, 0x70, 0x32, 0x68, 0x00, 0x00, 0x00, 0x16, 0x69, 0x68, 0x64, 0x72,
    0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x03, 0x00, 0x03, 0x07, 0x07, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x0f, 0x63, 0x6f, 0x6c, 0x72, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00,
    0xa4, 0x6a, 0x70, 0x32, 0x63, 0xff, 0x4f, 0xff, 0x51, 0x00, 0x2f, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x03, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x03, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x07,
    0x01, 0x01, 0x07, 0x01, 0x01, 0x07, 0x01, 0x01, 0xff, 0x52, 0x00, 0x0c, 0x00, 0x00, 0x00, 0x01,
    0x01, 0x00, 0x04, 0x04, 0x00, 0x01, 0xff, 0x5c, 0x00, 0x04, 0x40, 0x40, 0xff, 0x64, 0x00, 0x25,
    0x00, 0x01, 0x43, 0x72, 0x65, 0x61, 0x74, 0x65, 0x64, 0x20, 0x62, 0x79, 0x20, 0x4f, 0x70, 0x65,
    0x6e, 0x4a, 0x50, 0x45, 0x47, 0x20, 0x76, 0x65, 0x72, 0x73, 0x69, 0x6f, 0x6e, 0x20, 0x32, 0x2e,
    0x35, 0x2e, 0x30, 0xff, 0x90, 0x00, 0x0a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x2c, 0x00, 0x01, 0xff,
    0x93, 0xcf, 0xb4, 0x1c, 0x08, 0xd8, 0xa3, 0x7b, 0xe5, 0x83, 0xa7, 0xdf, 0x80, 0x38, 0x0e, 0x19,
    0x8c, 0x89, 0x40, 0x59, 0x5f, 0xdf, 0x80, 0x38, 0x02, 0xf4, 0x85, 0x8f, 0x3e, 0xb5, 0x37, 0xff,
    0xd9};

// libopenjp2 also reads this: the image without the boxes around it.
Bytes codestream() { return Bytes(jp2.begin() + 85, jp2.end()); }

// One directory of ten entries, followed by the pixels.
Bytes tiff(std::uint32_t width = 3, std::uint32_t height = 2) {
  constexpr std::uint32_t entries[][3] = {{256, 4, 0},  {257, 4, 0}, {258, 3, 8}, {259, 3, 1},
                                          {262, 3, 2},  {273, 4, 0}, {277, 3, 3}, {278, 4, 2},
                                          {279, 4, 18}, {284, 3, 1}};
  Bytes file = text(std::string("II*\0\x08\0\0\0\x0a\0", 10));
  const std::size_t bits = 10 + 12 * 10 + 4, start = bits + 6;
  file.resize(start);
  for (std::size_t i = 0; i < 10; ++i) {
    const std::size_t at = 10 + 12 * i;
    put(file, at, entries[i][0], 2), put(file, at + 2, entries[i][1], 2), put(file, at + 4, 1);
    put(file, at + 8, entries[i][2]);
  }
  put(file, 10 + 8, width), put(file, 22 + 8, height);
  put(file, 34 + 4, 3), put(file, 34 + 8, static_cast<std::uint32_t>(bits));
  put(file, 70 + 8, static_cast<std::uint32_t>(start));
  for (std::size_t k = 0; k < 3; ++k) put(file, bits + 2 * k, 8, 2);
  file.insert(file.end(), pixels.begin(), pixels.end());
  return file;
}

TEST(Image, IsReadInEveryFormat) {
  for (const Bytes& file : {ppm(), bmp(), bmp(-2), png, tiff(), jp2, codestream()}) {
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
  EXPECT_NE(refusal(tiff(1000, 1000)).find("at most 1000"), std::string::npos);
  EXPECT_NE(refusal(tiff(1 << 30, 1 << 30)), "decoded");
  Bytes wide = jp2;
  wide[53] = 0x40, wide[93] = 0x40, wide[109] = 0x40;
  EXPECT_NE(refusal(wide), "decoded");
  Bytes bomb = png;
  bomb[18] = 0xff, bomb[19] = 0xff, bomb[22] = 0xff, bomb[23] = 0xff;
  EXPECT_NE(refusal(bomb), "decoded");
}

TEST(Image, DamagedOnesAreRefused) {
  for (const Bytes& whole : {ppm(), bmp(), png, tiff(), jp2})
    for (std::size_t n = 0; n < whole.size(); ++n) {
      // The end of a PNG and of its last pixel chunk may be missing.
      if (whole == png && n + 24 >= whole.size()) continue;
      if (whole == jp2 && n + 2 >= whole.size()) continue;
      EXPECT_NE(refusal(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n))),
                "decoded")
          << n << " of " << whole.size();
    }
  for (const char* no_image : {"", "P6", "P6 3", "P6 -1 2 255 ", "P6 0 0 255 ", "GIF89a", "BM",
                               "\xff\xd8\xff\xe0", "RIFFxxxxWEBP", "P7 1 1 255 aaa"})
    EXPECT_NE(refusal(text(no_image)), "decoded") << no_image;
}

// Changes every byte once: the image is decoded or refused, never written out of bounds.
TEST(Image, ChangedBytesDoNoHarm) {
  for (const Bytes& whole : {ppm(), bmp(), png, tiff(), jp2})
    for (std::size_t i = 0; i < whole.size(); ++i)
      for (std::uint8_t change : {0x01, 0x80, 0xff}) {
        Bytes file = whole;
        file[i] ^= change;
        refusal(file, 18);
      }
}

}  // namespace
}  // namespace hone
