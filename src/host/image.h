// Decodes image files. The files are untrusted: sizes are checked against the available space
// before any pixel is decoded. Does not know tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hone {

enum class PixelFormat : std::uint8_t { rgb, bgr, gray };

struct ImageSize {
  std::int64_t height = 0, width = 0, channels = 0;
};

// Writes pixels row by row, channels last, to the start of `out`. Always supports PNM (P5, P6) and
// uncompressed BMP; JPEG, PNG, WebP, TIFF and JPEG 2000 if libjpeg, libpng, libwebp, libtiff and
// openjpeg are found. Throws UserError naming the format when the image is damaged, of another
// format, or larger than `out`.
ImageSize decode_image(std::span<const std::byte> file, PixelFormat, std::span<std::byte> out);

}  // namespace hone
