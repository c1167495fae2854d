#include "base/large_memory.h"

#include <gtest/gtest.h>

#include <vector>

namespace hone {
namespace {

TEST(RepeatedMemory, RepeatsItsContentUpToAPageThatCannotBeRead) {
  std::vector<std::byte> content(3 * 4096);
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<std::byte>(i % 251);
  for (const std::size_t bytes : {std::size_t{1}, content.size(), 10 * content.size() + 100}) {
    const std::shared_ptr<std::byte> made = repeated_memory(content, bytes);
    ASSERT_TRUE(made);
    for (std::size_t i = 0; i < bytes; ++i)
      ASSERT_EQ(made.get()[i], content[i % content.size()]) << bytes << " at " << i;
    const volatile std::byte* end = made.get() + bytes;
    EXPECT_DEATH(static_cast<void>(*end), "");
    EXPECT_DEATH(made.get()[0] = std::byte{}, "");
  }
}

// More than the machine has, at an address that 32 bits cannot count to.
TEST(RepeatedMemory, TakesTheMemoryOfOneRepetition) {
  std::vector<std::byte> content(std::size_t{4} << 20);
  content[77] = std::byte{5};
  constexpr std::size_t bytes = std::size_t{1} << 34;
  const std::shared_ptr<std::byte> made = repeated_memory(content, bytes);
  if (!made) GTEST_SKIP() << "the system limits the number of mappings";
  EXPECT_EQ(made.get()[bytes - content.size() + 77], std::byte{5});
}

}  // namespace
}  // namespace hone
