// Every target runs on every file of its corpus: seeds and former findings.
#include <gtest/gtest.h>

#include <fstream>

#include "test/fuzz/targets.h"

namespace hone::fuzz {
namespace {

namespace fs = std::filesystem;

class Corpus : public testing::TestWithParam<Target> {};

TEST_P(Corpus, IsAnswered) {
  const Target& target = GetParam();
  int files = 0;
  for (const auto& entry :
       fs::directory_iterator(fs::path(HONE_SOURCE_DIR "/test/fuzz/corpus") / target.corpus)) {
    SCOPED_TRACE(entry.path().filename().string());
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string content{std::istreambuf_iterator<char>(in), {}};
    EXPECT_NO_THROW(target.run(std::as_bytes(std::span(content))));
    ++files;
  }
  EXPECT_GE(files, 5);
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Corpus, testing::ValuesIn(targets),
                         [](const auto& i) { return std::string(i.param.name); });

}  // namespace
}  // namespace hone::fuzz
