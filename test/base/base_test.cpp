#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

#include "base/checked.h"
#include "base/flags.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/replace_file.h"
#include "base/terminal.h"
#include "base/text.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::temp_directory_path() / cat("hone_base_test_", ::getpid());
    fs::create_directories(dir_ / "inner");
  }
  void TearDown() override { fs::remove_all(dir_); }
  fs::path dir_;
};

std::string text_of(const MappedFile& f) {
  return {reinterpret_cast<const char*>(f.bytes().data()), f.bytes().size()};
}

TEST_F(Files, AreWrittenWholeOrNotAtAll) {
  write_atomic(dir_ / "a", "first");
  auto old = MappedFile::open(dir_ / "a");
  write_atomic(dir_ / "a", "second");
  EXPECT_EQ(text_of(*MappedFile::open(dir_ / "a")), "second");
  EXPECT_EQ(text_of(*old), "first");
  EXPECT_THROW(write_atomic(dir_ / "missing" / "a", "x"), UserError);
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_), {}), 2);
}

TEST_F(Files, ContainedNamesStayInside) {
  write_atomic(dir_ / "secret", "s");
  write_atomic(dir_ / "inner" / "data", "d");
  fs::create_symlink(dir_ / "secret", dir_ / "inner" / "link");
  EXPECT_EQ(text_of(*MappedFile::open_contained(dir_ / "inner", "data")), "d");
  for (const char* name : {"../secret", "link", "/etc/passwd", "x/../../secret", "", "."})
    EXPECT_THROW(MappedFile::open_contained(dir_ / "inner", name), UserError) << name;
}

// The layout of a model in Hugging Face's cache: CACHE/snapshots/REVISION/NAME -> ../../blobs/HASH.
TEST_F(Files, ContainedLinksAreFollowedToWhereDataOfTheModelMayLie) {
  const fs::path root = dir_ / "cache" / "snapshots" / "r1" / "onnx",
                 blobs = dir_ / "cache" / "blobs";
  fs::create_directories(root);
  fs::create_directories(blobs);
  write_atomic(blobs / "abc", "blob");
  write_atomic(root / "own", "own");
  write_atomic(dir_ / "secret", "s");
  fs::create_symlink("../../../blobs/abc", root / "data");
  fs::create_symlink("own", root / "alias");
  fs::create_symlink(dir_ / "secret", root / "out");
  fs::create_symlink("../../../blobs/../../secret", root / "round");
  fs::create_symlink(dir_, root / "up");
  EXPECT_EQ(text_of(*MappedFile::open_contained(root, "data")), "blob");
  EXPECT_EQ(text_of(*MappedFile::open_contained(root, "alias")), "own");
  for (const char* name : {"out", "round", "up/secret", "../../../blobs/abc"}) {
    EXPECT_THROW(MappedFile::open_contained(root, name), UserError) << name;
  }
  try {
    MappedFile::open_contained(root, "out");
  } catch (const UserError& e) {
    EXPECT_NE(std::strstr(e.what(), "a link leads out of it"), nullptr) << e.what();
    EXPECT_NE(std::strstr(e.what(), "--allow-links"), nullptr) << e.what();
  }
  for (const char* name : {"out", "round", "up/secret"})
    EXPECT_EQ(text_of(*MappedFile::open_contained(root, name, MappedFile::Links::any)), "s");
}

TEST_F(Files, AWrittenFileLeavesLinksAndDevicesWhatTheyAre) {
  write_atomic(dir_ / "target", "old");
  fs::create_symlink("target", dir_ / "link");
  write_atomic(dir_ / "link", "new");
  EXPECT_TRUE(fs::is_symlink(dir_ / "link"));
  EXPECT_EQ(text_of(*MappedFile::open(dir_ / "target")), "new");
  fs::create_symlink("inner/later", dir_ / "dangling");
  write_atomic(dir_ / "dangling", "made");
  EXPECT_EQ(text_of(*MappedFile::open(dir_ / "inner" / "later")), "made");
  write_atomic("/dev/null", "x");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_THROW(write_atomic("/dev/full", "x"), UserError);
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
  const fs::path temporary = unused_name("/dev/null");
  write_atomic(temporary, "x");
  move_file(temporary, "/dev/null");
  EXPECT_FALSE(fs::exists(temporary));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  ASSERT_EQ(::mkfifo((dir_ / "pipe").c_str(), 0600), 0);
  std::string got(4, ' ');
  std::thread reader([&] { std::ifstream(dir_ / "pipe").read(got.data(), 4); });
  write_atomic(dir_ / "pipe", "four");
  reader.join();
  EXPECT_EQ(got, "four");
  EXPECT_TRUE(fs::is_fifo(dir_ / "pipe"));
}

// In a directory of our own: none of these is opened, as a pipe would wait for a reader.
TEST_F(Files, WhatHasTheNameIsReplacedUnopened) {
  ASSERT_EQ(::mkfifo((dir_ / "pipe").c_str(), 0600), 0);
  write_atomic(dir_ / "target", "old");
  fs::create_symlink("target", dir_ / "link");
  fs::create_symlink("/dev/full", dir_ / "device");
  const std::string text = "new";
  const std::span<const std::byte> part = std::as_bytes(std::span(text));
  for (const char* name : {"pipe", "link", "device", "missing"}) {
    replace_file(dir_ / name, std::span(&part, 1));
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(dir_ / name))) << name;
    EXPECT_EQ(text_of(*MappedFile::open(dir_ / name)), text) << name;
  }
  EXPECT_EQ(text_of(*MappedFile::open(dir_ / "target")), "old");
  EXPECT_THROW(replace_file(dir_ / "inner", std::span(&part, 1)), UserError);
  EXPECT_TRUE(fs::is_directory(dir_ / "inner"));
}

TEST_F(Files, NamesMayBeAsLongAsTheSystemAllows) {
  const std::string longest(most_name_bytes, 'n');
  write_atomic(dir_ / longest, "first");
  write_atomic(dir_ / longest, "second");
  EXPECT_EQ(text_of(*MappedFile::open(dir_ / longest)), "second");
  EXPECT_EQ(why_not_writable(dir_ / longest), "");
  const fs::path temporary = unused_name(dir_ / longest);
  write_atomic(temporary, "third");
  move_file(temporary, dir_ / longest);
  EXPECT_EQ(text_of(*MappedFile::open(dir_ / longest)), "third");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_), {}), 2);

  EXPECT_EQ(fit_file_name("model", ".hone"), "model.hone");
  EXPECT_EQ(fit_file_name(std::string(250, 'm'), ".hone"), std::string(250, 'm') + ".hone");
  const std::string cut = fit_file_name(std::string(251, 'm'), ".hone");
  EXPECT_EQ(cut.size(), most_name_bytes);
  EXPECT_TRUE(cut.ends_with(".hone"));
  EXPECT_NE(cut, fit_file_name(std::string(252, 'm'), ".hone"));
  // Not within a character.
  std::string umlauts;
  while (umlauts.size() < 300) umlauts += "\u00e4";
  for (const char* ending : {".x", ".xy"}) {
    const std::string fitted = fit_file_name(umlauts, ending);
    EXPECT_LE(fitted.size(), most_name_bytes);
    EXPECT_EQ(fitted.find('-') % 2, 0U) << fitted;
  }
}

TEST_F(Files, SayWhatKeepsFromWritingThem) {
  EXPECT_EQ(why_not_writable(dir_ / "new"), "");
  EXPECT_EQ(why_not_writable("/dev/null"), "");
  EXPECT_NE(why_not_writable(dir_ / "inner").find("is a directory"), std::string::npos);
  EXPECT_NE(why_not_writable(dir_ / "none" / "new").find("create it first"), std::string::npos);
  EXPECT_TRUE(fs::is_empty(dir_ / "inner"));
  EXPECT_TRUE(is_same_file(dir_ / "new", dir_ / "inner" / ".." / "new"));
  EXPECT_FALSE(is_same_file(dir_ / "new", dir_ / "old"));
  write_atomic(dir_ / "used", "x");
  fs::create_symlink("used", dir_ / "name");
  auto file = MappedFile::open(dir_ / "used");
  EXPECT_TRUE(is_mapped(dir_ / "name"));
  file.reset();
  EXPECT_FALSE(is_mapped(dir_ / "name"));
}

TEST(Terminal, TextOfFilesDoesNothingButStand) {
  EXPECT_EQ(printable("plain \xc3\xa4\n\t"), "plain \xc3\xa4\n\t");
  EXPECT_EQ(printable("\x1b[31m\x07\x7f\r"), "\\x1b[31m\\x07\\x7f\\x0d");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m");
  EXPECT_EQ(printable("\x9b\xff"), "\\x9b\\xff");
  EXPECT_EQ(Json("\x1b\x7f\xc2\x9b").text(), "\"\\u001b\\u007f\\u009b\"");
}

TEST_F(Files, ContainedNamesStayInsideWhileTheyAreExchanged) {
  write_atomic(dir_ / "secret", "s");
  const fs::path name = dir_ / "inner" / "data", good = dir_ / "good", bad = dir_ / "bad";
  write_atomic(name, "d");
  std::atomic<bool> is_done{false};
  std::thread other([&] {
    while (!is_done) {
      fs::create_symlink(dir_ / "secret", bad);
      fs::rename(bad, name);
      std::ofstream(good) << "d";
      fs::rename(good, name);
    }
  });
  int opened = 0, refused = 0;
  // Both must occur, which takes a while on one processor.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (int i = 0; i < 20'000 || opened == 0 || refused == 0; ++i) {
    if (std::chrono::steady_clock::now() > end) break;
    try {
      const std::string text = text_of(*MappedFile::open_contained(dir_ / "inner", "data"));
      if (text != "d" && !text.empty()) ADD_FAILURE() << "read '" << text << "'";
      ++opened;
    } catch (const UserError&) {
      ++refused;
    }
  }
  is_done = true;
  other.join();
  EXPECT_GT(opened, 0);
  EXPECT_GT(refused, 0);
}

TEST_F(Files, ContainedOnesHaveOneName) {
  write_atomic(dir_ / "secret", "s");
  fs::create_hard_link(dir_ / "secret", dir_ / "inner" / "data");
  try {
    MappedFile::open_contained(dir_ / "inner", "data");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::strstr(e.what(), "has 2 hard links"), nullptr) << e.what();
  }
  constexpr auto any = MappedFile::Links::any;
  EXPECT_EQ(text_of(*MappedFile::open_contained(dir_ / "inner", "data", any)), "s");
  EXPECT_EQ(text_of(*MappedFile::open(dir_ / "secret")), "s");
}

TEST_F(Files, ThatAreReadStayWhenTheyShrink) {
  const std::string content(100'000, 'x');
  write_atomic(dir_ / "a", content);
  ::setenv("HONE_MAP_FILES", "0", 1);
  const auto file = MappedFile::open(dir_ / "a");
  ::unsetenv("HONE_MAP_FILES");
  fs::resize_file(dir_ / "a", 0);
  EXPECT_EQ(text_of(*file), content);
}

TEST_F(Files, MissingOnesAndDirectoriesAreRefusedByName) {
  try {
    MappedFile::open(dir_ / "nothing");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::strstr(e.what(), "nothing"), nullptr);
  }
  EXPECT_THROW(MappedFile::open(dir_), UserError);
}

TEST(Checked, OverflowIsAnError) {
  std::int64_t big = std::int64_t{1} << 62;
  EXPECT_THROW(checked_mul(big, 2), UserError);
  EXPECT_THROW(checked_add(big, big), UserError);
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  EXPECT_THROW(checked_sub(0, least), UserError);
  EXPECT_EQ(checked_sub(-1, least), std::numeric_limits<std::int64_t>::max());
  EXPECT_THROW(floor_div(least, -1), UserError);
  EXPECT_EQ(floor_mod(least, -1), 0);
  EXPECT_EQ(floor_div(-7, 2), -4);
  EXPECT_EQ(floor_mod(-7, 2), 1);
  EXPECT_EQ(round_up(65, 64), 128);
}

TEST(Flags, AreInTheTable) {
  EXPECT_THROW(flag("HONE_NO_SUCH_FLAG"), InternalError);
  ::setenv("HONE_DEBUG", "x", 1);
  EXPECT_THROW(flag_number("HONE_DEBUG"), UserError);
  ::setenv("HONE_DEBUG", "2", 1);
  EXPECT_EQ(flag_number("HONE_DEBUG"), 2);
  ::unsetenv("HONE_DEBUG");
}

TEST(Text, IsItsParts) {
  Text text;
  std::string expected;
  for (int i = 0; i < 1000; ++i) {
    text.add('%');
    text.add(i - 500);
    text.add(std::string_view(" of ").substr(0, static_cast<std::size_t>(i % 5)));
    text.add(~std::uint64_t{0});
    expected += cat("%", i - 500, std::string(" of ").substr(0, static_cast<std::size_t>(i % 5)),
                    ~std::uint64_t{0});
  }
  EXPECT_EQ(text.take(), expected);
  EXPECT_EQ(text.take(), "");
}

TEST(Hash, TellsContentApart) {
  EXPECT_NE(hash128("a"), hash128("b"));
  EXPECT_EQ(to_hex(Hash128{1, 2}), "00000000000000010000000000000002");
}

}  // namespace
}  // namespace hone
