#include "base/log.h"

#include <gtest/gtest.h>

#include <string>

namespace hone {
namespace {

TEST(Log, GoesToTheSinkUntilItIsGivenBack) {
  std::string heard;
  set_log_sink([](void* to, const char* text) { *static_cast<std::string*>(to) += text; }, &heard);
  log_warning("one");
  set_log_sink(nullptr, nullptr);
  testing::internal::CaptureStderr();
  log_warning("two");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "hone: warning: two\n");
  EXPECT_EQ(heard, "one");
}

}  // namespace
}  // namespace hone
