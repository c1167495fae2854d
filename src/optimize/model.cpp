#include "optimize/model.h"

#include <utility>

#include "optimize/fit.h"
#include "optimize/prove.h"
#include "optimize/source.h"

namespace hone {

OptimizedModel optimize_model(const std::filesystem::path& model, const std::filesystem::path& plan,
                              const ModelRequest& request) {
  KnownInputs known;
  for (const StoredSet& s : request.sets) known.sets.push_back(s.inputs);
  FittedImport fitted = import_fitting(model, request.import, known);
  const Imported& imported = fitted.imported;
  OptimizedModel out;
  out.warnings = imported.warnings;
  out.warnings.insert(out.warnings.end(), fitted.notes.begin(), fitted.notes.end());
  out.warnings.insert(out.warnings.end(), imported.contradictions.begin(),
                      imported.contradictions.end());

  Source compiled = source(imported);
  const CompileOptions& options = request.optimize.compile;
  out.reading = checked_reading(model, fitted.options, compiled, imported.contradictions,
                                options.max_memory.value_or(0), request.accepted);
  if (std::string w = unjudged_warning(out.reading); !w.empty())
    out.warnings.push_back(std::move(w));
  compiled.samples = std::move(known.sets);
  const std::vector<StatePair> states = store_states(compiled, request.states);
  OptimizeRequest optimized = request.optimize;
  if (optimized.compile.verification == Verification::kernels)
    optimized.compile.verification = Verification::model;
  out.optimized = optimize(compiled, optimized);

  Plan& best = out.optimized.plan;
  check_expected(best, request.sets, options.threads);
  state_written_memory(plan, best, out.optimized.inputs, options.threads, options.max_memory);
  keep_states(best, states);
  out.bytes = write_proved(plan, best);
  return out;
}

}  // namespace hone
