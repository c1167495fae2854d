#include "pass/expand.h"

#include "ops/expand.h"
#include "ops/ops.h"
#include "pass/rewrite.h"

namespace hone {

Function expand(const Function& f) {
  return for_bodies_too(f, [](const Function& g) {
    return expand_composites(g, [](const Op& op) {
      return op.kind == OpKind::elementwise || op.is_row || &op == &ops::attention;
    });
  });
}

}  // namespace hone
