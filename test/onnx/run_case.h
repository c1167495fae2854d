// One test under one strategy: import, compile, run, compare as the suite's own runner does.
#pragma once

#include <string>

#include "test/onnx/outcome.h"
#include "test/onnx/suite.h"

namespace hone {
struct Backend;
}

namespace hone::conformance {

// Does not throw: exceptions become the verdict. A null backend means that of the strategy.
Outcome run_case(const Case&, const std::string& strategy, const Backend* = nullptr);

}  // namespace hone::conformance
