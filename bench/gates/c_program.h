// A model as `hone aot` writes it, compiled by a C compiler and loaded into this process.
#pragma once

#include <string>
#include <vector>

#include "compile/compile.h"

namespace hone::gates {

class CProgram {
 public:
  // Compiles with `cc` -std=c11 -O3 -march=native. All sizes of the model must be fixed. Throws
  // UserError if compilation fails.
  CProgram(const Source&, std::vector<Array> inputs, const std::string& cc);
  ~CProgram();
  CProgram(const CProgram&) = delete;
  CProgram& operator=(const CProgram&) = delete;

  void run();
  const std::vector<Array>& outputs() const { return outputs_; }

 private:
  void* library_ = nullptr;
  int (*run_)(void* const*) = nullptr;
  std::vector<Array> inputs_, outputs_;
  std::vector<std::byte> weights_, arena_, model_;
  std::vector<void*> arguments_;
};

}  // namespace hone::gates
