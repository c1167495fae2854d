#include "api/compiler.h"

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

void Builder::output(Value v, std::string name) { add_output(v, std::move(name), std::nullopt); }

void Builder::output(Value v, std::string name, Value stored_to) {
  const auto is_it = [&](const Function::Param& p) { return p.value == stored_to; };
  const auto& params = function_.params();
  const auto param = std::ranges::find_if(params, is_it);
  if (param == params.end() || !param->donated)
    throw UserError("builder: output '", name,
                    "' is to be stored to a value that is no donated input; make it with "
                    "donated_input()");
  if (v && !(v.type() == stored_to.type()))
    throw UserError("builder: output '", name, "' is ", v.type(), ", expected ", stored_to.type(),
                    " as of input '", param->name, "', to which it is stored");
  const auto index = static_cast<std::uint32_t>(param - params.begin());
  for (const Function::Result& r : function_.results())
    if (r.stored_to == index)
      throw UserError("builder: outputs '", r.name, "' and '", name, "' are both stored to input '",
                      param->name, "'; at most one may be");
  add_output(v, std::move(name), index);
}

void Builder::add_output(Value v, std::string name, std::optional<std::uint32_t> stored_to) {
  check_name(function_.results(), "output", name);
  if (!v || &v.graph() != &function_.graph())
    throw UserError("builder: output '", name, "' is ",
                    v ? "a value of another builder" : "an empty value",
                    "; give a value that this builder's operations made");
  function_.add_result(v, std::move(name), stored_to);
}

std::unique_ptr<Session> open_session(const Plan& plan, SessionOptions options) {
  return std::make_unique<Session>(
      load_plan(std::make_shared<const Plan>(plan), open_devices(plan)), std::move(options));
}

}  // namespace hone
