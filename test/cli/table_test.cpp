#include "cli/run/table.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace hone::cli
