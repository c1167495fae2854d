// For those who extend the compiler or build on its parts: functions as graphs of operations,
// imports, compilation, plans, all reports. <hone/hone.h> is what models are built with;
// <hone/runtime.h> only runs plans and links no compiler.
#pragma once

#include "compile/compile.h"
#include "compile/optimize.h"
#include "compile/precision.h"
#include "compile/program.h"
#include "export/onnx/export.h"
#include "import/import.h"
#include "import/tensor_file.h"
#include "ops/common.h"
#include "optimize/model.h"
#include "optimize/source.h"
#include "plan/plan_file.h"
#include "ref/compare.h"
#include "runtime/session.h"
#include "type/text.h"

namespace hone {

// Builds a function from C++. Error messages and explanations of the plan name the source lines
// that called the operations. Values belong to the builder and must not be used after it is
// destroyed, unless function() was copied. Throws UserError for invalid arguments.
class Builder {
 public:
  Builder() { function_.graph().record_source(true); }

  // A value that the caller passes to every run. Callers bind by name: input names must be unique.
  Value input(const Type& type, std::string name) {
    return add_input(type, std::move(name), false);
  }
  // A result may reuse its memory (in-place updates).
  Value donated_input(const Type& type, std::string name) {
    return add_input(type, std::move(name), true);
  }
  // Data that is part of the model.
  Value weight(const Array& data) { return constant(function_.graph(), data); }
  // A value of this builder that every run returns; output names must be unique. The same value may
  // be several outputs.
  void output(Value v, std::string name);
  // An output whose value is in the memory of this donated input after every run, so that the next
  // run reads it there: in place where possible, else copied at the end of a run. Both have one
  // type; at most one output for each input.
  void output(Value v, std::string name, Value stored_to);
  const Function& function() const { return function_; }

 private:
  Value add_input(const Type&, std::string name, bool is_donated);
  void add_output(Value, std::string name, std::optional<std::uint32_t> stored_to);
  Function function_;
};

// Opens a session that runs a plan on the processor.
std::unique_ptr<Session> open_session(const Plan&, SessionOptions = {});

}  // namespace hone
