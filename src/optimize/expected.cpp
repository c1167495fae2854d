#include "optimize/expected.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "backend/devices/devices.h"
#include "base/amount.h"
#include "runtime/session.h"

namespace hone {

namespace {

double largest(const Array& a) {
  double most = 0;
  for (std::int64_t i = 0; i < a.count(); ++i)
    if (std::isfinite(a.real(i))) most = std::max(most, std::fabs(a.real(i)));
  return most;
}

}  // namespace

Tolerance Tolerance::of(DType t) const {
  const bool narrow = t == DType::f16 || t == DType::bf16;
  return {atol >= 0 ? atol : narrow ? 2e-3 : 1e-4, rtol >= 0 ? rtol : narrow ? 1e-2 : 1e-3};
}

Comparison compare_expected(const Array& got, const Array& expected, const Tolerance& given) {
  const Tolerance t = given.of(expected.dtype());
  return within(got, expected, t.atol * largest(expected), t.rtol);
}

void check_expected(const Plan& plan, std::span<const StoredSet> sets, int threads) {
  const auto shared = std::make_shared<const Plan>(plan);
  Session session(Executable::load(shared, open_devices(*shared)), {.threads = threads});
  for (const StoredSet& s : sets) {
    if (s.outputs.empty()) continue;
    const std::vector<Array> got = session.run(s.inputs);
    if (got.size() != s.outputs.size())
      throw UserError(s.path.string(), ": contains ", amount(s.outputs.size(), "output", "outputs"),
                      ", expected ", got.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      if (const Comparison c = compare_expected(got[i], s.outputs[i]); !c.ok)
        throw UserError(
            s.path.string(), ": result ", i, " '", plan.main().results[i].name,
            "' differs from output_", i, ".pb: ", c,
            "; the reference agrees with the plan, so the stored output or the import of "
            "the model is wrong; nothing was written");
  }
}

}  // namespace hone
