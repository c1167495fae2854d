#include "ops/host.h"

#include <algorithm>

#include "ops/check.h"

namespace hone {

namespace {

const std::initializer_list<std::string_view> image_kinds = {"rgb", "bgr", "gray"},
                                              cases = {"lower", "upper"};

void expect_kind(const Call& c, std::size_t operand, DType t) {
  if (c.type(operand).dtype != t)
    throw UserError(c.op.name, ": operand ", operand, " is ", c.type(operand), ", expected ", t);
}

// Strings, and one string that says how to process them.
const Shape& texts_and_one(const Call& c) {
  expect_operands(c, 2);
  expect_kind(c, 0, DType::text);
  expect_kind(c, 1, DType::text);
  expect_rank(c, 1, 0);
  return c.shape(0);
}

}  // namespace

constinit const Op ops::decode_image = {
    .name = "decode_image",
    .doc =
        "The image whose file operand 0 (bytes) holds: u8[count], the pixels row by row with "
        "channels last and nothing behind them, and i64[3], height, width and channels. Attribute "
        "kind: rgb, bgr, gray. An image of more than count bytes, or a damaged one, is an error.",
    .kind = OpKind::control,
    .infer = [](const Call& c) -> std::vector<Type> {
      expect_operands(c, 1);
      expect_rank(c, 0, 1);
      expect_kind(c, 0, DType::u8);
      word_attr(c, "kind", image_kinds);
      return {Type(DType::u8, Shape{integer_attr(c, "count", 1)}), i64(Shape{3})};
    },
};

constinit const Op ops::text_literal = {
    .name = "text_literal",
    .doc =
        "Texts whose bytes stand one behind another in operand 0 (u8[n]), each up to its end in "
        "operand 1 (i64); the ends ascend.",
    .kind = OpKind::control,
    .infer = [](const Call& c) -> std::vector<Type> {
      expect_operands(c, 2);
      expect_rank(c, 0, 1);
      expect_kind(c, 0, DType::u8);
      expect_kind(c, 1, DType::i64);
      return {Type(DType::text, c.shape(1))};
    },
};

constinit const Op ops::text_concat = {
    .name = "text_concat",
    .doc = "The text of operand 0 with that of operand 1 behind it.",
    .kind = OpKind::control,
    .infer = [](const Call& c) -> std::vector<Type> {
      expect_operands(c, 2);
      expect_kind(c, 0, DType::text);
      expect_kind(c, 1, DType::text);
      return {Type(DType::text, equal_shapes(c, 0, 2))};
    },
};

constinit const Op ops::text_pieces = {
    .name = "text_pieces",
    .doc =
        "How many pieces (i64) each text has between delimiters (operand 1, one text; empty: runs "
        "of white space) when it is split at most count times (-1: at all).",
    .kind = OpKind::control,
    .infer = [](const Call& c) -> std::vector<Type> {
      const Shape& shape = texts_and_one(c);
      integer_attr(c, "count", -1);
      return {i64(shape)};
    },
};

constinit const Op ops::text_split = {
    .name = "text_split",
    .doc =
        "The pieces that text_pieces counts, along a new last axis of size dims, empty texts "
        "behind them. A text of more pieces is an error.",
    .kind = OpKind::control,
    .infer = [](const Call& c) -> std::vector<Type> {
      Shape shape = texts_and_one(c);
      integer_attr(c, "count", -1);
      shape.dims.push_back(sizes_attr(c, "dims", 1, 0)[0]);
      return {Type(DType::text, std::move(shape))};
    },
};

constinit const Op ops::text_match = {
    .name = "text_match",
    .doc = "Whether the regular expression in operand 1 (one text) matches each whole text.",
    .kind = OpKind::control,
    .infer = [](const Call& c) -> std::vector<Type> { return {b1(texts_and_one(c))}; },
};

constinit const Op ops::text_case = {
    .name = "text_case",
    .doc = "Each text with all letters in attribute kind: lower, upper.",
    .kind = OpKind::control,
    .infer = [](const Call& c) -> std::vector<Type> {
      expect_operands(c, 1);
      expect_kind(c, 0, DType::text);
      word_attr(c, "kind", cases);
      return {c.type(0)};
    },
};

constinit const Op ops::text_of_integer = {
    .name = "text_of_integer",
    .doc = "Each number (i64) in decimal digits.",
    .kind = OpKind::control,
    .infer = [](const Call& c) -> std::vector<Type> {
      expect_operands(c, 1);
      expect_kind(c, 0, DType::i64);
      return {Type(DType::text, c.shape(0))};
    },
};

constinit const Op ops::text_of_real = {
    .name = "text_of_real",
    .doc =
        "Each number (f64) with at most count significant digits, as few above 8 as tell it apart, "
        "plain or with an exponent, whichever is shorter, as C's %g; NaN, INF and -INF.",
    .kind = OpKind::control,
    .infer = [](const Call& c) -> std::vector<Type> {
      expect_operands(c, 1);
      expect_kind(c, 0, DType::f64);
      integer_attr(c, "count", 1);
      return {Type(DType::text, c.shape(0))};
    },
};

constinit const Op ops::integer_of_text = {
    .name = "integer_of_text",
    .doc = "The number (i64) that each text spells in decimal digits; another text is an error.",
    .kind = OpKind::control,
    .infer = [](const Call& c) -> std::vector<Type> {
      expect_operands(c, 1);
      expect_kind(c, 0, DType::text);
      return {i64(c.shape(0))};
    },
};

constinit const Op ops::real_of_text = {
    .name = "real_of_text",
    .doc =
        "The number (f64) that each text spells, plain or with an exponent, or as nan, inf or "
        "infinity in letters of either case; another text is an error.",
    .kind = OpKind::control,
    .infer = [](const Call& c) -> std::vector<Type> {
      expect_operands(c, 1);
      expect_kind(c, 0, DType::text);
      return {Type(DType::f64, c.shape(0))};
    },
};

std::span<const Op* const> host_ops() {
  static constexpr const Op* list[] = {
      &ops::decode_image, &ops::text_literal,    &ops::text_concat, &ops::text_pieces,
      &ops::text_split,   &ops::text_match,      &ops::text_case,   &ops::text_of_integer,
      &ops::text_of_real, &ops::integer_of_text, &ops::real_of_text};
  return list;
}

bool is_host_op(const Op& op) { return std::ranges::count(host_ops(), &op) > 0; }

std::vector<std::pair<std::string, std::int64_t>> host_settings(const Op& op, const Attrs& attrs) {
  const auto& kinds = &op == &ops::text_case ? cases : image_kinds;
  std::vector<std::pair<std::string, std::int64_t>> out;
  if (const Attr* count = attrs.find("count"))
    out.emplace_back("count", std::get<std::int64_t>(*count));
  if (const Attr* kind = attrs.find("kind"))
    out.emplace_back("kind",
                     std::ranges::find(kinds, std::get<std::string>(*kind)) - kinds.begin());
  return out;
}

}  // namespace hone
