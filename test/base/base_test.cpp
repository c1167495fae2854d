#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

#include "base/checked.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/hash.h"
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
  // Both must be seen, and on one processor that takes a while.
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
    EXPECT_NE(std::strstr(e.what(), "has 2 names (hard links)"), nullptr) << e.what();
  }
  ::setenv("HONE_HARD_LINKS", "1", 1);
  EXPECT_EQ(text_of(*MappedFile::open_contained(dir_ / "inner", "data")), "s");
  ::unsetenv("HONE_HARD_LINKS");
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
