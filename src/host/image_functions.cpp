// The host function that decodes image files.
#include "host/function.h"
#include "host/image.h"

namespace hone {

namespace {

// The file; pixels and their height, width and channels.
bool decoder_fits(const HostCall& c) {
  const std::int64_t kind = c.setting("kind");
  return c.at(0).dims.size() == 1 && c.at(1).dims.size() == 1 && kind >= 0 && kind <= 2 &&
         c.at(2).dims == std::vector<std::int64_t>{3};
}

void decode(const HostCall& c) {
  const ImageSize size =
      decode_image(c.at(0).as<const std::byte>(), static_cast<PixelFormat>(c.setting("kind")),
                   c.at(1).as<std::byte>());
  const auto dims = c.at(2).as<std::int64_t>();
  dims[0] = size.height;
  dims[1] = size.width;
  dims[2] = size.channels;
}

}  // namespace

std::span<const HostFunction> image_functions() {
  static const HostFunction all[] = {
      {"decode_image", {DType::u8, DType::u8, DType::i64}, decoder_fits, decode}};
  return all;
}

}  // namespace hone
