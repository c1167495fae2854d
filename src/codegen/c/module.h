// Kernels as functions of one C file. Makes no choices: the kernels determine order, layout and
// blocking. The file needs only libc and libm.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/c/helpers.h"
#include "codegen/c/text.h"
#include "kernel/kernel.h"

namespace hone::c {

class Module {
 public:
  // `vector_bits`: size of the vectors of register tiles; the tiles' columns must be multiples.
  explicit Module(int vector_bits = 256) : vector_bytes_(vector_bits / 8) {}

  // static void name(parameters, begin, end, scratch, sizes): computes chunks [begin, end). Throws
  // UserError for an operation that cannot be written as C yet.
  void add(const Kernel&, std::string_view name);
  // The same kernel as a function of the type KernelFunction with external linkage.
  void add_entry(const Kernel&, std::string_view name);

  // A call of the named kernel, without semicolon. `operands` are pointers of type (const) unsigned
  // char *.
  static std::string call(const Kernel&, std::string_view name,
                          std::span<const std::string> operands, const std::string& begin,
                          const std::string& end, const std::string& scratch,
                          const std::string& sizes);

  // The whole file, to be followed by code that calls the kernels.
  std::string text() const;

 private:
  int vector_bytes_;
  Helpers helpers_;
  std::string kernels_;
};

// A kernel for machines whose threads run in groups, without the function header.
struct GroupText {
  std::string helpers;              // functions that it calls
  std::vector<std::string> shared;  // declarations of group arrays, in C without a qualifier
  std::int64_t shared_bytes = 0;    // of memory that Dialect::shared declares
  std::string body;                 // statements of a function
  bool uses_scratch = false;
  bool meets = false;  // it contains barriers
  std::vector<VectorType> vectors;
  bool uses_subgroups = false, uses_matrices = false;
};
// Whether it multiplies opaque matrices, which takes full subgroups of 32 threads.
bool has_matrices(const Kernel&);
// For a dialect that has groups; not respelled yet. Statements name the parameters p0, p1, ... and
// `scratch`, memory of one thread. Throws UserError for what the dialect cannot express.
GroupText group_text(const Kernel&, const Dialect&);

}  // namespace hone::c
