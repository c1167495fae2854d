// JPEG 2000 by openjpeg: gray and RGB of at most 8 bits, every channel of full size.
#include <algorithm>
#include <cstring>

#include "host/image_libraries.h"
#include "host/image_library.h"

#if __has_include(<openjpeg-2.5/openjpeg.h>)
#include <openjpeg-2.5/openjpeg.h>
#define HONE_HAS_JPEG2000 1
#endif

namespace hone {

namespace {

using Bytes = std::span<const std::byte>;

#ifdef HONE_HAS_JPEG2000
struct Jpeg2000 {
  static constexpr const char* name = "libopenjp2.so.7";
  void* library = open_library(name);
  decltype(&opj_create_decompress) create;
  decltype(&opj_destroy_codec) destroy;
  decltype(&opj_set_default_decoder_parameters) set_defaults;
  decltype(&opj_setup_decoder) setup;
  decltype(&opj_stream_create) stream;
  decltype(&opj_stream_destroy) destroy_stream;
  decltype(&opj_stream_set_read_function) set_read;
  decltype(&opj_stream_set_skip_function) set_skip;
  decltype(&opj_stream_set_seek_function) set_seek;
  decltype(&opj_stream_set_user_data) set_data;
  decltype(&opj_stream_set_user_data_length) set_length;
  decltype(&opj_read_header) read_header;
  decltype(&opj_decode) decode;
  decltype(&opj_image_destroy) destroy_image;

  Jpeg2000() {
    find(library, "opj_create_decompress", create);
    find(library, "opj_destroy_codec", destroy);
    find(library, "opj_set_default_decoder_parameters", set_defaults);
    find(library, "opj_setup_decoder", setup);
    find(library, "opj_stream_create", stream);
    find(library, "opj_stream_destroy", destroy_stream);
    find(library, "opj_stream_set_read_function", set_read);
    find(library, "opj_stream_set_skip_function", set_skip);
    find(library, "opj_stream_set_seek_function", set_seek);
    find(library, "opj_stream_set_user_data", set_data);
    find(library, "opj_stream_set_user_data_length", set_length);
    find(library, "opj_read_header", read_header);
    find(library, "opj_decode", decode);
    find(library, "opj_image_destroy", destroy_image);
    if (!create || !destroy || !set_defaults || !setup || !stream || !destroy_stream || !set_read ||
        !set_skip || !set_seek || !set_data || !set_length || !read_header || !decode ||
        !destroy_image)
      missing("JPEG 2000", name);
  }
};

const Jpeg2000& library() {
  static const Jpeg2000 it;
  return it;
}

struct Source {
  Bytes bytes;
  std::size_t at = 0;
};

Source& source(void* s) { return *static_cast<Source*>(s); }

OPJ_SIZE_T read_bytes(void* to, OPJ_SIZE_T count, void* s) {
  Source& from = source(s);
  const std::size_t n = std::min<std::size_t>(count, from.bytes.size() - from.at);
  if (n == 0) return static_cast<OPJ_SIZE_T>(-1);
  std::memcpy(to, from.bytes.data() + from.at, n);
  from.at += n;
  return n;
}

OPJ_BOOL seek(OPJ_OFF_T to, void* s) {
  if (to < 0 || static_cast<std::size_t>(to) > source(s).bytes.size()) return OPJ_FALSE;
  source(s).at = static_cast<std::size_t>(to);
  return OPJ_TRUE;
}

OPJ_OFF_T skip(OPJ_OFF_T count, void* s) {
  const auto from = static_cast<OPJ_OFF_T>(source(s).at);
  const auto most = static_cast<OPJ_OFF_T>(source(s).bytes.size());
  const OPJ_OFF_T to = std::clamp<OPJ_OFF_T>(count, -from, most - from) + from;
  source(s).at = static_cast<std::size_t>(to);
  return to == from && count != 0 ? -1 : to - from;
}

// One image while it is read.
class Image {
 public:
  explicit Image(Bytes bytes) : source_{bytes} {
    const bool is_codestream = !bytes.empty() && bytes[0] == std::byte{0xff};
    codec_ = library().create(is_codestream ? OPJ_CODEC_J2K : OPJ_CODEC_JP2);
    stream_ = library().stream(64 << 10, OPJ_TRUE);
    if (!codec_ || !stream_) return;
    library().set_read(stream_, read_bytes);
    library().set_skip(stream_, skip);
    library().set_seek(stream_, seek);
    library().set_data(stream_, &source_, nullptr);
    library().set_length(stream_, bytes.size());
    opj_dparameters_t parameters;
    library().set_defaults(&parameters);
    if (!library().setup(codec_, &parameters) || !library().read_header(stream_, codec_, &image_))
      clear();
  }
  ~Image() {
    clear();
    if (stream_) library().destroy_stream(stream_);
    if (codec_) library().destroy(codec_);
  }
  Image(const Image&) = delete;

  std::int64_t height() const { return image_ ? std::int64_t{image_->y1} - image_->y0 : 0; }
  std::int64_t width() const { return image_ ? std::int64_t{image_->x1} - image_->x0 : 0; }

  // Throws UserError unless the image is plain gray or RGB.
  void check_kind() const {
    bool is_plain = image_->numcomps == 1 || image_->numcomps == 3 || image_->numcomps == 4;
    for (OPJ_UINT32 c = 0; c < image_->numcomps; ++c) {
      const opj_image_comp_t& part = image_->comps[c];
      is_plain = is_plain && part.dx == 1 && part.dy == 1 && part.prec >= 1 && part.prec <= 8 &&
                 !part.sgnd;
    }
    const bool is_known = image_->color_space != OPJ_CLRSPC_SYCC &&
                          image_->color_space != OPJ_CLRSPC_EYCC &&
                          image_->color_space != OPJ_CLRSPC_CMYK;
    if (!is_plain || !is_known)
      throw UserError("image: JPEG 2000 with ", image_->numcomps, " channels in color space ",
                      static_cast<int>(image_->color_space),
                      ", expected gray or RGB of at most 8 bits with all channels of full size");
  }

  bool decode(std::span<std::byte> rgb) {
    if (!image_ || static_cast<std::uint64_t>(height() * width()) * 3 != rgb.size()) return false;
    check_kind();
    if (!library().decode(codec_, stream_, image_)) return false;
    check_kind();  // a palette makes other channels
    const std::size_t count = rgb.size() / 3;
    for (OPJ_UINT32 k = 0; k < 3; ++k) {
      const opj_image_comp_t& part = image_->comps[image_->numcomps == 1 ? 0 : k];
      if (!part.data || std::size_t{part.w} * part.h != count) return false;
      const int most = (1 << part.prec) - 1;
      for (std::size_t i = 0; i < count; ++i)
        rgb[3 * i + k] =
            static_cast<std::byte>((std::clamp(part.data[i], 0, most) * 255 + most / 2) / most);
    }
    return true;
  }

 private:
  void clear() {
    if (image_) library().destroy_image(image_);
    image_ = nullptr;
  }

  Source source_;
  opj_codec_t* codec_ = nullptr;
  opj_stream_t* stream_ = nullptr;
  opj_image_t* image_ = nullptr;
};
#endif

}  // namespace

bool jpeg2000_size(Bytes file, std::int64_t& height, std::int64_t& width) {
#ifdef HONE_HAS_JPEG2000
  const Image image(file);
  height = image.height();
  width = image.width();
  return height > 0 && width > 0;
#else
  missing("JPEG 2000", "openjpeg's header when Hone is built");
#endif
}

bool decode_jpeg2000(Bytes file, std::span<std::byte> rgb) {
#ifdef HONE_HAS_JPEG2000
  return Image(file).decode(rgb);
#else
  missing("JPEG 2000", "openjpeg's header when Hone is built");
#endif
}

}  // namespace hone
