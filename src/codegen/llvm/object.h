// From a module of IR to an object file in memory: LLVM's optimiser with a short list of passes,
// and its code generator. Not a linker (blob.h).
#pragma once

#include <llvm-c/Types.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "codegen/llvm/builder.h"

namespace hone::llvm {

enum class Effort {
  quick,  // half the compile time; cache-resident code runs at 60-90 % of the speed
  normal,
};

using Object = std::vector<std::byte>;

// Holds a target machine; belongs to one thread, serves many modules.
class Emitter {
 public:
  explicit Emitter(const TargetSpec&, Effort = Effort::normal);
  ~Emitter();
  Emitter(const Emitter&) = delete;
  Emitter& operator=(const Emitter&) = delete;

  // Optimises the module in place. In a sanitizer build, also instruments it.
  void optimize(Module&) const;
  // Generates code for an already optimised module. A module can be emitted only once.
  Object emit(Module&) const;
  // verify(), optimize() and emit().
  Object compile(Module&) const;
  // The assembly text of an optimised module, instead of emit().
  std::string assembly(Module&) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hone::llvm
