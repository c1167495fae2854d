#include "verify/model/contents.h"

#include <algorithm>

#include "base/error.h"
#include "type/text.h"
#include "verify/sample.h"

namespace hone {

namespace {

// Two pixels by two, in a format without compression. Bytes behind it are ignored.
constexpr std::string_view small_image = "P6 2 2 255\n\x10\x80\xf0 @`\xff\x01\x7f\x33\xcc\x99";

// `random` is the element that Fill::random gives.
std::int64_t element_of(const Contents& c, DType t, std::int64_t random, std::int64_t k) {
  const auto at = static_cast<std::size_t>(k);
  switch (c.kind) {
    case Contents::Kind::members:
      return c.members[at % c.members.size()];
    case Contents::Kind::listed:
      return listed_integer(c.listed, k);
    case Contents::Kind::elements:
      return static_cast<std::int64_t>(c.elements[at]);
    case Contents::Kind::image:
      return at < small_image.size() ? static_cast<std::uint8_t>(small_image[at]) : 0;
    case Contents::Kind::range:
      break;
    case Contents::Kind::random:
      return random;
  }
  const auto low = static_cast<std::int64_t>(c.low), high = static_cast<std::int64_t>(c.high);
  if (t == DType::b1) return low == high ? low : random;
  if (t == DType::text)
    return static_cast<std::int64_t>(text_number(cat(low + k % (high - low + 1))));
  return low + random % (high - low + 1);
}

double element_of(const Contents& c, double random, std::int64_t k) {
  if (c.kind == Contents::Kind::elements) return c.elements[static_cast<std::size_t>(k)];
  return c.kind == Contents::Kind::range ? c.low + (c.high - c.low) * (random + 1) / 2 : random;
}

}  // namespace

std::int64_t image_bytes() { return std::ssize(small_image); }

Array filled(const Type& type, const Sizing& sizes, const Contents& c, std::uint64_t seed) {
  Array a = sample_array(type, sizes, Fill::random, seed);
  if (c.kind == Contents::Kind::random) return a;
  for (std::int64_t k = 0; k < a.count(); ++k) {
    if (is_float(type.dtype))
      a.set_real(k, element_of(c, a.real(k), k));
    else
      a.set_integer(k, element_of(c, type.dtype, a.integer(k), k));
  }
  return a;
}

std::string contents_text(const Contents& c, DType t) {
  std::string elements;
  for (const double x : c.elements) elements += cat(elements.empty() ? "" : ", ", x);
  switch (c.kind) {
    case Contents::Kind::members:
      return cat("the ", c.members.size(), " values that the model compares it with");
    case Contents::Kind::listed:
      return c.listed == Listed::shape ? "-1, then 1" : "0, 1, 2, ...";
    case Contents::Kind::elements:
      return elements;
    case Contents::Kind::image:
      return "an image of 2 x 2 pixels";
    case Contents::Kind::range:
      if (t == DType::b1 && c.low != c.high) break;
      if (t == DType::b1) return c.low == 0 ? "false" : "true";
      return cat(t == DType::text ? "numbers as strings, " : "", c.low,
                 c.low == c.high ? "" : cat(" to ", c.high));
    case Contents::Kind::random:
      break;
  }
  return is_float(t)        ? "-1 to 1"
         : t == DType::b1   ? "false and true"
         : t == DType::text ? "short strings"
                            : "0 to 7";
}

}  // namespace hone
