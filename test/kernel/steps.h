// Groups, their memory and their sizes, for tests that run candidates with any kernel executor.
// Stands in for the scheduler and the runtime.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernel/forms/forms.h"
#include "kernel/walk.h"
#include "ops/ops.h"
#include "test/codegen/guarded.h"

namespace hone::test {

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

// Counts unrolled loops that store to parameters, and those of them that also load: there a
// compiler may not move a load before a store to memory that may alias.
struct StoringLoops {
  int all = 0, load_as_well = 0;
};
inline StoringLoops storing_loops(const Kernel& k) {
  StoringLoops out;
  const auto is_param = [&](std::int64_t p) { return p < std::ssize(k.params); };
  for_each_statement(k.body, [&](const Stmt& s) {
    if (!is_loop(s) || s.loop != LoopKind::unrolled) return;
    bool stores = false, loads = false;
    for (const Stmt& inner : s.body)
      if (is_loop(inner) && inner.loop == LoopKind::unrolled) return;  // counted on its own
    for_each_statement(s.body, [&](const Stmt& each) {
      stores = stores || (each.kind == Stmt::Kind::store && is_param(each.param));
    });
    const std::vector<Value> values = values_of(s.body);
    for (NodeId n : nodes_below(values)) {
      const Value v(&values[0].graph(), n);
      loads = loads || (v.is(ops::load) && is_param(v.attrs().integer("param")));
    }
    out.all += stores;
    out.load_as_well += stores && loads;
  });
  return out;
}

// The values of the symbols, from the arrays passed for parameters.
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
  Memory(DType dtype, std::vector<std::int64_t> dims, std::vector<std::int64_t> strides,
         Guard guard)
      : dtype_(dtype), dims_(std::move(dims)), strides_(std::move(strides)) {
    std::int64_t elements = 1;
    for (std::size_t i = 0; i < dims_.size(); ++i) {
      count_ *= dims_[i];
      elements += (dims_[i] - 1) * strides_[i];
    }
    if (count_ == 0) elements = 0;
    buffer_ = std::make_unique<GuardedBuffer>(
        static_cast<std::size_t>(elements * byte_size(dtype_)), guard);
    std::ranges::fill(content(), std::byte{0x5a});
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
  std::span<std::byte> content() const { return buffer_->as<std::byte>(); }

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

// Runs the steps of a candidate on arrays: launch(step, memory of its operands, sizes).
template <class Launch>
std::vector<Array> run_steps(const Candidate& candidate, const GroupSpec& spec,
                             std::span<const Array> inputs, Guard guard, const Launch& launch) {
  const Function& f = spec.function;
  const Sizes sizes(f, inputs);
  std::vector<Memory> params, results, temporaries;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    params.emplace_back(inputs[i].dtype(), inputs[i].dims(), sizes(spec.param_strides[i]), guard);
    params.back().put(inputs[i]);
  }
  for (std::size_t i = 0; i < f.results().size(); ++i) {
    const Type t = f.result(i).type();
    results.emplace_back(t.dtype, sizes(t.shape.dims), sizes(spec.result_strides[i]), guard);
  }
  for (const Candidate::Temporary& t : candidate.temporaries)
    temporaries.emplace_back(t.type.dtype, sizes(t.type.shape.dims),
                             sizes(dense_strides(t.type.shape)), guard);
  for (std::size_t i = 0; i < candidate.steps.size(); ++i) {
    std::vector<std::span<std::byte>> buffers;
    using Kind = Candidate::Operand::Kind;
    for (const Candidate::Operand& o : candidate.steps[i].operands) {
      auto& list = o.kind == Kind::param ? params : o.kind == Kind::result ? results : temporaries;
      buffers.push_back(list.at(static_cast<std::size_t>(o.index)).content());
    }
    launch(i, buffers, sizes);
  }
  std::vector<Array> out;
  for (const Memory& m : results) out.push_back(m.take());
  return out;
}

}  // namespace hone::test
