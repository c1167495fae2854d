#include "compile/precision.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/devices/devices.h"
#include "runtime/session.h"
#include "verify/whole.h"

namespace hone {

Source at_precision(const Source& source, Precision p) {
  Source out = source;
  for (SourceVariant& v : out.variants) v.function = with_precision(v.function, p);
  return out;
}

std::vector<PrecisionError> precision_errors(const Source& given, const Plan& plan, int threads,
                                             double most_gmac) {
  const auto unowned = std::shared_ptr<const Plan>(std::shared_ptr<void>(), &plan);
  Session session(Executable::load(unowned, open_devices(plan)), {.threads = threads});
  std::vector<PrecisionError> out;
  for (const SourceVariant& v : given.variants) {
    const Sizing sizes = sizes_to_time(given, v);
    if (static_cast<double>(flops_at(flops_of(v.function), sizes)) / 2e9 > most_gmac) return {};
    const std::vector<Array> inputs = inputs_to_time(given, v, sizes);
    const std::vector<Wide> wide = evaluate_wide(v.function, inputs, Mode::wide);
    const std::vector<Array> got = session.run(inputs);
    out.resize(got.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      out[i].name = plan.results[i].name;
      for (std::int64_t k = 0; k < std::ssize(wide[i].reals); ++k) {
        const double expected = wide[i].reals[static_cast<std::size_t>(k)];
        if (!std::isfinite(expected)) continue;
        const double error = std::fabs(got[i].real(k) - expected);
        out[i].largest_value = std::max(out[i].largest_value, std::fabs(expected));
        // An infinity or NaN instead of a number is an infinite error.
        out[i].largest_error = std::isfinite(error) ? std::max(out[i].largest_error, error)
                                                    : std::numeric_limits<double>::infinity();
      }
    }
  }
  std::erase_if(out, [](const PrecisionError& e) { return e.largest_value == 0; });
  return out;
}

}  // namespace hone
