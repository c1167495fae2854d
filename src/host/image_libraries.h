// libjpeg, libpng, libwebp, libtiff and openjpeg, opened at the first image of their format. Each
// function throws UserError when its library is missing, and returns false for damaged data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hone {

bool jpeg_size(std::span<const std::byte>, std::int64_t& height, std::int64_t& width);
bool png_size(std::span<const std::byte>, std::int64_t& height, std::int64_t& width);
bool webp_size(std::span<const std::byte>, std::int64_t& height, std::int64_t& width);
bool tiff_size(std::span<const std::byte>, std::int64_t& height, std::int64_t& width);
bool jpeg2000_size(std::span<const std::byte>, std::int64_t& height, std::int64_t& width);
// `rgb` holds three bytes for each pixel of that size.
bool decode_jpeg(std::span<const std::byte>, std::span<std::byte> rgb);
bool decode_png(std::span<const std::byte>, std::span<std::byte> rgb);
bool decode_webp(std::span<const std::byte>, std::span<std::byte> rgb);
bool decode_tiff(std::span<const std::byte>, std::span<std::byte> rgb);
bool decode_jpeg2000(std::span<const std::byte>, std::span<std::byte> rgb);

}  // namespace hone
