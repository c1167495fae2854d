// GGUF: decoded blocks compared with independent values, and invalid files.
#include "import/gguf/gguf.h"

#include <cmath>
#include <cstring>

#include "test/import/gguf_file.h"
#include "test/import/support.h"

namespace hone {
namespace {

using File = GgufFile;

Gguf read(const File& f) {
  const TempDirectory directory;
  return read_gguf(directory.write("test.gguf", f.bytes));
}
std::string failure(const File& f) {
  try {
    read(f);
  } catch (const UserError& e) {
    return e.what();
  }
  return "read without an error";
}

GgufTensor blocks(GgufType type, std::int64_t elements, std::vector<std::byte> bytes) {
  return {"t", type, {elements}, Storage::from(std::move(bytes))};
}

TEST(Gguf, TensorsAndMetadataAreWhatTheFileSays) {
  for (std::uint32_t version : {2U, 3U}) {
    File f;
    f.head(3, 5, version).alignment(64);
    f.text("general.name").put<std::uint32_t>(8).text("small");
    f.text("a.flag").put<std::uint32_t>(7).put<std::uint8_t>(1);
    f.text("a.list").put<std::uint32_t>(9).put<std::uint32_t>(8).put<std::uint64_t>(2);
    f.text("one").text("two");
    f.text("a.number").put<std::uint32_t>(6).put(1.5F);
    f.tensor("w", {3, 2}, 0, 0).tensor("h", {2}, 1, 64).tensor("q", {32, 2}, 8, 128);
    f.data(128 + 68, 64);
    const Gguf g = read(f);
    EXPECT_EQ(g.version, version);
    EXPECT_EQ(g.alignment, 64);
    ASSERT_EQ(g.metadata.size(), 5U);
    EXPECT_EQ(g.metadata[1].second, "small");
    EXPECT_EQ(g.metadata[2].second, "true");
    EXPECT_EQ(g.metadata[3].second, "text[2]");
    EXPECT_EQ(g.metadata[4].second, "1.5");
    ASSERT_EQ(g.tensors.size(), 3U);
    EXPECT_EQ(cat(g.find("w")->stored().type()), "f32[2,3]");
    EXPECT_EQ(cat(g.find("h")->stored().type()), "f16[2]");
    EXPECT_EQ(cat(g.find("q")->stored().type()), "u8[2,34]");
    EXPECT_EQ(g.find("q")->stored().bytes()[0], std::byte{128});
    EXPECT_EQ(cat(dequantize(*g.find("q")).type()), "f32[2,32]");
    EXPECT_EQ(g.find("none"), nullptr);
  }
}

// Bytes of a linear congruential generator, with the scales made finite. The numbers come from
// ggml-org's Python package gguf 0.19.0; `hash` is an FNV-1a hash of all of them.
struct Golden {
  GgufType type;
  std::int64_t count;
  double first, second, eighteenth, last;
  std::uint64_t hash;
};
const Golden golden[] = {
    {GgufType::q4_0, 64, -0.3271484375, 0.2044677734375, 0.1226806640625, -0.062347412109375,
     0xce0bf3e2f9271e0c},
    {GgufType::q4_1, 64, -0.127655029296875, -0.491546630859375, -0.491546630859375,
     0.050079345703125, 0x4a5c386c292d20ad},
    {GgufType::q5_0, 64, -0.68231201171875, 0.633575439453125, -0.09747314453125, 0.59259033203125,
     0xc519c83cddc0e04a},
    {GgufType::q5_1, 64, -0.084747314453125, -0.493988037109375, -0.657684326171875,
     0.555816650390625, 0xa7ff0f9d2e8902db},
    {GgufType::q8_0, 64, 3.1102294921875, -0.40924072265625, -2.741912841796875, -3.79522705078125,
     0x3c7d44e04b0eb8b3},
    {GgufType::q4_k, 512, 13.972747802734375, 18.02423095703125, 8.570770263671875,
     -0.63690185546875, 0xb0470ed4b2755d42},
    {GgufType::q5_k, 512, 3.336181640625, 5.300537109375, 0.8807373046875, 0.14111328125,
     0x849f53ae6553a1bc},
    {GgufType::q6_k, 512, 24.412689208984375, -7.5115966796875, -182.701416015625,
     13.91876220703125, 0x528cc10f55d75d5f},
};

std::vector<std::byte> golden_bytes(GgufType type, std::size_t size) {
  std::vector<std::byte> out;
  auto x = static_cast<std::uint32_t>(type);
  for (std::size_t i = 0; i < 2 * size; ++i) {
    x = x * 1664525 + 1013904223;
    out.push_back(static_cast<std::byte>(x >> 24));
  }
  using enum GgufType;
  const bool is_pair = type == q4_1 || type == q5_1 || type == q4_k || type == q5_k;
  for (std::size_t start : {std::size_t{0}, size})
    for (std::size_t h : is_pair ? std::vector<std::size_t>{0, 2}
                                 : std::vector<std::size_t>{type == q6_k ? 208U : 0U}) {
      std::byte& high = out[start + h + 1];
      high = (high & std::byte{0x83}) | std::byte{0x28};
    }
  return out;
}

std::uint64_t fnv(std::span<const std::byte> bytes) {
  std::uint64_t h = 0xcbf29ce484222325;
  for (std::byte b : bytes) h = (h ^ static_cast<std::uint64_t>(b)) * 0x100000001b3;
  return h;
}

TEST(Gguf, BlocksStandForTheNumbersOfTheReference) {
  const std::size_t sizes[] = {18, 20, 22, 24, 34, 144, 176, 210};
  for (std::size_t i = 0; i < std::size(golden); ++i) {
    const Golden& g = golden[i];
    SCOPED_TRACE(gguf_type_name(g.type));
    const Array a = dequantize(blocks(g.type, g.count, golden_bytes(g.type, sizes[i])));
    EXPECT_EQ(a.real(0), g.first);
    EXPECT_EQ(a.real(1), g.second);
    EXPECT_EQ(a.real(17), g.eighteenth);
    EXPECT_EQ(a.real(g.count - 1), g.last);
    EXPECT_EQ(fnv(a.bytes()), g.hash);
  }
}

TEST(Gguf, NarrowFloatsAreWidenedExactly) {
  const std::uint16_t halves[] = {0x3c00, 0xc000, 0x0001};
  const auto bytes = std::as_bytes(std::span(halves));
  const GgufTensor f16 = {"h", GgufType::f16, {3}, Storage::copy(bytes)};
  EXPECT_EQ(numbers_of(dequantize(f16)), (std::vector<double>{1, -2, std::ldexp(1, -24)}));
  const GgufTensor bf16 = {"b", GgufType::bf16, {3}, Storage::copy(bytes)};
  EXPECT_EQ(dequantize(bf16).real(1), -2);
}

TEST(Gguf, EmptyTensorsAndScalars) {
  const Gguf g =
      read(File().head(2, 0).tensor("none", {32, 0}, 2, 0).tensor("one", {}, 0, 0).data(4));
  EXPECT_EQ(cat(dequantize(*g.find("none")).type()), "f32[0,32]");
  EXPECT_EQ(g.find("one")->stored().rank(), 0);
  EXPECT_TRUE(read(File().head(0, 0)).tensors.empty());
}

TEST(Gguf, WhatIsWrongWithAFileIsSaid) {
  constexpr std::uint64_t huge = ~std::uint64_t{0};
  File nested;
  nested.head(0, 1).text("k").put<std::uint32_t>(9);
  for (int i = 0; i < 100; ++i) nested.put<std::uint32_t>(9).put<std::uint64_t>(1);
  const std::pair<File, std::vector<std::string>> cases[] = {
      {File{}, {"truncated"}},
      {File{"GGML" + std::string(30, 'x')}, {"not a GGUF"}},
      {File().head(0, 0, 1), {"version is 1", "2 or 3"}},
      {File().head(0, 0, 0x03000000), {"big-endian"}},
      {File().head(huge, 0), {"18446744073709551615 tensors", "do not fit"}},
      {File().head(0, huge), {"metadata", "do not fit"}},
      {File().head(0, 1).put(huge).data(20), {"a metadata key", "needs 18446744073709551615"}},
      {File().head(0, 1).text("k").put<std::uint32_t>(77).data(8), {"metadata type is 77"}},
      {File().head(0, 1).text("k").put<std::uint32_t>(9).put<std::uint32_t>(10).put(huge),
       {"elements", "do not fit"}},
      {nested, {"nested more than 8"}},
      {File().head(0, 2).alignment(32).alignment(32), {"appears twice"}},
      {File().head(0, 1).text("").put<std::uint32_t>(4).put<std::uint32_t>(1).data(8),
       {"the key of metadata 0 is empty"}},
      {File().head(0, 1).alignment(12), {"12", "multiple of 8"}},
      {File().head(0, 1).alignment(0), {"multiple of 8"}},
      {File().head(1, 0).tensor("t", {4}, 99, 0).data(16), {"'t'", "type is 99", "Q4_K"}},
      {File().head(1, 0).tensor("t", {1, 1, 1, 1, 1}, 0, 0).data(4), {"'t'", "5 axes"}},
      {File().head(1, 0).tensor("t", {huge}, 0, 0).data(4), {"'t'", "63 bits"}},
      {File().head(1, 0).tensor("t", {1ULL << 62, 1ULL << 62}, 0, 0).data(4), {"'t'", "64 bits"}},
      {File().head(1, 0).tensor("t", {33}, 2, 0).data(64), {"'t'", "33", "Q4_0 block"}},
      {File().head(1, 0).tensor("t", {4}, 0, 16).data(64), {"'t'", "16", "multiple of 32"}},
      {File().head(1, 0).tensor("t", {4}, 0, 0).data(15), {"'t'", "15 bytes", "truncated"}},
      {File().head(1, 0).tensor("t", {4}, 0, huge - 31).data(16), {"'t'", "are outside the"}},
      {File().head(2, 0).tensor("a", {16}, 0, 0).tensor("b", {4}, 0, 32).data(64),
       {"'b'", "overlaps 'a'"}},
      {File().head(2, 0).tensor("a", {1}, 0, 0).tensor("a", {1}, 0, 32).data(64),
       {"'a'", "appears twice"}},
  };
  for (const auto& [file, words] : cases) {
    const std::string message = failure(file);
    for (const std::string& w : words) EXPECT_NE(message.find(w), message.npos) << message;
  }
}

// A file truncated anywhere, or with any byte changed, is read or refused; nothing else happens.
TEST(Gguf, DamagedFilesAreReadOrRefused) {
  File f;
  f.head(2, 2).alignment(32).text("k").put<std::uint32_t>(9).put<std::uint32_t>(8);
  f.put<std::uint64_t>(1).text("word").tensor("a", {32}, 8, 0).tensor("b", {4}, 0, 64).data(80);
  ASSERT_EQ(read(f).tensors.size(), 2U);
  const TempDirectory directory;
  int refused = 0;
  const auto attempt = [&](const std::string& bytes) {
    try {
      for (const GgufTensor& t : read_gguf(directory.write("t.gguf", bytes)).tensors) dequantize(t);
    } catch (const UserError&) {
      ++refused;
    }
  };
  for (std::size_t i = 0; i < f.bytes.size(); ++i) attempt(f.bytes.substr(0, i));
  EXPECT_EQ(refused, static_cast<int>(f.bytes.size()));
  for (std::size_t i = 0; i + 80 < f.bytes.size(); ++i)
    for (int bit : {0, 5, 7}) {
      std::string bytes = f.bytes;
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
      attempt(bytes);
    }
  EXPECT_GT(refused, static_cast<int>(f.bytes.size()));
}

}  // namespace
}  // namespace hone
