#include "target/target_info.h"

#include "base/error.h"

namespace hone {

TargetInfo cpu_target_info(std::string_view isa) {
  TargetInfo t;
  t.name = isa;
  if (isa == "x86-64-v3") return t;
  if (isa != "x86-64-v4")
    throw UserError("target: '", isa, "' is not known; give x86-64-v3 or x86-64-v4");
  t.vector_bits = 512;
  t.vector_registers = 32;
  t.fma_gflops = 100;
  return t;
}

}  // namespace hone
