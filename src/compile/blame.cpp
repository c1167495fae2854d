#include "compile/blame.h"

#include "compile/compile.h"
#include "verify/sizes.h"

namespace hone {

namespace {

const SourceVariant& variant_for(const Source& source, const std::vector<Array>& inputs) {
  std::vector<std::vector<std::int64_t>> dims;
  for (const Array& a : inputs) dims.push_back(a.dims());
  for (const SourceVariant& v : source.variants)
    if (guards_hold(v.guards, bind_sizes(v.function, dims))) return v;
  throw UserError(source.name, ": no variant of the model supports these sizes");
}

}  // namespace

std::optional<Difference> first_difference(const Source& source, const CompileOptions& options,
                                           const std::vector<Array>& inputs) {
  const SourceVariant& variant = variant_for(source, inputs);
  CompileOptions unverified = options;
  unverified.verification = Verification::none;
  const auto make = [&](const Function& f) {
    return compile({source.name, {{variant.guards, f}}, {inputs}}, unverified);
  };
  return first_difference(variant.function, make, inputs, options.threads);
}

}  // namespace hone
