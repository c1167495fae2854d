#include "optimize/source.h"

#include <algorithm>

#include "ir/function.h"
#include "ops/ops.h"

namespace hone {

Source source(const Function& f, std::string name) { return {std::move(name), {{{}, f}}, {}}; }

Source source(const Imported& imported) {
  Source out;
  out.name = imported.name;
  for (const ImportedVariant& v : imported.variants) {
    SourceVariant variant{{}, v.function};
    for (const Assumption& a : v.assumptions)
      variant.guards.push_back({Guard::Kind::equal, a.condition, Dim(a.holds ? 1 : 0)});
    out.variants.push_back(std::move(variant));
  }
  return out;
}

Source source(const Plan& plan) {
  if (plan.main().graph.empty())
    throw UserError(plan.name,
                    ": the plan was written without its graph (--strip); use the model it was made "
                    "from");
  Source out{plan.name, {}, {}};
  constexpr std::string_view between = "\nnext variant\n";
  // Variants for other targets and machines have the same guards.
  std::vector<std::vector<Guard>> guards;
  for (const Variant& v : plan.main().variants)
    if (std::ranges::find(guards, v.guards) == guards.end()) guards.push_back(v.guards);
  for (std::string_view rest = plan.main().graph; !rest.empty();) {
    const std::size_t end = std::min(rest.find(between), rest.size());
    const std::size_t i = out.variants.size();
    if (i == guards.size())
      throw UserError(plan.name,
                      ": the plan's graph does not belong to it; compile the plan again");
    out.variants.push_back(
        {guards[i], parse(rest.substr(0, end), find_op, plan.main().graph_arrays)});
    rest.remove_prefix(std::min(end + between.size(), rest.size()));
  }
  return out;
}

}  // namespace hone
