// Compiles a candidate of kernels and runs it on arrays, with buffers that end at inaccessible
// memory.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/target/processor.h"
#include "codegen/llvm/nest.h"
#include "jit.h"
#include "kernel/nest/nest_candidate.h"
#include "test/kernel/steps.h"

namespace hone::test {

struct RunOptions {
  std::string target = "x86-64-v3";
  std::int64_t chunks_per_call = 0;  // 0: all in one call
  bool is_padded = false;            // strides leave gaps between elements and rows
  bool backwards = false;            // the last chunks first
  Guard guard = Guard::behind;       // on which side of a tensor the memory is inaccessible
};

// Shared, as creating an emitter costs more than compiling a small kernel.
inline const llvm::Emitter& emitter_for(const std::string& target) {
  static std::map<std::string, std::unique_ptr<llvm::Emitter>> emitters;
  auto& e = emitters[target];
  if (!e) e = std::make_unique<llvm::Emitter>(cpu::target_spec(target));
  return *e;
}

// The assembly that LLVM generates for a kernel.
inline std::string assembly(const Kernel& kernel, const std::string& target) {
  llvm::Module m("k", cpu::target_spec(target));
  llvm::emit_kernel(m, kernel, "k");
  emitter_for(target).optimize(m);
  return emitter_for(target).assembly(m);
}

// Runs the kernels of a candidate, given as functions in the order of its steps.
class CandidateRunner {
 public:
  explicit CandidateRunner(const Candidate& candidate, std::vector<KernelFunction> kernels = {})
      : candidate_(candidate), kernels_(std::move(kernels)) {}

  std::vector<Array> run(const GroupSpec& spec, std::span<const Array> inputs,
                         const RunOptions& options) const {
    return run_steps(
        candidate_, spec, inputs, options.guard,
        [&](std::size_t step, std::span<const std::span<std::byte>> memory, const Sizes& sizes) {
          std::vector<void*> buffers;
          for (std::span<std::byte> m : memory) buffers.push_back(m.data());
          launch(step, buffers, sizes, options);
        });
  }

  // One step on given buffers, all chunks at once.
  void launch(std::size_t step, std::span<void* const> buffers, const Sizes& sizes,
              const RunOptions& options) const {
    const Kernel& k = std::get<Kernel>(candidate_.steps[step].what);
    std::vector<std::int64_t> symbols = sizes(k.sizes);
    const std::int64_t chunks = sizes(k.chunks);
    const auto scratch_bytes = static_cast<std::size_t>((sizes(k.scratch_bytes) + 63) / 64 * 64);
    GuardedBuffer scratch(scratch_bytes, Guard::behind);
    std::memset(scratch.data(), 0xff, scratch_bytes);  // NaN
    KernelFunction run = kernels_.at(step);
    const std::int64_t each = options.chunks_per_call ? options.chunks_per_call : chunks;
    const std::int64_t calls = each == 0 ? 0 : (chunks + each - 1) / each;
    for (std::int64_t i = 0; i < calls; ++i) {
      std::int64_t begin = (options.backwards ? calls - 1 - i : i) * each;
      run(buffers.data(), symbols.data(), begin, std::min(begin + each, chunks), scratch.data());
    }
  }

 protected:
  const Candidate& candidate_;
  std::vector<KernelFunction> kernels_;
};

// The kernels of a candidate, compiled to machine code by LLVM.
class CompiledCandidate : public CandidateRunner {
 public:
  CompiledCandidate(const Candidate& candidate, const std::string& target)
      : CandidateRunner(candidate) {
    llvm::TargetSpec spec = cpu::target_spec(target);
    std::vector<llvm::Object> objects;
    for (std::size_t i = 0; i < candidate.steps.size(); ++i) {
      llvm::Module m(entry(i), spec);
      llvm::emit_kernel(m, std::get<Kernel>(candidate.steps[i].what), entry(i));
      objects.push_back(emitter_for(target).compile(m));
    }
    if (objects.empty()) return;
    code_ = load(llvm::link_objects(objects, spec.name));
    for (std::size_t i = 0; i < candidate.steps.size(); ++i)
      kernels_.push_back(code_.entry(entry(i)));
  }

 private:
  static std::string entry(std::size_t step) { return cat("k", step); }

  LoadedBinary code_;
};

inline std::vector<Array> run_nest(const Function& f, std::span<const Array> inputs,
                                   const RunOptions& options = {}) {
  GroupSpec spec = spec_of(f, options.is_padded);
  Candidate candidate = nest_candidate(spec, cpu::target_info(options.target));
  return CompiledCandidate(candidate, options.target).run(spec, inputs, options);
}

// The number of kernels that a function is compiled to.
inline std::size_t kernel_count(const Function& f) {
  return nest_candidate(spec_of(f), cpu::target_info("x86-64-v3")).steps.size();
}

}  // namespace hone::test
