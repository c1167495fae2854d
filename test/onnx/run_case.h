// One test under one strategy: import, compile, run, compare as the suite's own runner does.
#pragma once

#include <string>

#include "test/onnx/outcome.h"
#include "test/onnx/suite.h"

namespace hone::conformance {

// Throws nothing: what is thrown below becomes the verdict.
Outcome run_case(const Case&, const std::string& strategy);

}  // namespace hone::conformance
