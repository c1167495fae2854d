// Strings and their numbers: equal strings have equal numbers, numbers are not reused, and a limit
// holds.
#include "type/text.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/error.h"

namespace hone {
namespace {

using namespace std::string_view_literals;

template <class F>
std::string refusal(const F& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Text, NumbersAreEqualWhenTheTextsAre) {
  const std::string_view texts[] = {"a", "", "b", "a\0b"sv, "\xff", "a"};
  const Array a = text_array({2, 3}, texts);
  EXPECT_EQ(a.dtype(), DType::text);
  for (std::int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(text_at(a, i), texts[i]);
    for (std::int64_t k = 0; k < 6; ++k)
      EXPECT_EQ(a.integer(i) == a.integer(k), texts[i] == texts[k]) << i << " " << k;
  }
  EXPECT_EQ(a.integer(1), 0);
  EXPECT_EQ(text_at(Array::zeros(DType::text, {1}), 0), "");
}

TEST(Text, ForgottenNumbersAreNotUsedAgain) {
  const std::uint64_t before = text_number("forgotten");
  forget_texts();
  EXPECT_NE(refusal([&] { text_of(before); }).find("is not a string of this process"),
            std::string::npos);
  EXPECT_NE(text_number("another"), before);
  EXPECT_NE(text_number("forgotten"), before);
  EXPECT_EQ(text_of(0), "");
}

TEST(Text, UnknownNumbersAndTooManyTextsAreRefused) {
  EXPECT_NE(refusal([] { text_of(~std::uint64_t{0}); }).find("is not a string of this process"),
            std::string::npos);
  const std::string large(most_text_bytes / 8, 'x');
  EXPECT_NE(refusal([&] { text_number(large + "x"); }).find("split it"), std::string::npos);
  EXPECT_NE(refusal([&] {
              for (int i = 0; i < 9; ++i) text_number(cat(i) + large.substr(1));
            }).find("exceeds the limit"),
            std::string::npos);
  forget_texts();
  EXPECT_EQ(text_of(text_number("room again")), "room again");
}

TEST(Text, ThreadsAgree) {
  constexpr int count = 1000;
  std::vector<std::vector<std::uint64_t>> numbers(4, std::vector<std::uint64_t>(count));
  {
    std::vector<std::jthread> threads;
    for (auto& mine : numbers)
      threads.emplace_back([&mine] {
        for (int i = 0; i < count; ++i) mine[static_cast<std::size_t>(i)] = text_number(cat(i));
      });
  }
  for (const auto& mine : numbers) EXPECT_EQ(mine, numbers[0]);
  for (int i = 0; i < count; ++i)
    EXPECT_EQ(text_of(numbers[0][static_cast<std::size_t>(i)]), cat(i));
}

}  // namespace
}  // namespace hone
