#include "host/image_libraries.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "host/image_library.h"

#if __has_include(<jpeglib.h>)
#include <jpeglib.h>
#define HONE_HAS_JPEG 1
#endif
#if __has_include(<png.h>)
#include <png.h>
#define HONE_HAS_PNG 1
#endif

namespace hone {

namespace {

using Bytes = std::span<const std::byte>;

const unsigned char* data_of(Bytes b) { return reinterpret_cast<const unsigned char*>(b.data()); }

// ==== JPEG

#ifdef HONE_HAS_JPEG
struct Jpeg {
  void* library = open_library("libjpeg.so.62");
  decltype(&jpeg_std_error) std_error;
  decltype(&jpeg_CreateDecompress) create;
  decltype(&jpeg_mem_src) mem_src;
  decltype(&jpeg_read_header) read_header;
  decltype(&jpeg_start_decompress) start;
  decltype(&jpeg_read_scanlines) read_scanlines;
  decltype(&jpeg_destroy_decompress) destroy;

  Jpeg() {
    find(library, "jpeg_std_error", std_error);
    find(library, "jpeg_CreateDecompress", create);
    find(library, "jpeg_mem_src", mem_src);
    find(library, "jpeg_read_header", read_header);
    find(library, "jpeg_start_decompress", start);
    find(library, "jpeg_read_scanlines", read_scanlines);
    find(library, "jpeg_destroy_decompress", destroy);
    if (!std_error || !create || !mem_src || !read_header || !start || !read_scanlines || !destroy)
      missing("JPEG", "libjpeg.so.62");
  }
};

const Jpeg& jpeg() {
  static const Jpeg library;
  return library;
}

// The library reports errors by a function that must not return.
struct JpegErrors {
  jpeg_error_mgr manager;
  std::jmp_buf back;
};

void leave(j_common_ptr info) { std::longjmp(reinterpret_cast<JpegErrors*>(info->err)->back, 1); }

// A file of many tiny scans takes time out of proportion to its size.
constexpr int most_scans = 100;

void check_progress(j_common_ptr info) {
  if (info->is_decompressor &&
      reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > most_scans)
    leave(info);
}

// Reads the header, and the pixels when there is room for them. Holds nothing with a destructor:
// errors jump out of it.
bool read_jpeg(Bytes file, std::byte* rgb, std::size_t room, std::int64_t* height,
               std::int64_t* width) {
  jpeg_decompress_struct info;
  JpegErrors errors;
  jpeg_progress_mgr progress;
  std::memset(&progress, 0, sizeof progress);
  info.err = jpeg().std_error(&errors.manager);
  errors.manager.error_exit = leave;
  errors.manager.emit_message = [](j_common_ptr, int) {};
  if (setjmp(errors.back)) {
    jpeg().destroy(&info);
    return false;
  }
  jpeg().create(&info, JPEG_LIB_VERSION, sizeof info);
  progress.progress_monitor = check_progress;
  info.progress = &progress;
  jpeg().mem_src(&info, data_of(file), static_cast<unsigned long>(file.size()));
  jpeg().read_header(&info, TRUE);
  *height = info.image_height;
  *width = info.image_width;
  if (rgb) {
    info.out_color_space = JCS_RGB;
    jpeg().start(&info);
    const std::size_t row = std::size_t{3} * info.output_width;
    if (info.output_components != 3 || row * info.output_height > room)
      leave(reinterpret_cast<j_common_ptr>(&info));
    while (info.output_scanline < info.output_height) {
      JSAMPROW at = reinterpret_cast<JSAMPROW>(rgb + row * info.output_scanline);
      if (jpeg().read_scanlines(&info, &at, 1) != 1) leave(reinterpret_cast<j_common_ptr>(&info));
    }
  }
  jpeg().destroy(&info);
  return true;
}
#endif

// ==== PNG

#ifdef HONE_HAS_PNG
struct Png {
  void* library = open_library("libpng16.so.16");
  decltype(&png_image_begin_read_from_memory) begin;
  decltype(&png_image_finish_read) finish;
  decltype(&png_image_free) free;

  Png() {
    find(library, "png_image_begin_read_from_memory", begin);
    find(library, "png_image_finish_read", finish);
    find(library, "png_image_free", free);
    if (!begin || !finish || !free) missing("PNG", "libpng16.so.16");
  }
};

const Png& png() {
  static const Png library;
  return library;
}
#endif

// ==== WebP: declared here, because only the library need be there

struct Webp {
  void* library = open_library("libwebp.so.7");
  int (*info)(const std::uint8_t*, std::size_t, int*, int*) = nullptr;
  std::uint8_t* (*decode)(const std::uint8_t*, std::size_t, std::uint8_t*, std::size_t,
                          int) = nullptr;

  Webp() {
    find(library, "WebPGetInfo", info);
    find(library, "WebPDecodeRGBInto", decode);
    if (!info || !decode) missing("WebP", "libwebp.so.7");
  }
};

const Webp& webp() {
  static const Webp library;
  return library;
}

}  // namespace

bool jpeg_size(Bytes file, std::int64_t& height, std::int64_t& width) {
#ifdef HONE_HAS_JPEG
  return read_jpeg(file, nullptr, 0, &height, &width);
#else
  missing("JPEG", "libjpeg's header when Hone is built");
#endif
}

bool decode_jpeg(Bytes file, std::span<std::byte> rgb) {
#ifdef HONE_HAS_JPEG
  std::int64_t height = 0, width = 0;
  return read_jpeg(file, rgb.data(), rgb.size(), &height, &width);
#else
  missing("JPEG", "libjpeg's header when Hone is built");
#endif
}

bool png_size(Bytes file, std::int64_t& height, std::int64_t& width) {
#ifdef HONE_HAS_PNG
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  const bool good = png().begin(&image, file.data(), file.size()) != 0;
  height = image.height;
  width = image.width;
  png().free(&image);
  return good;
#else
  missing("PNG", "libpng's header when Hone is built");
#endif
}

// What is transparent keeps its colour.
bool decode_png(Bytes file, std::span<std::byte> rgb) {
#ifdef HONE_HAS_PNG
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  if (!png().begin(&image, file.data(), file.size())) return false;
  image.format = PNG_FORMAT_RGBA;
  const std::size_t count = std::size_t{image.height} * image.width;
  std::vector<std::byte> all;
  if (count * 3 == rgb.size()) all.resize(count * 4);
  const bool good = !all.empty() && png().finish(&image, nullptr, all.data(), 0, nullptr) != 0;
  png().free(&image);
  for (std::size_t i = 0; good && i < count; ++i) std::memcpy(&rgb[3 * i], &all[4 * i], 3);
  return good;
#else
  missing("PNG", "libpng's header when Hone is built");
#endif
}

bool webp_size(Bytes file, std::int64_t& height, std::int64_t& width) {
  int w = 0, h = 0;
  const bool good = webp().info(data_of(file), file.size(), &w, &h) != 0;
  height = h;
  width = w;
  return good;
}

bool decode_webp(Bytes file, std::span<std::byte> rgb) {
  std::int64_t height = 0, width = 0;
  if (!webp_size(file, height, width) || static_cast<std::size_t>(height * width) * 3 != rgb.size())
    return false;
  return webp().decode(data_of(file), file.size(), reinterpret_cast<std::uint8_t*>(rgb.data()),
                       rgb.size(), static_cast<int>(width * 3)) != nullptr;
}

}  // namespace hone
