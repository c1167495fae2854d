#include "type/safetensors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "base/error.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

// A different path in each process.
fs::path temp_file(std::string_view name) {
  return fs::path(testing::TempDir()) / cat("hone_", ::getpid(), "_", name);
}

// A file of exactly these parts; the length field is the header's unless another is given.
fs::path raw_file(std::string_view header, std::size_t data_bytes, std::int64_t length = -1) {
  const fs::path path = temp_file("raw.safetensors");
  std::ofstream out(path, std::ios::binary);
  const std::uint64_t n = length < 0 ? header.size() : static_cast<std::uint64_t>(length);
  out.write(reinterpret_cast<const char*>(&n), sizeof n);
  out << header << std::string(data_bytes, 'x');
  return path;
}

std::string refusal(const fs::path& path) {
  try {
    read_safetensors(path);
  } catch (const UserError& e) {
    return e.what();
  }
  return "accepted";
}

TEST(Safetensors, RoundTripOfEveryDtypeIsAlignedAndUncopied) {
  std::vector<SafetensorsEntry> entries;
  for (int t = 0; t < dtype_count; ++t) {
    const bool is_named = t < computed_dtype_count || static_cast<DType>(t) == DType::f8e4m3fn ||
                          static_cast<DType>(t) == DType::f8e5m2 ||
                          static_cast<DType>(t) == DType::f8e8m0;
    if (!is_named) continue;
    Array a = Array::zeros(static_cast<DType>(t), {3, 5});
    for (std::size_t i = 0; i < a.bytes().size(); ++i)
      a.writable_bytes()[i] = static_cast<std::byte>(i % 2);
    entries.push_back({std::string(info(static_cast<DType>(t)).name), a});
  }
  entries.push_back({"empty", Array::zeros(DType::f32, {0, 4})});
  entries.push_back({"scalar", Array::scalar(2.5, DType::f32)});
  const fs::path path = temp_file("all.safetensors");
  write_safetensors(path, {{"who", "a test"}}, entries);
  const auto file = MappedFile::open(path);
  const Safetensors back = read_safetensors(file);
  ASSERT_EQ(back.tensors.size(), entries.size());
  EXPECT_EQ(*back.find_metadata("who"), "a test");
  for (const SafetensorsEntry& e : entries) {
    const Array* a = back.find(e.name);
    ASSERT_TRUE(a) << e.name;
    EXPECT_TRUE(std::ranges::equal(a->bytes(), e.data.bytes())) << e.name;
    EXPECT_EQ(a->dims(), e.data.dims());
    EXPECT_EQ(a->dtype(), e.data.dtype());
    if (a->bytes().empty()) continue;
    const auto offset = a->bytes().data() - file->bytes().data();
    EXPECT_GT(offset, 0);
    EXPECT_LT(offset, static_cast<std::ptrdiff_t>(file->bytes().size()));
    EXPECT_EQ(offset % 64, 0) << e.name;
  }
}

TEST(Safetensors, ReadsWhatOthersWrite) {
  const Safetensors file = read_safetensors(raw_file(
      R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[4,6]},"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}  )",
      6));
  ASSERT_EQ(file.tensors.size(), 2u);
  EXPECT_EQ(file.tensors[0].name, "a");
  EXPECT_EQ(file.tensors[1].data.dims(), std::vector<std::int64_t>{2});
  const Safetensors empty = read_safetensors(raw_file("{}", 0));
  EXPECT_EQ(empty.tensors.size(), 0u);
  EXPECT_EQ(empty.header, "{}");  // nothing else keeps the file mapped
}

TEST(Safetensors, RefusesWhatTheFormatForbids) {
  const auto one = [](std::string_view fields) { return R"({"a":{)" + std::string(fields) + "}}"; };
  struct Case {
    std::string header;
    std::size_t data;
    std::int64_t length;
    std::string_view says;
  };
  const Case cases[] = {
      {"", 0, -1, "does not start with '{'"},
      {"{}", 0, 3, "truncated"},
      {"{}", 0, 100'000'001, "the length of a header"},
      {"{}", 0, std::int64_t{1} << 62, "the length of a header"},
      {"[]", 0, -1, "does not start with '{'"},
      {"{\"a\"", 0, -1, "not valid JSON"},
      {R"({"a":1})", 0, -1, "expected an object"},
      {"{}", 1, -1, "after its last tensor"},
      {one(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])"), 5, -1, "after its last"},
      {one(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])"), 3, -1, "are outside the"},
      {one(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), 4, -1, "expected 8 for its type"},
      {one(R"("dtype":"F99","shape":[1],"data_offsets":[0,4])"), 4, -1, "not supported"},
      {one(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])"), 4, -1, "negative"},
      {one(R"("dtype":"F32","shape":[1.5],"data_offsets":[0,4])"), 4, -1, "integer"},
      {one(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])"), 4, -1, "are outside the"},
      {one(R"("dtype":"F32","shape":[1],"data_offsets":[-4,0])"), 4, -1, "are outside the"},
      {one(R"("dtype":"F32","shape":[1],"data_offsets":[0,4,8])"), 8, -1,
       "has 3 entries, expected 2"},
      {one(R"("dtype":"F32","shape":[1])"), 4, -1, "missing"},
      {one(R"("dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0])"), 0, -1,
       "does not fit in 64 bits"},
      {one(R"("dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,0])"), 0, -1,
       "does not fit in 64 bits"},
      {one(R"("dtype":"U8","shape":[1],"data_offsets":[1,2])"), 2, -1, "overlaps and gaps"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
       R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
       3, -1, "overlaps and gaps"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
       R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
       2, -1, "appears twice"},
      {R"({"__metadata__":{"a":1}})", 0, -1, "is not a string"},
      {R"({"__metadata__":)" + std::string(1000, '[') + std::string(1000, ']') + "}", 0, -1,
       "nested more than"},
  };
  for (const Case& c : cases)
    EXPECT_NE(refusal(raw_file(c.header, c.data, c.length)).find(c.says), std::string::npos)
        << c.header.substr(0, 200) << "\n  " << refusal(raw_file(c.header, c.data, c.length));
}

TEST(Safetensors, RefusesEveryTruncation) {
  const fs::path path = temp_file("whole.safetensors");
  write_safetensors(path, {},
                    std::vector<SafetensorsEntry>{{"a", Array::zeros(DType::f32, {9})},
                                                  {"b", Array::zeros(DType::u8, {3})}});
  std::ifstream in(path, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  EXPECT_EQ(refusal(path), "accepted");
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const fs::path cut = temp_file("cut.safetensors");
    std::ofstream(cut, std::ios::binary) << whole.substr(0, n);
    EXPECT_NE(refusal(cut), "accepted") << n;
  }
}

TEST(Safetensors, RefusesNamesThatCollide) {
  const SafetensorsEntry a{"a", Array::zeros(DType::u8, {1})};
  EXPECT_THROW(write_safetensors(temp_file("x"), {}, std::vector{a, a}), UserError);
  const SafetensorsEntry reserved{"__metadata__", a.data};
  EXPECT_THROW(write_safetensors(temp_file("x"), {}, std::vector{reserved}), UserError);
}

TEST(Safetensors, ManyTensorsAreReadInReasonableTime) {
  std::vector<SafetensorsEntry> many;
  for (int i = 0; i < 20'000; ++i) many.push_back({cat("t", i), Array::zeros(DType::u8, {1})});
  const fs::path path = temp_file("many.safetensors");
  write_safetensors(path, {}, many);
  EXPECT_EQ(read_safetensors(path).tensors.size(), many.size());
}

}  // namespace
}  // namespace hone
