#include "backend/cpu/target/processor.h"

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

#include "backend/cpu/isa/isa.h"
#include "base/error.h"

namespace hone::cpu {

TargetInfo target_info(std::string_view isa) {
  TargetInfo t;
  t.name = isa;
  if (isa == "x86-64-v3") return t;
  if (isa != "x86-64-v4") throw UserError("target is '", isa, "', expected x86-64-v3 or x86-64-v4");
  t.vector_bits = 512;
  t.vector_registers = 32;
  t.fma_gflops = 100;
  return t;
}

llvm::TargetSpec target_spec(std::string_view name) {
  const Isa isa = name == "native" ? allowed_isa() : isa_from_name(name).value_or(Isa::v1);
  if (isa < Isa::v3 && name == "native")
    throw UserError("target: this machine has ", isa_name(isa),
                    ", expected at least x86-64-v3 (AVX2, BMI2 and FMA)");
  if (isa < Isa::v3)
    throw UserError("target is '", name, "', expected x86-64-v3, x86-64-v4 or native");
  llvm::TargetSpec spec;
  spec.name = isa_name(isa);
  spec.processor = spec.name;
  if (name == "native") {
    char* host = LLVMGetHostCPUName();
    spec.tune = host;
    LLVMDisposeMessage(host);
  }
  spec.triple = "x86_64-unknown-linux-gnu";
  spec.data_layout =
      "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128";
  spec.vector_bits = isa >= Isa::v4 ? 512 : 256;
  return spec;
}

}  // namespace hone::cpu
