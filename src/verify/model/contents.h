// The contents of one made-up input, as a rule that fills an array of any size.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ref/evaluate.h"
#include "type/array.h"
#include "type/type.h"

namespace hone {

// Integers to try if a function refuses random ones.
enum class Listed : std::uint8_t {
  no,
  counting,  // 0, 1, 2, ...: axes, each of which may occur once
  shape      // -1, 1, 1, ...: a target shape that any number of elements fits
};
constexpr std::int64_t listed_integer(Listed l, std::int64_t k) {
  return l == Listed::counting ? k : k == 0 ? -1 : 1;
}

struct Contents {
  enum class Kind : std::uint8_t {
    random,    // as Fill::random
    range,     // from low to high; of strings, such numbers as text
    listed,    // integers
    members,   // some integers or texts
    elements,  // each is given
    image      // the bytes of a small image file
  };
  Kind kind = Kind::random;
  double low = 0, high = 0;
  Listed listed = Listed::no;
  std::vector<std::int64_t> members = {};
  std::vector<double> elements = {};
  bool operator==(const Contents&) const = default;

  static Contents range(double low, double high) { return {Kind::range, low, high}; }
};

// The least bytes that an image needs.
std::int64_t image_bytes();

Array filled(const Type&, const Sizing&, const Contents&, std::uint64_t seed);
// "0 to 7"
std::string contents_text(const Contents&, DType);

}  // namespace hone
