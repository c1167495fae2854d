// Checks the error limit of every operation of one real number, and that docs/ulp.md lists all of
// them.
#include "test/ulp/ulp.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "base/sanitizer.h"

namespace hone::ulp {
namespace {

constexpr bool is_instrumented = with_address_sanitizer || with_thread_sanitizer;

class Ulp : public testing::TestWithParam<DType> {};

TEST_P(Ulp, ErrorOfEveryUnaryOperation) {
  const std::uint64_t step = is_instrumented ? 65'537 : 8'191;
  for (const Unary& u : unaries())
    for (const char* target : {"x86-64-v3", "native"}) {
      const Error e = measure(u, GetParam(), step, target);
      EXPECT_LE(e.worst, u.limit) << u.op->name << " of " << e.at << " is " << e.got << ", not "
                                  << e.exact << ", on " << target;
    }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, Ulp, testing::Values(DType::f16, DType::bf16, DType::f32),
                         [](const auto& i) { return cat(i.param); });

TEST(UlpTable, HasEveryUnaryOperation) {
  std::ifstream in(HONE_SOURCE_DIR "/docs/ulp.md");
  std::stringstream text;
  text << in.rdbuf();
  std::set<std::string_view> measured;
  for (const Unary& u : unaries()) {
    measured.insert(u.op->name);
    EXPECT_NE(text.str().find(cat("| ", u.op->name, " |")), std::string::npos) << u.op->name;
  }
  for (const Op* op : all_ops()) {
    if (op->kind != OpKind::elementwise || !op->samples) continue;
    const Samples samples = op->samples();
    const bool is_unary = samples[0].operands.size() == 1 && is_float(samples[0].operands[0].dtype);
    if (is_unary && op != &ops::cast && op != &ops::bitcast) {
      EXPECT_TRUE(measured.contains(op->name)) << op->name << " is not measured";
    }
  }
}

}  // namespace
}  // namespace hone::ulp
