// The kernel interpreter against the reference: every nest that candidates generate for the samples
// of all operations.
#include <gtest/gtest.h>

#include "../codegen/cases.h"
#include "kernel/nest/nest_candidate.h"
#include "machines.h"
#include "run.h"

namespace hone::test {

namespace {

const TargetInfo target = with_vectors_of_256_bits();

std::string verdict_of(const harness::Case& c) {
  try {
    return harness::judge(c, [&](const Function& f, std::span<const Array> inputs) {
      return interpret_candidate(nest_candidate(spec_of(f), target), f, inputs, all_checks);
    });
  } catch (const std::exception& e) {
    return e.what();
  }
}

TEST(Interpret, EveryOperationAgreesWithTheReference) {
  int checked = 0;
  for (const harness::Case& c : as_codes(harness::all_cases())) {
    if (holds_control(c.function)) continue;
    EXPECT_EQ(verdict_of(c), "") << c.name << "\n" << print(c.function);
    ++checked;
  }
  EXPECT_GT(checked, 400);
}

TEST(Interpret, LargeNestsInPartsAgreeWithTheReference) {
  for (const Large& l : large_functions()) {
    SCOPED_TRACE(l.name);
    const Candidate candidate = nest_candidate(spec_of(l.function), target);
    const std::vector<Array> got =
        interpret_candidate(candidate, l.function, l.inputs, {}, l.is_chunked ? 3 : 1);
    const std::vector<Wide> strict = evaluate_wide(l.function, l.inputs, Mode::strict),
                            wide = evaluate_wide(l.function, l.inputs, Mode::wide);
    for (std::size_t i = 0; i < got.size(); ++i) {
      const Comparison r = accept(got[i], strict[i], wide[i]);
      EXPECT_TRUE(r.ok) << r;
    }
  }
}

}  // namespace

}  // namespace hone::test
