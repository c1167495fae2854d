// Builds, links and loads small kernels for the tests of this folder.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backend/cpu/device/loader.h"
#include "backend/cpu/isa/isa.h"
#include "backend/cpu/target/processor.h"
#include "codegen/llvm/blob.h"
#include "codegen/llvm/builder.h"
#include "codegen/llvm/object.h"

namespace hone::llvm {

// The targets that this machine runs.
inline std::vector<std::string> targets() {
  std::vector<std::string> out = {"x86-64-v3"};
  if (cpu::machine_isa() >= cpu::Isa::v4) out.push_back("x86-64-v4");
  return out;
}

inline LoadedBinary jit(const std::string& target, const std::function<void(Module&)>& build,
                        Effort effort = Effort::normal) {
  TargetSpec spec = cpu::target_spec(target);
  Module m("test", spec);
  build(m);
  Object object = Emitter(spec, effort).compile(m);
  return load(link_objects(std::span(&object, 1), spec.name));
}

// A kernel "f" over `buffers` operands that do not alias; sizes[0] is n.
inline LoadedBinary jit_kernel(const std::string& target, int buffers,
                               const std::function<void(Module&, const KernelArguments&)>& body,
                               Effort effort = Effort::normal) {
  return jit(
      target,
      [&](Module& m) {
        KernelArguments k = m.begin_kernel("f", std::vector<Buffer>(buffers, Buffer{.align = 1}));
        body(m, k);
        m.end_kernel();
      },
      effort);
}

inline void run(const LoadedBinary& code, std::vector<void*> buffers, std::int64_t n,
                std::int64_t begin = 0, std::int64_t end = 1) {
  alignas(64) static thread_local std::byte scratch[1 << 16];
  code.entry("f")(buffers.data(), &n, begin, end, scratch);
}

// out[i] = f(in[i]) for all i < n, in whole vectors and a masked tail.
inline LoadedBinary jit_map(const std::string& target, DType in, DType out,
                            const std::function<Value(Value)>& f, int lanes = 16) {
  return jit_kernel(target, 2, [&](Module& m, const KernelArguments& k) {
    Value n = k.size(0), whole = n - modulo_index(n, m.index(lanes));
    m.loop(m.index(0), whole, lanes, [&](Value i) {
      store(out, offset(k.buffers[1], out, i), f(load(in, offset(k.buffers[0], in, i), lanes)));
    });
    m.if_(less(whole, n), [&] {
      Value mask = m.tail_mask(n - whole, lanes);
      Value x = load_masked(in, offset(k.buffers[0], in, whole), mask);
      store_masked(out, offset(k.buffers[1], out, whole), f(x), mask);
    });
  });
}

}  // namespace hone::llvm
