// The interfaces that users see: C, its C++ layer, and building models in C++.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "api/compiler.h"
#include "api/runtime/runtime.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

// y = softmax(x w), saved as a plan file with a batch of any size.
class Api : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = fs::temp_directory_path() / cat("hone_api_test_", ::getpid());
    fs::create_directories(directory_);
    fs::permissions(directory_, fs::perms::owner_all);
    ::setenv("HONE_CACHE_DIR", directory_.c_str(), 1);
    Builder b;
    Value x = b.input(f32({Dim::symbol("batch", 1, 64), 8}), "x");
    std::vector<float> numbers;
    for (int i = 0; i < 8 * 4; ++i) numbers.push_back(0.1f * static_cast<float>(i % 7) - 0.3f);
    Value w = b.weight(Array::of<float>(DType::f32, {8, 4}, numbers));
    b.output(ops::softmax(ops::matmul(x, w), {{"axis", 1}}), "y");
    write_plan(file(), compile(source(b.function(), "small"), {.strategy = "cpu"}));
  }
  static void TearDownTestSuite() { fs::remove_all(directory_); }
  static std::string file() { return (directory_ / "small.hone").string(); }
  static fs::path directory_;
};
fs::path Api::directory_;

TEST_F(Api, RunsAPlanFileFromCpp) {
  runtime::Executable executable(file());
  ASSERT_EQ(executable.inputs(), 1);
  EXPECT_STREQ(executable.input(0).name, "x");
  EXPECT_EQ(executable.input(0).dims[0], -1);
  EXPECT_EQ(executable.input(0).dims[1], 8);
  runtime::Session session(executable, {.threads = 2});
  for (int64_t batch : {1, 5}) {
    std::vector<float> x(static_cast<std::size_t>(batch) * 8, 0.5f),
        y(static_cast<std::size_t>(batch) * 4);
    session.bind_input(0, {batch, 8}, x);
    EXPECT_EQ(session.output_dims(0), (runtime::Dims{batch, 4}));
    session.bind_output(0, {batch, 4}, y);
    session.run();
    for (std::size_t i = 0; i < y.size(); i += 4)
      EXPECT_NEAR(y[i] + y[i + 1] + y[i + 2] + y[i + 3], 1, 1e-6);
    session.submit();
    session.wait();
    EXPECT_TRUE(session.poll());
  }
  EXPECT_GT(session.memory().peak, 0u);
}

TEST_F(Api, ErrorsAreStatusesWithTheirReason) {
  hone_executable* e = nullptr;
  EXPECT_EQ(hone_load("/nowhere.hone", &e), HONE_ERROR_USER);
  EXPECT_NE(std::string(hone_last_error()).find("/nowhere.hone"), std::string::npos);
  EXPECT_EQ(hone_load(nullptr, &e), HONE_ERROR_USER);
  runtime::Executable executable(file());
  hone_tensor_info info;
  EXPECT_EQ(hone_input_info(executable.get(), 7, &info), HONE_ERROR_USER);
  runtime::Session session(executable);
  std::vector<float> x(9), y(4);
  try {
    session.bind_input(0, {1, 9}, x);
    session.bind_output(0, {1, 4}, y);
    session.run();
    FAIL();
  } catch (const runtime::Error& error) {
    EXPECT_EQ(error.status, HONE_ERROR_USER);
    EXPECT_NE(std::string(error.what()).find("9"), std::string::npos) << error.what();
  }
}

TEST_F(Api, TheCallersPoolAndMemoryAreUsed) {
  struct Counts {
    std::atomic<int> jobs{0}, allocations{0}, live{0};
  } counts;
  hone_pool pool = {
      &counts, 1,
      [](void* context, int64_t chunks, void (*body)(void*, int64_t, int64_t, int), void* arg) {
        ++static_cast<Counts*>(context)->jobs;
        body(arg, 0, chunks, 0);
      }};
  hone_allocator allocator = {&counts,
                              [](void* context, size_t bytes) -> void* {
                                auto& c = *static_cast<Counts*>(context);
                                ++c.allocations;
                                ++c.live;
                                return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
                              },
                              [](void* context, void* p, size_t) {
                                --static_cast<Counts*>(context)->live;
                                std::free(p);
                              }};
  {
    runtime::Executable executable(file());
    runtime::Session session(executable, {.pool = &pool, .allocator = &allocator});
    std::vector<float> x(64 * 8, 0.25f), y(64 * 4);
    session.bind_input(0, {64, 8}, x);
    session.bind_output(0, {64, 4}, y);
    session.run();
    EXPECT_GT(counts.allocations, 0);
    int before = counts.allocations;
    for (int i = 0; i < 100; ++i) session.run();
    EXPECT_EQ(counts.allocations, before);
  }
  EXPECT_EQ(counts.live, 0);
}

TEST_F(Api, WhatACallersFunctionThrowsIsAStatus) {
  runtime::Executable executable(file());
  hone_allocator allocators[] = {
      {nullptr, [](void*, size_t) -> void* { throw std::runtime_error("no memory today"); },
       nullptr},
      {nullptr, [](void*, size_t) -> void* { throw 7; }, nullptr},
      {nullptr, [](void*, size_t) -> void* { return nullptr; }, nullptr}};
  const char* said[] = {"no memory today", "an unknown exception", "alloc failed"};
  const int64_t in[] = {64, 8}, out[] = {64, 4};
  std::vector<float> x(64 * 8, 0.25f), y(64 * 4);
  for (int i = 0; i < 3; ++i) {
    allocators[i].free = [](void*, void*, size_t) {};
    hone_session_options options = {};
    options.allocator = &allocators[i];
    hone_session* session = nullptr;
    ASSERT_EQ(hone_session_create(executable.get(), &options, &session), HONE_OK);
    EXPECT_EQ(hone_bind_input(session, 0, HONE_F32, in, 2, x.data(), 64 * 8 * sizeof(float)),
              HONE_OK);
    EXPECT_EQ(hone_bind_output(session, 0, HONE_F32, out, 2, y.data(), 64 * 4 * sizeof(float)),
              HONE_OK);
    EXPECT_NE(hone_run(session), HONE_OK);
    EXPECT_NE(std::string(hone_last_error()).find(said[i]), std::string::npos) << hone_last_error();
    hone_session_free(session);
  }
}

TEST_F(Api, MemoryLimitsAreRefusedWithTheNeed) {
  runtime::Executable executable(file());
  runtime::Session session(executable, {.max_memory = 64});
  std::vector<float> x(64 * 8), y(64 * 4);
  try {
    session.bind_input(0, {64, 8}, x);
    session.bind_output(0, {64, 4}, y);
    session.run();
    FAIL();
  } catch (const runtime::Error& error) {
    EXPECT_NE(std::string(error.what()).find("64"), std::string::npos) << error.what();
  }
}

TEST_F(Api, ADeadlineInThePastEndsTheRun) {
  runtime::Executable executable(file());
  runtime::Session session(executable);
  std::vector<float> x(8), y(4);
  session.bind_input(0, {1, 8}, x);
  session.bind_output(0, {1, 4}, y);
  session.set_deadline(0);
  try {
    session.run();
    FAIL();
  } catch (const runtime::Error& error) {
    EXPECT_EQ(error.status, HONE_DEADLINE);
  }
  session.set_deadline(-1);
  session.run();
}

TEST(BuilderApi, ErrorsNameTheLineThatBuiltTheNode) {
  Builder b;
  Value x = b.input(f32({2, 3}), "x"), y = b.input(f32({4, 5}), "y");
  try {
    ops::matmul(x, y);
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find(cat("api_test.cpp:", __LINE__ - 3)), std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace hone
