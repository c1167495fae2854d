#include "compile/guilty.h"

#include "verify/model/guilty.h"

namespace hone {

std::string guilty_pass(const SourceVariant& variant, const PassOptions& options,
                        const std::vector<Array>& inputs) try {
  PassOptions kept = options;
  kept.keep = true;
  kept.watch = nullptr;
  std::vector<PassRecord> records;
  run_passes(narrowed(variant), kept, &records);
  std::vector<Stage> stages;
  for (const PassRecord& r : records)
    if (r.changed && r.after) stages.push_back({r.name, r.rules, *r.after});
  return guilty_pass(variant.function, stages, inputs);
} catch (const UserError& e) {
  return cat("; the pass at fault is unknown: ", e.what());
}

}  // namespace hone
