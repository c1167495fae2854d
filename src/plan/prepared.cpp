#include "plan/prepared.h"

namespace hone {

bool is_prepared(const Plan& plan, const Variant& v) {
  bool has_all = true;
  for_each_step(v.prepare, [&](const Step& s) {
    for (std::size_t i = 0; i < s.operands.size(); ++i) {
      const PlanBuffer& b = v.buffers[s.operands[i].buffer];
      if (!s.written[i] || b.kind != PlanBuffer::Kind::prepared) continue;
      const PreparedBuffer& made = plan.prepared[b.index];
      has_all = has_all && (made.size() > 0 || byte_count(made.type) == Dim(0));
    }
  });
  return has_all;
}

}  // namespace hone
