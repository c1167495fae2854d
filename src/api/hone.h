// Builds models, trains and runs them: tensors and programs, layers and optimisers, and what
// compiles them. It shows nothing of the compiler's inside, which <hone/compiler.h> has. What
// compiled programs are run with is <hone/runtime.h>, which links no compiler.
//
//   Program p("double");
//   p.entry("main", {{"x", f32({dim("n", 1, 100)})}}, [](Tensor x) { return Results{{"y", x * 2}};
//   }); Compiled c = compile(p); runtime::Executable exe = c.load(); runtime::Session session(exe);
//   Array y = run(session, {x})[0];
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/runtime/runtime.h"
#include "base/error.h"
#include "nn/layers.h"
#include "nn/optimizers.h"
#include "nn/recurrent.h"
#include "tensor/control.h"
#include "tensor/grad.h"
#include "tensor/network.h"
#include "tensor/program.h"

namespace hone {

struct Plan;

struct CompileWith {
  std::string device = {};  // a name from `hone devices`; empty: the first that this machine has
  std::string strategy = "auto";  // see `hone optimize --help`; optimize() tries all of the device
  int threads = 0;                // of the compiler; 0: as many as the machine has
  bool cache = true;              // compiled kernels are kept on disk
  double budget = 15;             // seconds that optimize() may time
};

// A compiled program: for each entry what runs it, and its states. A handle.
class Compiled {
 public:
  explicit Compiled(Plan);
  // On this machine's device.
  runtime::Executable load() const;
  // A plan file, which <hone/runtime.h> and `hone run` open. Replaces it atomically.
  void save(const std::string& path) const;
  const Plan& plan() const { return *plan_; }  // see plan/plan.h

 private:
  std::shared_ptr<const Plan> plan_;
};

// Measures nothing: kernels are chosen by predicted times, and each is checked against the
// reference.
Compiled compile(const Program&, const CompileWith& = {}, Where = Where::current());
// Each entry with every strategy of the device, verified as a whole and timed against each other.
Compiled optimize(const Program&, const CompileWith& = {}, Where = Where::current());
// The same for an ONNX file, whose only entry is "main". Open sizes stay open.
Compiled compile_onnx(const std::string& path, const CompileWith& = {}, Where = Where::current());

// One run of the session's entry: its inputs in the order of the entry's arguments, its results in
// theirs.
std::vector<Array> run(runtime::Session&, const std::vector<Array>& inputs,
                       Where = Where::current());
// The value of a state, by name.
Array read(const runtime::State&, const std::string& name, Where = Where::current());
void write(runtime::State&, const std::string& name, const Array&, Where = Where::current());
// The program with the values of these states as weights; no entry may set one of them. Entries
// that do are left out by Program::only().
Program frozen(const Program&, const runtime::State&, Where = Where::current());

// A tensor in a file: .npy, or ONNX's .pb.
Array read_array(const std::string& path, Where = Where::current());
void write_array(const std::string& path, const Array&, Where = Where::current());

}  // namespace hone
