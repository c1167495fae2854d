#include "ops/host.h"

#include "ops/check.h"

namespace hone {

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
      if (c.type(0).dtype != DType::u8)
        throw UserError("decode_image: operand 0 is ", c.type(0), ", expected u8[n]");
      word_attr(c, "kind", {"rgb", "bgr", "gray"});
      return {Type(DType::u8, Shape{integer_attr(c, "count", 1)}), i64(Shape{3})};
    },
};

std::span<const Op* const> host_ops() {
  static constexpr const Op* list[] = {&ops::decode_image};
  return list;
}

}  // namespace hone
