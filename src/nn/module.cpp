#include "nn/module.h"

#include <algorithm>

#include "base/error.h"
#include "tensor/trace.h"

namespace hone::nn {

struct Module::Data {
  Program program;
  std::string name;
  // In the order of declaration: a state of its own, or a module inside.
  struct Member {
    std::string name;
    Variable state;
    bool is_trained = false;
    std::shared_ptr<Data> module = nullptr;
  };
  std::vector<Member> members = {};

  void add(Member m) {
    if (m.name.empty()) throw UserError("module '", name, "': a member has no name");
    if (std::ranges::find(members, m.name, &Member::name) != members.end())
      throw UserError("module '", name, "' has a member '", m.name, "'; give each its own name");
    members.push_back(std::move(m));
  }
  void collect(Variables& out, bool only_trained) const {
    for (const Member& m : members)
      if (m.module)
        m.module->collect(out, only_trained);
      else if ((m.is_trained || !only_trained) && std::ranges::find(out, m.state) == out.end())
        out.push_back(m.state);
  }
};

Module::Module(Program& p, std::string name, Where at) {
  located(at, [&] {
    if (name.empty()) throw UserError("a module has no name; its states are named after it");
    data_ = std::make_shared<Data>(p, std::move(name));
  });
}

Module::Module(Module& parent, std::string name, Where at) {
  located(at, [&] {
    data_ = std::make_shared<Data>(parent.data_->program, parent.name() + "." + name);
    parent.data_->add({.name = std::move(name), .state = {}, .module = data_});
  });
}

const std::string& Module::name() const { return data_->name; }

Variables Module::parameters() const {
  Variables out;
  data_->collect(out, true);
  return out;
}

std::vector<std::pair<std::string, Variable>> Module::named_parameters() const {
  std::vector<std::pair<std::string, Variable>> out;
  for (const Variable& v : parameters()) out.emplace_back(v.name(), v);
  return out;
}

Variables Module::states() const {
  Variables out;
  data_->collect(out, false);
  return out;
}

Variable Module::parameter(const std::string& name, const Type& type, const Start& start,
                           Where at) {
  return located(at, [&] {
    const Variable v = data_->program.variable(data_->name + "." + name, type, start);
    data_->add({name, v, true});
    return v;
  });
}

Variable Module::buffer(const std::string& name, const Type& type, const Start& start, Where at,
                        std::string group) {
  return located(at, [&] {
    const Variable v =
        data_->program.variable(data_->name + "." + name, type, start, std::move(group));
    data_->add({name, v, false});
    return v;
  });
}

void Module::tie(const Variable& v) { data_->add({v.name(), v, true}); }

}  // namespace hone::nn
