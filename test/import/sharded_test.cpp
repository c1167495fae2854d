// Safetensors split over several files that an index lists.
#include "import/safetensors/sharded.h"

#include "test/import/support.h"

namespace hone {
namespace {

void write_shard(const TempDirectory& d, const std::string& file,
                 const std::vector<std::string>& names) {
  std::vector<SafetensorsEntry> entries;
  for (const std::string& n : names)
    entries.push_back({n, reals({2}, {static_cast<float>(n[0]), 1})});
  write_safetensors(d.path() / file, {}, entries);
}

std::string failure(const TempDirectory& d, const std::string& index) {
  try {
    read_sharded_safetensors(d.write("model.safetensors.index.json", index));
  } catch (const UserError& e) {
    return e.what();
  }
  return "read without an error";
}

TEST(Sharded, TensorsOfAllFilesInTheOrderOfTheIndex) {
  const TempDirectory d;
  write_shard(d, "one.safetensors", {"a", "b"});
  write_shard(d, "two.safetensors", {"c", "d"});
  const ShardedSafetensors s = read_sharded_safetensors(d.write(
      "model.safetensors.index.json",
      R"({"metadata":{"total_size":24},"weight_map":{"c":"two.safetensors","a":"one.safetensors",)"
      R"("b":"one.safetensors"}})"));
  EXPECT_EQ(s.files, (std::vector<std::string>{"two.safetensors", "one.safetensors"}));
  ASSERT_EQ(s.tensors.size(), 3U);
  EXPECT_EQ(s.tensors[0].name, "c");
  EXPECT_EQ(s.tensors[0].data.real(0), 'c');
  EXPECT_EQ(s.tensors[2].data.real(0), 'b');
  EXPECT_EQ(s.unlisted, std::vector<std::string>{"d"});
}

TEST(Sharded, WhatIsWrongIsSaid) {
  const TempDirectory outer;
  write_shard(outer, "outside.safetensors", {"a"});
  const TempDirectory d;
  write_shard(d, "one.safetensors", {"a"});
  d.write("cut.safetensors", "abc");
  std::filesystem::create_symlink(outer.path() / "outside.safetensors", d.path() / "link");
  const auto of = [&](const std::string& file) {
    return failure(d, R"({"weight_map":{"a":")" + file + R"("}})");
  };
  const std::pair<std::string, std::vector<std::string>> cases[] = {
      {failure(d, "[]"), {"weight_map"}},
      {failure(d, "{"), {"index.json"}},
      {failure(d, R"({"weight_map":[]})"), {"weight_map"}},
      {failure(d, R"({"weight_map":{"a":3}})"), {"'a'", "not a string"}},
      {failure(d, R"({"weight_map":{"b":"one.safetensors"}})"), {"'b'", "is not in"}},
      {of("gone.safetensors"), {"gone.safetensors"}},
      {of("cut.safetensors"), {"cut.safetensors", "not a safetensors file"}},
      {of("../outside.safetensors"), {"outside.safetensors", ".."}},
      {of((outer.path() / "outside.safetensors").string()), {"outside.safetensors"}},
      {of("link"), {"link"}},
  };
  for (const auto& [message, words] : cases)
    for (const std::string& w : words) EXPECT_NE(message.find(w), message.npos) << message;
}

}  // namespace
}  // namespace hone
