#include "kernel/invariant.h"

#include <algorithm>
#include <unordered_set>

#include "kernel/positions.h"
#include "ops/ops.h"

namespace hone {

Reads ReadsOf::operator()(const Value& v) {
  if (auto it = known_.find(v.node()); it != known_.end()) return it->second;
  auto holds_register = [](const Dim& d) {
    return std::ranges::any_of(d.symbols(), [](const Dim& s) { return bool(register_of(s)); });
  };
  Reads reads;
  reads.registers = v.is(ops::reg) || v.is(ops::tile_element) ||
                    (v.is(ops::dims) && holds_register(v.attrs().dims("dims").at(0)));
  if (v.is(ops::load)) {
    const auto param = static_cast<std::size_t>(v.attrs().integer("param"));
    reads.written = param >= kernel_.params.size() || kernel_.params[param].written;
    reads.registers = holds_register(v.attrs().dims("offset").at(0));
  }
  for (std::size_t i = 0; i < v.operand_count(); ++i) {
    const Reads inner = (*this)(v.operand(i));
    reads.registers |= inner.registers;
    reads.written |= inner.written;
  }
  known_.emplace(v.node(), reads);
  return reads;
}

namespace {

class Search {
 public:
  Search(const Dims& inner, ReadsOf& reads, const std::function<bool(const Value&)>& is_known,
         const std::function<void(const Value&)>& compute)
      : inner_(inner), reads_(reads), is_known_(is_known), compute_(compute) {}

  void in(const Block& block) {
    for (const Stmt& s : block) {
      if (s.value) in(s.value);
      if (s.condition) in(s.condition);
      if (s.kind != Stmt::Kind::branch && (s.kind != Stmt::Kind::loop || s.extent.low() > 0))
        in(s.body);
    }
  }

 private:
  void in(const Value& v) {
    if (is_known_(v) || !seen_.insert(v.node()).second) return;
    const Reads reads = reads_(v);
    if (!reads.registers && !reads.written && !depends(v)) return compute_(v);
    for (std::size_t i = 0; i < v.operand_count(); ++i) in(v.operand(i));
  }

  bool depends(const Value& v) {
    if (auto it = depends_.find(v.node()); it != depends_.end()) return it->second;
    bool is_one = (v.is(ops::load) && mentions(v.attrs().dims("offset").at(0))) ||
                  (v.is(ops::dims) && mentions(v.attrs().dims("dims").at(0)));
    for (std::size_t i = 0; i < v.operand_count() && !is_one; ++i) is_one = depends(v.operand(i));
    depends_.emplace(v.node(), is_one);
    return is_one;
  }
  bool mentions(const Dim& d) const {
    return std::ranges::any_of(d.symbols(), [&](const Dim& s) {
      return std::ranges::any_of(inner_, [&](const Dim& i) { return i == s; });
    });
  }

  const Dims& inner_;
  ReadsOf& reads_;
  const std::function<bool(const Value&)>& is_known_;
  const std::function<void(const Value&)>& compute_;
  std::unordered_set<NodeId> seen_;
  std::unordered_map<NodeId, bool> depends_;
};

}  // namespace

void for_each_invariant(const Block& block, const Dims& inner, ReadsOf& reads,
                        const std::function<bool(const Value&)>& is_known,
                        const std::function<void(const Value&)>& compute) {
  Search(inner, reads, is_known, compute).in(block);
}

}  // namespace hone
