#include "api/hone.h"

#include <algorithm>

#include "backend/devices/devices.h"
#include "runtime/prepare.h"

namespace hone {

namespace {

// Names identify values in messages, plans and files.
template <class Named>
void check_name(const Named& taken, std::string_view what, const std::string& name) {
  if (name.empty()) throw UserError("builder: an ", what, " needs a name");
  for (const auto& t : taken)
    if (t.name == name)
      throw UserError("builder: ", what, " '", name, "' already exists; give each a unique name");
}

}  // namespace

Value Builder::add_input(const Type& type, std::string name, bool is_donated) {
  check_name(function_.params(), "input", name);
  if (!type.is_tensor())
    throw UserError("builder: input '", name, "' is ", type, ", expected a tensor");
  for (const Dim& d : type.shape.dims)
    if (d.low() < 0)
      throw UserError("builder: input '", name, "' is ", type, ", expected sizes of 0 or more");
  return function_.add_param(type, std::move(name), is_donated);
}

void Builder::output(Value v, std::string name) {
  check_name(function_.results(), "output", name);
  if (!v || &v.graph() != &function_.graph())
    throw UserError("builder: output '", name, "' is ",
                    v ? "a value of another builder" : "an empty value",
                    "; give a value that this builder's operations made");
  function_.add_result(v, std::move(name));
}

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
  if (plan.graph.empty())
    throw UserError(plan.name,
                    ": the plan was written without its graph (--strip); use the model it was made "
                    "from");
  Source out{plan.name, {}, {}};
  constexpr std::string_view between = "\nnext variant\n";
  // Variants for other targets and machines have the same guards.
  std::vector<std::vector<Guard>> guards;
  for (const Variant& v : plan.variants)
    if (std::ranges::find(guards, v.guards) == guards.end()) guards.push_back(v.guards);
  for (std::string_view rest = plan.graph; !rest.empty();) {
    const std::size_t end = std::min(rest.find(between), rest.size());
    const std::size_t i = out.variants.size();
    if (i == guards.size())
      throw UserError(plan.name,
                      ": the plan's graph does not belong to it; compile the plan again");
    out.variants.push_back({guards[i], parse(rest.substr(0, end), find_op, plan.graph_arrays)});
    rest.remove_prefix(std::min(end + between.size(), rest.size()));
  }
  return out;
}

std::unique_ptr<Session> open_session(const Plan& plan, SessionOptions options) {
  return std::make_unique<Session>(
      load_plan(std::make_shared<const Plan>(plan), open_devices(plan)), std::move(options));
}

}  // namespace hone
