#include "base/process.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"

namespace hone {
namespace {

ProcessResult run(std::vector<std::string> argv) { return run_process(argv); }

TEST(Process, GivesOutputAndStatus) {
  ProcessResult r = run({"sh", "-c", "echo out; echo err >&2; exit 3"});
  EXPECT_EQ(r.status, 3);
  EXPECT_EQ(r.output, "out\nerr\n");
  EXPECT_EQ(run({"sh", "-c", "kill -9 $$"}).status, 128 + 9);
}

TEST(Process, ArgumentsAreNoCommandLine) {
  EXPECT_EQ(run({"printf", "%s|", "a b", "$HOME;", "'"}).output, "a b|$HOME;|'|");
}

TEST(Process, LongOutputIsRead) {
  EXPECT_EQ(run({"head", "-c", "300000", "/dev/zero"}).output.size(), 300000u);
}

TEST(Process, WhatCannotBeStartedIsNamed) {
  try {
    run({"no-such-program-of-hone"});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("no-such-program-of-hone"), std::string::npos) << e.what();
  }
  EXPECT_FALSE(find_program("no-such-program-of-hone"));
  EXPECT_TRUE(find_program("sh"));
}

}  // namespace
}  // namespace hone
