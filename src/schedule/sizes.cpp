#include "schedule/sizes.h"

#include "pass/map_sizes.h"

namespace hone {

Function with_sizes(const Function& body, std::span<const View> arguments) {
  SizeMap map;
  bool changes = false;
  for (std::size_t i = 0; i < body.params().size(); ++i) {
    const Dims& dims = body.param(i).shape().dims;
    for (std::size_t k = 0; k < dims.size(); ++k) {
      if (!dims[k].is_symbol()) continue;
      bool fresh = map.symbols.try_emplace(dims[k].name(), arguments[i].dims[k]).second;
      changes = changes || (fresh && dims[k] != arguments[i].dims[k]);
    }
  }
  return changes ? map_sizes(body, map) : body;
}

}  // namespace hone
