#include "schedule/appended.h"

#include "ops/ops.h"

namespace hone {

bool is_appended(const Function& f, std::size_t result) {
  const Function::Result& r = f.results()[result];
  if (!r.stored_to || !r.value.is(ops::concat)) return false;
  const Function::Param& p = f.params()[*r.stored_to];
  return p.capacity && r.value.attrs().integer("axis") == p.capacity->axis &&
         r.value.operand(0) == p.value;
}

}  // namespace hone
