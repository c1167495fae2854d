// Compiles a candidate of kernels and runs it on arrays, with buffers that end at inaccessible
// memory. Plays the parts of scheduler and runtime for tests of kernels.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "codegen/llvm/nest.h"
#include "guarded.h"
#include "jit.h"
#include "kernel/candidates.h"
#include "kernel/kernel.h"
#include "target/target_info.h"

namespace hone::test {

struct RunOptions {
  std::string target = "x86-64-v3";
  std::int64_t chunks_per_call = 0;  // 0: all in one call
  bool is_padded = false;            // strides leave room between elements and rows
  bool backwards = false;            // the last chunks first
};

inline Dims padded_strides(const Shape& shape) {
  Dims strides(shape.dims.size(), 0);
  Dim next = 2;
  for (std::size_t i = shape.dims.size(); i-- > 0;) {
    strides[i] = next;
    next = next * shape.dims[i] + Dim(3);
  }
  return strides;
}

inline GroupSpec spec_of(const Function& f, bool is_padded = false) {
  GroupSpec spec{f, {}, {}, {}};
  auto strides = [&](const Type& t) {
    return is_padded ? padded_strides(t.shape) : dense_strides(t.shape);
  };
  for (const Type& t : f.param_types()) spec.param_strides.push_back(strides(t));
  for (const Type& t : f.result_types()) spec.result_strides.push_back(strides(t));
  spec.param_is_weight.assign(f.params().size(), false);
  return spec;
}

// The symbols' values, from arrays given for parameters.
class Sizes {
 public:
  Sizes(const Function& f, std::span<const Array> inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      for (int k = 0; k < f.param(i).rank(); ++k) {
        const Dim& d = f.param(i).shape()[k];
        if (d.is_symbol()) values_[d.name()] = inputs[i].dims()[static_cast<std::size_t>(k)];
      }
  }
  std::int64_t operator()(const Dim& d) const {
    return d.eval([&](std::string_view name) {
      auto it = values_.find(std::string(name));
      return it == values_.end() ? 3 : it->second;
    });
  }
  std::vector<std::int64_t> operator()(const Dims& dims) const {
    std::vector<std::int64_t> out;
    for (const Dim& d : dims) out.push_back((*this)(d));
    return out;
  }

 private:
  std::map<std::string, std::int64_t> values_;
};

// A strided tensor in guarded memory.
class Memory {
 public:
  Memory(DType dtype, std::vector<std::int64_t> dims, std::vector<std::int64_t> strides)
      : dtype_(dtype), dims_(std::move(dims)), strides_(std::move(strides)) {
    std::int64_t elements = 1;
    for (std::size_t i = 0; i < dims_.size(); ++i) {
      count_ *= dims_[i];
      elements += (dims_[i] - 1) * strides_[i];
    }
    if (count_ == 0) elements = 0;
    buffer_ = std::make_unique<GuardedBuffer>(
        static_cast<std::size_t>(elements * byte_size(dtype_)), Guard::behind);
    std::ranges::fill(buffer_->as<std::byte>(), std::byte{0x5a});
  }

  void put(const Array& a) {
    each([&](std::size_t i, std::size_t at, std::size_t size) {
      std::copy_n(a.bytes().data() + i * size, size, bytes() + at);
    });
  }
  Array take() const {
    Array a = Array::zeros(dtype_, dims_);
    each([&](std::size_t i, std::size_t at, std::size_t size) {
      std::copy_n(bytes() + at, size, a.writable_bytes().data() + i * size);
    });
    return a;
  }
  void* data() const { return buffer_->data(); }

 private:
  std::byte* bytes() const { return static_cast<std::byte*>(buffer_->data()); }

  template <class F>
  void each(const F& f) const {
    const auto size = static_cast<std::size_t>(byte_size(dtype_));
    for (std::int64_t i = 0; i < count_; ++i) {
      std::int64_t rest = i, at = 0;
      for (std::size_t k = dims_.size(); k-- > 0; rest /= dims_[k])
        at += rest % dims_[k] * strides_[k];
      f(static_cast<std::size_t>(i), static_cast<std::size_t>(at) * size, size);
    }
  }

  DType dtype_;
  std::vector<std::int64_t> dims_, strides_;
  std::int64_t count_ = 1;
  std::unique_ptr<GuardedBuffer> buffer_;
};

// An emitter costs more than a small kernel.
inline const llvm::Emitter& emitter_for(const std::string& target) {
  static std::map<std::string, std::unique_ptr<llvm::Emitter>> emitters;
  auto& e = emitters[target];
  if (!e) e = std::make_unique<llvm::Emitter>(llvm::target_spec(target));
  return *e;
}

// What LLVM makes of a kernel, as text.
inline std::string assembly(const Kernel& kernel, const std::string& target) {
  llvm::Module m("k", llvm::target_spec(target));
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
    const Function& f = spec.function;
    Sizes sizes(f, inputs);
    std::vector<Memory> params, results, temporaries;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      params.emplace_back(inputs[i].dtype(), inputs[i].dims(), sizes(spec.param_strides[i]));
      params.back().put(inputs[i]);
    }
    for (std::size_t i = 0; i < f.results().size(); ++i) {
      Type t = f.result(i).type();
      results.emplace_back(t.dtype, sizes(t.shape.dims), sizes(spec.result_strides[i]));
    }
    for (const Candidate::Temporary& t : candidate_.temporaries)
      temporaries.emplace_back(t.type.dtype, sizes(t.type.shape.dims),
                               sizes(dense_strides(t.type.shape)));
    for (std::size_t i = 0; i < candidate_.steps.size(); ++i) {
      std::vector<void*> buffers;
      using Kind = Candidate::Operand::Kind;
      for (const Candidate::Operand& o : candidate_.steps[i].operands) {
        auto& list = o.kind == Kind::param    ? params
                     : o.kind == Kind::result ? results
                                              : temporaries;
        buffers.push_back(list.at(static_cast<std::size_t>(o.index)).data());
      }
      launch(i, buffers, sizes, options);
    }
    std::vector<Array> out;
    for (const Memory& m : results) out.push_back(m.take());
    return out;
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

// Kernels of a candidate as machine code of LLVM.
class CompiledCandidate : public CandidateRunner {
 public:
  CompiledCandidate(const Candidate& candidate, const std::string& target)
      : CandidateRunner(candidate) {
    llvm::TargetSpec spec = llvm::target_spec(target);
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
  Candidate candidate = nest_candidate(spec, cpu_target_info(options.target));
  return CompiledCandidate(candidate, options.target).run(spec, inputs, options);
}

// How many kernels a function becomes.
inline std::size_t kernel_count(const Function& f) {
  return nest_candidate(spec_of(f), cpu_target_info("x86-64-v3")).steps.size();
}

}  // namespace hone::test
