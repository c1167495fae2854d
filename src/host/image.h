// Images in their file formats, decoded to bytes. The bytes are untrusted: sizes are read and held
// against the room there is before a pixel is decoded. Knows no tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hone {

enum class PixelFormat : std::uint8_t { rgb, bgr, gray };

struct ImageSize {
  std::int64_t height = 0, width = 0, channels = 0;
};

// Pixels row by row, channels last, written to the front of `out`. PNM (P5, P6) and BMP without
// compression always; JPEG, PNG, WebP, TIFF and JPEG 2000 where libjpeg, libpng, libwebp, libtiff
// and openjpeg are found. Throws UserError naming the format when the image is damaged, of another
// format, or larger than `out`.
ImageSize decode_image(std::span<const std::byte> file, PixelFormat, std::span<std::byte> out);

}  // namespace hone
