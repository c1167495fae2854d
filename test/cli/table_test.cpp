#include "cli/run/table.h"

#include <gtest/gtest.h>

#include "cli/strategy_table.h"

namespace hone::cli {
namespace {

TEST(Table, NumbersAreAlignedAtTheRightAndTextAtTheLeft) {
  Table t({"name", "value", "meaning"});
  t.add({"a", "1.5 ms", "-x. Integers wrap."});
  t.add({"b", "-", "0: no longer sentences begin with a number too"});
  t.add({"-3", "12", "short"});
  EXPECT_EQ(t.text(),
            "name  value   meaning\n"
            "a     1.5 ms  -x. Integers wrap.\n"
            "b          -  0: no longer sentences begin with a number too\n"
            "  -3      12  short\n");
}

// A chosen strategy beside one with a lower median, and why that one was not chosen.
TEST(Table, AChosenStrategyIsNotSlowerWithoutAWord) {
  const auto record = [](std::string name, double low, double ms, double high) {
    StrategyRecord r;
    r.name = std::move(name);
    r.low = low, r.ms = ms, r.high = high, r.ratio_to_best = ms;
    return r;
  };
  std::vector<StrategyRecord> records = {
      record("slower", 1.9, 2, 2.1), record("near", 0.9, 0.97, 1.1),
      record("faster", 0.3, 0.35, 0.4), record("auto", 0.95, 1, 1.05),
      record("broken", -1, -1, -1)};
  records[3].chosen = true;
  records[4].failure = "no such device";
  const std::string text = strategy_table(records);
  const auto line = [&](std::string_view name) {
    const std::size_t at = text.find("\n" + std::string(name)) + 1;
    return text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_EQ(line("slower").find("difference"), std::string::npos) << text;
  EXPECT_TRUE(line("near").ends_with("  no significant difference")) << text;
  EXPECT_TRUE(line("faster").ends_with("  faster, but an earlier run chose otherwise")) << text;
  EXPECT_TRUE(line("auto").ends_with("  <- chosen")) << text;
  EXPECT_TRUE(line("broken").ends_with("  no such device")) << text;
}

}  // namespace
}  // namespace hone::cli
