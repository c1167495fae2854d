// Everything: build or import a function, compile it to a plan, save it, run it. Programs that only
// run plans include <hone/runtime.h> instead and link no compiler.
#pragma once

#include "compile/compile.h"
#include "compile/optimize.h"
#include "export/onnx/export.h"
#include "import/import.h"
#include "import/tensor_file.h"
#include "ops/common.h"
#include "plan/plan_file.h"
#include "ref/compare.h"
#include "runtime/session.h"
#include "type/text.h"

namespace hone {

// A function under construction from C++: the lines that call operations stand in errors and in
// what explains the plan.
class Builder {
 public:
  Builder() { function_.graph().record_source(true); }

  Value input(const Type& type, std::string name) {
    return function_.add_param(type, std::move(name));
  }
  // Its memory may become that of a result (in-place updates).
  Value donated_input(const Type& type, std::string name) {
    return function_.add_param(type, std::move(name), true);
  }
  // Data that is part of the model.
  Value weight(const Array& data) { return constant(function_.graph(), data); }
  void output(Value v, std::string name) { function_.add_result(v, std::move(name)); }
  const Function& function() const { return function_; }

 private:
  Function function_;
};

// One function, or an imported model, ready to compile.
Source source(const Function&, std::string name = "function");
Source source(const Imported&);

// Opens a session for a plan on the processor.
std::unique_ptr<Session> open_session(const Plan&, SessionOptions = {});

}  // namespace hone
