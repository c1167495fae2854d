// Functions that C kernels call: arithmetic that C does not fully define, conversions, vectorisable
// f32 functions, vectors of register tiles. A file gets those it uses, each after its dependencies.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/c/dialect.h"

namespace hone::c {

class Helpers {
 public:
  explicit Helpers(const Dialect& dialect = c11) : dialect_(&dialect) {}
  const Dialect& dialect() const { return *dialect_; }

  // Adds a function by its name without the prefix, such as "exp_f32". Returns the name to call.
  std::string use(std::string_view name);
  bool has(std::string_view name) const { return find(name); }
  // Integer functions: div, rem, shift_left, shift_right, abs, sign, pow.
  std::string integer(std::string_view function, DType);
  // For register dtypes; `to` may also be f16 or bf16, whose result is the bits (uint16_t).
  std::string saturate(DType from, DType to);
  std::string bitcast(DType from, DType to);
  // A type of `lanes` numbers, and macros on variables of it: NAME_ZERO(v), NAME_LOAD(v, p),
  // NAME_LOAD_PART(v, p, n) for n elements and zeros, NAME_STORE(p, v), NAME_MULADD(sum, x, v) for
  // a number x, NAME_MULADD2(sum, v, w). Returns NAME; the type is vector_type().
  std::string vector(DType, int lanes);
  static std::string vector_type(DType, int lanes);

  // All used helpers, in order.
  std::string text() const;

 private:
  const Helper* find(std::string_view name) const;
  bool add(const std::string& name, std::string text);

  const Dialect* dialect_;
  std::vector<std::string> order_;
  std::map<std::string, std::string, std::less<>> texts_;
};

// C's helpers, which other dialects reuse.
const std::vector<Helper>& math_helpers();

}  // namespace hone::c
