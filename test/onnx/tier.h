// Which part of the suite a test belongs to, by what its model holds.
#pragma once

#include <string>

#include "test/onnx/suite.h"

namespace hone::conformance {

// Of node tests: core, small types (8 bits of float, 4 and 2 bits), sequences, strings,
// ai.onnx.ml, training; the first that fits from the back. Of others: their folder.
std::string tier_of(const Case&);

}  // namespace hone::conformance
