// Faults that only few inputs, sizes or places of memory show, each with a model in which it is
// planted.
#pragma once

#include <vector>

#include "test/fault/fault.h"
#include "test/fault/models.h"

namespace hone::test {

struct Hole {
  Fault fault;
  SmallModel model;  // its inputs give wrong numbers, unless the fault only reads foreign memory
};

std::vector<Hole> hole_faults();

}  // namespace hone::test
