// How the programs exit when a mapped file shrinks while they use it.
#include "cli/run/exit.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/file.h"

namespace hone::cli {
namespace {

namespace fs = std::filesystem;

TEST(ExitDeathTest, AMappedFileThatShrinksIsAMessage) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const fs::path path = fs::path(testing::TempDir()) / "shrinks.bin";
  std::ofstream(path) << std::string(1 << 16, 'x');
  EXPECT_EXIT(std::exit(guarded("hone", {},
                                [&] {
                                  const auto file = MappedFile::open(path);
                                  fs::resize_file(path, 0);
                                  return static_cast<int>(file->bytes()[1 << 15]);
                                })),
              testing::ExitedWithCode(exit_user), "a file in use became shorter");
}

}  // namespace
}  // namespace hone::cli
