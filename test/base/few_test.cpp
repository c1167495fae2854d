// Few against std::vector: random changes of both, with elements that own heap.
#include "base/few.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace hone {
namespace {

using List = Few<std::string, 3>;

std::string word(std::mt19937& rng) {
  return std::string(rng() % 40, static_cast<char>('a' + rng() % 26));
}

void expect_same(const List& list, const std::vector<std::string>& expected) {
  ASSERT_TRUE(std::equal(list.begin(), list.end(), expected.begin(), expected.end()));
  EXPECT_EQ(list.is_inside(), list.capacity() == 3);
}

void change(List& list, std::vector<std::string>& expected, std::mt19937& rng) {
  const std::size_t n = expected.size(), at = rng() % (n + 1), from = rng() % (n + 1);
  const auto first = static_cast<std::ptrdiff_t>(std::min(at, from)),
             last = static_cast<std::ptrdiff_t>(std::max(at, from));
  const std::string w = word(rng);
  switch (rng() % 8) {
    case 0:
      list.push_back(w), expected.push_back(w);
      break;
    case 1:
      if (n > 0) list.push_back(list.front()), expected.push_back(std::string(expected.front()));
      break;
    case 2:
      list.insert(list.begin() + first, w), expected.insert(expected.begin() + first, w);
      break;
    case 3:
      list.erase(list.begin() + first, list.begin() + last);
      expected.erase(expected.begin() + first, expected.begin() + last);
      break;
    case 4:
      list.resize(at, w), expected.resize(at, w);
      break;
    case 5: {
      const std::vector<std::string> more(rng() % 4, w);
      list.insert(list.begin() + first, more.begin(), more.end());
      expected.insert(expected.begin() + first, more.begin(), more.end());
      break;
    }
    case 6:
      EXPECT_EQ(erase_if(list, [&](const std::string& s) { return s.size() % 2 == 0; }),
                std::erase_if(expected, [&](const std::string& s) { return s.size() % 2 == 0; }));
      break;
    default:
      list.assign(at, w), expected.assign(at, w);
  }
}

TEST(Few, ChangesLikeAVector) {
  std::mt19937 rng(7);
  List list;
  std::vector<std::string> expected;
  for (int i = 0; i < 4000; ++i) {
    change(list, expected, rng);
    expect_same(list, expected);
    if (expected.size() > 12) list.clear(), expected.clear();
  }
}

TEST(Few, CopiesAndMovesInsideAndOnTheHeap) {
  for (std::size_t n : {0, 2, 3, 4, 9}) {
    const std::vector<std::string> words(n, std::string(30, 'w'));
    List made(words.begin(), words.end()), copy = made;
    expect_same(copy, words);
    List moved = std::move(made);
    expect_same(moved, words);
    EXPECT_TRUE(made.empty() && made.is_inside());  // NOLINT: what moving leaves
    made = copy;
    expect_same(made, words);
    List other{"x"};
    other = std::move(made);
    expect_same(other, words);
    EXPECT_EQ(other, copy);
    EXPECT_THROW(other.at(n), std::out_of_range);
  }
}

}  // namespace
}  // namespace hone
