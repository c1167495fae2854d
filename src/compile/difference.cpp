#include "compile/difference.h"

#include "backend/backend.h"
#include "runtime/session.h"

namespace hone {

namespace {

// Every tensor that is computed from data, in order; constants and sizes are not.
Values inner_values(const Function& f) {
  Values out;
  for (NodeId n : live_nodes(f)) {
    if (f.graph().op(n).kind == OpKind::leaf) continue;
    for (std::size_t i = 0; i < f.graph().result_count(n); ++i)
      if (f.graph().type(n, i).is_tensor()) out.push_back(Value(&f.graph(), n).result(i));
  }
  return out;
}

Function with_results(const Function& f, const Values& wanted) {
  Function out = clone_params(f);
  Copier copy(f, out);
  for (NodeId n : live_nodes(f))
    if (!copy.has(n)) copy.copy(n);
  for (const Value& v : wanted) out.add_result(copy(v));
  return out;
}

const SourceVariant& variant_for(const Source& source, const std::vector<Array>& inputs) {
  std::vector<std::vector<std::int64_t>> dims;
  for (const Array& a : inputs) dims.push_back(a.dims());
  for (const SourceVariant& v : source.variants)
    if (guards_hold(v.guards, bind_sizes(v.function, dims))) return v;
  throw UserError(source.name, ": no variant serves these sizes");
}

}  // namespace

std::optional<Difference> first_difference(const Source& source, const CompileOptions& options,
                                           const std::vector<Array>& inputs) {
  const SourceVariant& variant = variant_for(source, inputs);
  Values wanted = inner_values(variant.function);
  Function f = with_results(variant.function, wanted);
  std::vector<Wide> strict = evaluate_wide(f, inputs, Mode::stepwise);
  std::vector<Wide> wide = evaluate_wide(f, inputs, Mode::wide);
  CompileOptions unchecked = options;
  unchecked.verification = Verification::none;  // what is wrong shall run
  auto plan = std::make_shared<const Plan>(
      compile({source.name, {{variant.guards, f}}, {inputs}}, unchecked));
  Session session(Executable::load(plan, open_device("cpu")), {.threads = options.threads});
  std::vector<Array> got = session.run(inputs);
  for (std::size_t i = 0; i < got.size(); ++i) {
    Comparison c = accept(got[i], strict[i], wide[i]);
    if (!c.ok)
      return Difference{
          cat(wanted[i].op().name, " ", wanted[i].type(), " of ", origins_text(wanted[i])), c};
  }
  return std::nullopt;
}

}  // namespace hone
