// Operators of com.microsoft that ONNX Runtime does not run on a CPU, compared with the same
// computation written in another way. Those that it runs are in test/stored.
#include <cmath>

#include "one_node.h"

namespace hone {
namespace {

Array waves(std::vector<std::int64_t> dims) {
  Array a = Array::zeros(DType::f32, std::move(dims));
  for (std::int64_t i = 0; i < a.count(); ++i)
    a.set_real(i, std::sin(0.7 * static_cast<double>(i)));
  return a;
}

// Part `part` of [b, s, heads, parts, d] as [b, s, heads * d].
Array part_of(const Array& packed, std::int64_t part) {
  const auto& d = packed.dims();
  Array out = Array::zeros(DType::f32, {d[0], d[1], d[2] * d[4]});
  for (std::int64_t i = 0; i < out.count(); ++i) {
    const std::int64_t head = i / d[4];  // index over [b, s, heads]
    out.set_real(i, packed.real((head * d[3] + part) * d[4] + i % d[4]));
  }
  return out;
}

OneNode multi_head(const std::vector<Given>& given) {
  OneNode n("MultiHeadAttention", given);
  n.builder.model.add_opset_import()->set_domain("com.microsoft");
  n.builder.model.mutable_opset_import(1)->set_version(1);
  n.node->set_domain("com.microsoft");
  set_int(*n.node, "num_heads", 2);
  return n;
}

// The quantizer uses this domain if the opset lacks a type.
TEST(Contrib, QuantizesAsTheOperatorsOfOnnx) {
  const Array x = waves({2, 6}),
              scale = Array::of<float>(DType::f32, {}, std::vector<float>{0.001f});
  for (const DType t : {DType::u16, DType::i8}) {
    const Array zero = Array::scalar_int(3, t);
    OneNode known("QuantizeLinear", {{"x", x}, {"s", scale}, {"z", zero}});
    OneNode other("QuantizeLinear", {{"x", x}, {"s", scale}, {"z", zero}});
    OneNode back("DequantizeLinear", {{"q", known.run()[0]}, {"s", scale}, {"z", zero}});
    OneNode other_back("DequantizeLinear", {{"q", known.run()[0]}, {"s", scale}, {"z", zero}});
    for (OneNode* n : {&other, &other_back}) {
      n->builder.model.add_opset_import()->set_domain("com.microsoft");
      n->builder.model.mutable_opset_import(1)->set_version(1);
      n->node->set_domain("com.microsoft");
    }
    EXPECT_EQ(other.run()[0], known.run()[0]);
    EXPECT_EQ(other_back.run()[0], back.run()[0]);
  }
}

TEST(Contrib, QueriesKeysAndValuesInOneOperand) {
  const Array packed = waves({2, 3, 2, 3, 4}), bias = waves({24});
  const Array q = part_of(packed, 0), k = part_of(packed, 1), v = part_of(packed, 2);
  const Array apart = multi_head({{"q", q}, {"k", k}, {"v", v}, {"b", bias}}).run()[0];
  EXPECT_EQ(multi_head({{"q", packed}, {"", {}}, {"", {}}, {"b", bias}}).run()[0], apart);
  EXPECT_NE(multi_head({{"q", packed}}).run()[0], apart);
  expect_contains(multi_head({{"q", packed}, {"k", k}}).refusal(), "given beside a packed 'query'");
  expect_contains(multi_head({{"q", waves({2, 3, 2, 2, 4})}}).refusal(),
                  "expected [batch, sequence, 2, 3,");
}

TEST(Contrib, KeysAndValuesInOneOperand) {
  const Array q = waves({2, 5, 8}), packed = waves({2, 3, 2, 2, 4});
  const Array k = part_of(packed, 0), v = part_of(packed, 1);
  const Array apart = multi_head({{"q", q}, {"k", k}, {"v", v}}).run()[0];
  EXPECT_EQ(multi_head({{"q", q}, {"k", packed}}).run()[0], apart);
  expect_contains(multi_head({{"q", q}, {"k", packed}, {"v", v}}).refusal(),
                  "given beside a packed 'key'");
}

OneNode product_in_bits(std::int64_t bits, const Array& groups) {
  const auto bytes = [](std::vector<std::int64_t> dims) {
    Array a = Array::zeros(DType::u8, std::move(dims));
    for (std::int64_t i = 0; i < a.count(); ++i) a.set_integer(i, i * 37 % 256);
    return a;
  };
  OneNode n("MatMulNBits", {{"a", waves({1, 40})},
                            {"b", bytes({2, 3, 2 * bits}), true},
                            {"s", waves({6}), true},
                            {"z", bytes({2 * ((3 * bits + 7) / 8)}), true},
                            {groups.count() == 0 ? "" : "g", groups, true}});
  n.builder.model.add_opset_import()->set_domain("com.microsoft");
  n.builder.model.mutable_opset_import(1)->set_version(1);
  n.node->set_domain("com.microsoft");
  for (const auto& [name, value] : {std::pair<const char*, std::int64_t>{"K", 40},
                                    {"N", 2},
                                    {"bits", bits},
                                    {"block_size", 16}})
    set_int(*n.node, name, value);
  return n;
}

TEST(Contrib, GIdxNamesTheBlockOfEachRow) {
  const auto groups_with = [](std::int64_t fourth) {
    Array a = Array::zeros(DType::i32, {40});
    for (std::int64_t i = 0; i < 40; ++i) a.set_integer(i, i == 3 ? fourth : i / 16);
    return a;
  };
  const Array none = Array::zeros(DType::i32, {0});
  for (std::int64_t bits : {2, 4, 8}) {
    const Array expected = product_in_bits(bits, none).run()[0];
    const auto distance = [&](const Array& groups) {
      const Array y = product_in_bits(bits, groups).run()[0];
      return std::hypot(y.real(0) - expected.real(0), y.real(1) - expected.real(1));
    };
    EXPECT_LT(distance(groups_with(0)), 1e-3) << bits;
    EXPECT_GT(distance(groups_with(2)), 0.1) << bits;
  }
  for (const std::int64_t block : {-1, 3})
    expect_contains(product_in_bits(4, groups_with(block)).refusal(), "g_idx");
}

}  // namespace
}  // namespace hone
