// The part of the suite that a test belongs to, by the contents of its model.
#pragma once

#include <string>

#include "test/onnx/suite.h"

namespace hone::conformance {

// For node tests: core, small types (8-bit floats, 4 and 2 bits), sequences, strings, ai.onnx.ml,
// training; the last one that fits. For others: their folder.
std::string tier_of(const Case&);

}  // namespace hone::conformance
