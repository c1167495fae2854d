// The cache holds code: files that another user could have written are not used.
#include "runtime/cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

const Hash128 key{1, 2};
constexpr uid_t somebody = 12345;

class Cache : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(directory_);
    fs::permissions(directory_, fs::perms::owner_all);
    CompileCache(directory_, "kernels").store(key, std::as_bytes(std::span("code")));
    ASSERT_TRUE(is_found());
    set_log_sink([](void* to, const char* line) { static_cast<std::string*>(to)->append(line); },
                 &said_);
  }
  void TearDown() override {
    set_log_sink(nullptr, nullptr);
    fs::remove_all(directory_);
  }
  bool is_found() const { return CompileCache(directory_, "kernels").find(key).has_value(); }
  fs::path kind() const { return directory_ / "kernels"; }
  fs::path entry() const { return kind() / to_hex(key); }

  fs::path directory_ = fs::path(testing::TempDir()) /
                        cat("hone_cache_", ::getpid(), "_",
                            ::testing::UnitTest::GetInstance()->current_test_info()->name());
  std::string said_;
};

TEST_F(Cache, IsNotUsedWhereOthersMayWrite) {
  for (const fs::path& p : {directory_, kind(), entry()}) {
    const fs::perms before = fs::status(p).permissions();
    for (fs::perms others : {fs::perms::group_write, fs::perms::others_write}) {
      fs::permissions(p, before | others);
      EXPECT_FALSE(is_found()) << p;
    }
    fs::permissions(p, before);
    EXPECT_TRUE(is_found()) << p;
  }
  EXPECT_NE(said_.find("others may write to it"), std::string::npos) << said_;
}

TEST_F(Cache, IsNotUsedThroughLinks) {
  fs::rename(entry(), directory_ / "elsewhere");
  fs::create_symlink(directory_ / "elsewhere", entry());
  EXPECT_FALSE(is_found());
  EXPECT_THROW(MappedFile::open_private(entry()), UserError);
}

// None is opened: a pipe would wait for ever.
TEST_F(Cache, ReplacesWhatIsNoFile) {
  const auto store = [&] {
    CompileCache(directory_, "kernels").store(key, std::as_bytes(std::span("code")));
  };
  fs::remove(entry());
  ASSERT_EQ(::mkfifo(entry().c_str(), 0600), 0);
  EXPECT_FALSE(is_found());
  store();
  EXPECT_TRUE(is_found());
  fs::remove(entry());
  fs::create_symlink("/dev/full", entry());
  EXPECT_FALSE(is_found());
  store();
  EXPECT_TRUE(is_found());
  fs::remove(entry());
  fs::create_directories(entry() / "inside");
  EXPECT_FALSE(is_found());
  store();  // is told, and not an error
  EXPECT_FALSE(is_found());
}

TEST_F(Cache, OfAnotherUserIsNotUsedByRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give files to another user";
  for (const fs::path& p : {directory_, kind(), entry()}) {
    ASSERT_EQ(::chown(p.c_str(), somebody, somebody), 0);
    EXPECT_FALSE(is_found()) << p;
    if (p == entry()) {
      EXPECT_THROW(MappedFile::open_private(p), UserError);
    }
    ASSERT_EQ(::chown(p.c_str(), 0, 0), 0);
    EXPECT_TRUE(is_found()) << p;
  }
}

TEST_F(Cache, SaysOnceWhyItIsNotUsed) {
  fs::permissions(directory_, fs::perms::owner_all | fs::perms::others_write);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(is_found());
  const std::string line = "others may write to it; the cache is not used";
  EXPECT_NE(said_.find(line), std::string::npos) << said_;
  EXPECT_EQ(said_.find(line), said_.rfind(line)) << said_;
  EXPECT_NE(said_.find("HONE_CACHE_DIR"), std::string::npos) << said_;
}

}  // namespace
}  // namespace hone
