// Small changes of made-up inputs, of which a search tries one after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "verify/model/contents.h"

namespace hone {

struct InputState {
  Sizing sizes;
  std::vector<Contents> contents;  // by parameter
};

// Other contents of a parameter, or another size.
struct InputMove {
  std::size_t param = 0;
  Contents contents = {};
  std::string symbol = {};  // empty: the parameter changes
  std::int64_t size = 0;
};
InputState moved(InputState, const InputMove&);

// Contents that may be tried for any input of the dtype; of integers, constants up to `most`.
std::vector<Contents> whole_contents(DType, double most);
// Changes of parameter i, of all its elements or, if it is small, of one or two. `excess`: by how
// much a number is outside of its range. `may_be_sizes`: small inputs may hold sizes of tensors,
// which must not become large all at once.
void add_moves(std::size_t i, const Array& now, const Contents&, double excess, bool may_be_sizes,
               std::vector<InputMove>& out);
std::vector<InputMove> size_moves(const Dims& symbols, const Sizing&, double excess);

}  // namespace hone
