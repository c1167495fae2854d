#include "base/fault.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <new>

namespace hone {
namespace {

struct Page {
  std::byte* at = static_cast<std::byte*>(std::aligned_alloc(fence_page_bytes, fence_page_bytes));
  Page() { close_pages(at); }
  ~Page() {
    open_pages(at);
    std::free(at);
  }
};

void read_byte(void* at) { static_cast<void>(*static_cast<volatile std::byte*>(at)); }
void count(void* n) { ++*static_cast<int*>(n); }

TEST(FaultScope, TellsWhatTheCodeDidAndGoesOn) {
  Page page;
  int calls = 0;
  {
    FaultScope scope;
    scope.run(count, &calls);
    EXPECT_EQ(scope.what(), "");
    scope.run(read_byte, page.at);
    EXPECT_NE(scope.what().find("memory that is not its own"), std::string::npos) << scope.what();
    scope.run(count, &calls);
    EXPECT_EQ(calls, 1) << "code that faulted goes on";
  }
  FaultScope again;
  again.run(count, &calls);
  EXPECT_EQ(again.what(), "");
  EXPECT_EQ(calls, 2);
}

TEST(FaultScope, IsOfItsThreadAndTheInnermost) {
  EXPECT_EQ(FaultScope::current(), nullptr);
  FaultScope outer;
  {
    FaultScope inner;
    EXPECT_EQ(FaultScope::current(), &inner);
  }
  EXPECT_EQ(FaultScope::current(), &outer);
}

TEST(FaultScopeDeathTest, OtherFaultsEndTheProcessAsBefore) {
  Page page;
  EXPECT_DEATH(
      {
        FaultScope scope;
        read_byte(page.at);
      },
      "");
}

TEST(ClosedPage, CanBeWrittenAgainWhenItIsOpen) {
  auto* at = static_cast<std::byte*>(std::aligned_alloc(fence_page_bytes, fence_page_bytes));
  at[5] = std::byte{7};
  close_pages(at);
  open_pages(at);
  EXPECT_EQ(at[5], std::byte{7});
  std::free(at);
}

}  // namespace
}  // namespace hone
