#include "test/fault/kernel_change.h"

namespace hone::test {

bool any_statement(Block& block, const std::function<bool(Stmt&)>& f) {
  for (Stmt& s : block)
    if (f(s) || any_statement(s.body, f) || any_statement(s.otherwise, f)) return true;
  return false;
}

bool any_statement(Kernel& k, const std::function<bool(Stmt&)>& f) {
  return any_statement(k.body, f);
}

namespace {

class Rebuild {
 public:
  Rebuild(std::shared_ptr<Graph> to, ReplaceValue replace)
      : to_(std::move(to)), replace_(std::move(replace)) {}

  Value operator()(Value v) {
    if (!v) return v;
    if (auto it = done_.find(v); it != done_.end()) return it->second;
    Values operands;
    for (const Value& o : v.operands()) operands.push_back((*this)(o));
    Value made = replace_(*to_, v, operands);
    if (made) {
      ++count;
      HONE_ASSERT(made.type() == v.type(), "a planted fault must keep types");
    } else {
      std::vector<Type> types = v.graph().result_types(v.node());
      made = to_->intern_typed(v.op(), operands, v.attrs(), types);
    }
    return done_[v] = made.result(v.index());
  }

  int count = 0;

 private:
  std::shared_ptr<Graph> to_;
  ReplaceValue replace_;
  std::unordered_map<Value, Value, ValueHash> done_;
};

void rebuild(Block& block, Rebuild& f) {
  for (Stmt& s : block) {
    s.value = f(s.value);
    s.condition = f(s.condition);
    rebuild(s.body, f);
    rebuild(s.otherwise, f);
  }
}

}  // namespace

bool rebuild(Kernel& k, const ReplaceValue& replace) {
  auto to = std::make_shared<Graph>();
  Rebuild f(to, replace);
  rebuild(k.body, f);
  k.graph = to;
  return f.count > 0;
}

Break replacing(const Op& op, const ReplaceValue& make) {
  return [&op, make](Kernel& k) {
    return rebuild(k, [&](Graph& to, Value old, const Values& operands) -> Value {
      return old.is(op) ? make(to, old, operands) : Value();
    });
  };
}

}  // namespace hone::test
