#include "kernel/problem/rest.h"

namespace hone {

void add_rest(Candidate& out, const GroupSpec& spec, const AnchoredGroup& group,
              std::span<const Left> left,
              const std::function<Value(std::span<const Value>)>& anchor,
              const NestMaker& make_nest) {
  using Kind = Candidate::Operand::Kind;
  GroupSpec rest = spec;
  rest.function =
      transform(group.function(), [&](NodeId n, Copier&, Function& to) -> std::vector<Value> {
        if (n != group.anchor().node()) return {};
        Values read;
        for (const Left& l : left) read.push_back(to.add_param(l.type, cat("left", read.size())));
        return {anchor(read)};
      });
  const auto first = static_cast<int>(spec.param_strides.size());
  for (const Left& l : left) {
    rest.param_strides.push_back(dense_strides(l.type.shape));
    rest.param_is_weight.push_back(false);
  }
  Candidate nest = make_nest(rest);
  const auto shift = static_cast<int>(out.temporaries.size());
  for (Candidate::Step& step : nest.steps) {
    for (Candidate::Operand& o : step.operands)
      if (o.kind == Kind::temporary)
        o.index += shift;
      else if (o.kind == Kind::param && o.index >= first)
        o = {Kind::temporary, left[static_cast<std::size_t>(o.index - first)].temporary};
    out.steps.push_back(std::move(step));
  }
  for (Candidate::Temporary& t : nest.temporaries) out.temporaries.push_back(std::move(t));
}

}  // namespace hone
