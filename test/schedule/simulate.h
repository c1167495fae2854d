// Runs a variant on the host with the reference interpreter in place of kernels: every group is one
// step that gathers its operands through their views, evaluates, and scatters. Unwritten memory
// holds garbage, so a wrong lifetime, offset, view or order changes the results.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

#include "ops/common.h"
#include "plan/audit.h"
#include "ref/evaluate.h"
#include "schedule/plan_builder.h"
#include "schedule/views.h"

namespace hone {

// Each group as one loop nest without statements: operands are its parameters, then its results.
inline Candidate whole_group(const ScheduledSpec& s) {
  Candidate c;
  c.name = "reference";
  Kernel kernel{.name = s.name, .graph = std::make_shared<Graph>()};
  Candidate::Step step;
  auto add = [&](const Type& t, const Dims& strides, Candidate::Operand operand) {
    bool written = operand.kind == Candidate::Operand::Kind::result;
    kernel.params.push_back({t.dtype, t.shape.dims, strides, written});
    step.operands.push_back(operand);
  };
  const GroupSpec& g = s.spec;
  for (std::size_t i = 0; i < g.function.params().size(); ++i)
    add(g.function.param(i).type(), g.param_strides[i],
        {Candidate::Operand::Kind::param, static_cast<int>(i)});
  for (std::size_t i = 0; i < g.function.results().size(); ++i)
    add(g.function.result(i).type(), g.result_strides[i],
        {Candidate::Operand::Kind::result, static_cast<int>(i)});
  step.what = std::move(kernel);
  c.steps.push_back(std::move(step));
  return c;
}

inline std::vector<Candidate> whole_groups(const Schedule& s) {
  std::vector<Candidate> out;
  for (const ScheduledSpec& spec : s.specs) out.push_back(whole_group(spec));
  return out;
}

class Simulator {
 public:
  Simulator(const Plan& plan, const Variant& variant, const Schedule& schedule, Sizing sizes)
      : plan_(plan), variant_(variant), schedule_(schedule), sizes_(std::move(sizes)) {
    arena_.assign(static_cast<std::size_t>(number(variant.devices[0].arena_bytes)),
                  std::byte{0xa5});
    for (const PreparedBuffer& p : plan.prepared)
      prepared_.emplace_back(static_cast<std::size_t>(number(byte_count(p.type))), std::byte{0xa5});
  }

  std::vector<Array> run(const std::vector<Array>& inputs) {
    for (const Array& a : inputs) params_.emplace_back(a.bytes().begin(), a.bytes().end());
    for (const Type& t : variant_.results)
      results_.emplace_back(static_cast<std::size_t>(number(byte_count(t))), std::byte{0xa5});
    run_steps(variant_.prepare);
    run_steps(variant_.steps);
    std::vector<Array> out;
    for (std::size_t i = 0; i < results_.size(); ++i) {
      std::int32_t alias = plan_.main().result_alias[i];
      const std::vector<std::byte>& bytes =
          alias < 0 ? results_[i] : params_[static_cast<std::size_t>(alias)];
      out.emplace_back(variant_.results[i].dtype, numbers(variant_.results[i].shape.dims),
                       Storage::copy(bytes));
    }
    return out;
  }

  // Copies onto the same place are not counted. `bytes` covers all steps that ran.
  std::int64_t launches = 0, copies = 0, bytes = 0;

 private:
  std::int64_t number(const Dim& d) const { return size_of(d, sizes_); }
  std::vector<std::int64_t> numbers(const Dims& dims) const {
    std::vector<std::int64_t> out;
    for (const Dim& d : dims) out.push_back(number(d));
    return out;
  }

  std::span<std::byte> memory(std::uint32_t buffer) {
    const PlanBuffer& b = variant_.buffers.at(buffer);
    switch (b.kind) {
      case PlanBuffer::Kind::param:
        return params_.at(b.index);
      case PlanBuffer::Kind::result: {
        std::int32_t alias = plan_.main().result_alias.at(b.index);
        return alias < 0 ? results_.at(b.index) : params_.at(static_cast<std::size_t>(alias));
      }
      case PlanBuffer::Kind::weight: {
        std::span<const std::byte> w = plan_.weights.at(b.index).data.bytes();
        return {const_cast<std::byte*>(w.data()), w.size()};
      }
      case PlanBuffer::Kind::prepared:
        return prepared_.at(b.index);
      case PlanBuffer::Kind::arena:
        return std::span(arena_).subspan(static_cast<std::size_t>(number(b.offset)),
                                         static_cast<std::size_t>(number(b.bytes)));
    }
    return {};
  }

  // Calls f(dense byte offset, byte offset in the buffer) for each element.
  template <class F>
  void each_element(const View& v, F f) {
    std::vector<std::int64_t> dims = numbers(v.dims), strides = numbers(v.strides),
                              at(dims.size(), 0);
    std::int64_t count = 1, size = byte_size(v.dtype);
    for (std::int64_t d : dims) count *= d;
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t offset = number(v.offset);
      for (std::size_t k = 0; k < at.size(); ++k) offset += at[k] * strides[k] * size;
      f(static_cast<std::size_t>(i * size), static_cast<std::size_t>(offset));
      for (std::size_t k = at.size(); k-- > 0;) {
        if (++at[k] < dims[k]) break;
        at[k] = 0;
      }
    }
  }

  bool are_one_place(const View& a, const View& b) {
    return memory(a.buffer).data() + number(a.offset) ==
               memory(b.buffer).data() + number(b.offset) &&
           numbers(a.dims) == numbers(b.dims) &&
           numbers(normal_strides(a)) == numbers(normal_strides(b));
  }

  Array gather(const View& v) {
    Array out = Array::zeros(v.dtype, numbers(v.dims));
    std::span<std::byte> from = memory(v.buffer), to = out.writable_bytes();
    auto size = static_cast<std::size_t>(byte_size(v.dtype));
    each_element(v, [&](std::size_t dense, std::size_t at) {
      ASSERT_LE(at + size, from.size()) << "read outside buffer " << v.buffer;
      std::memcpy(to.data() + dense, from.data() + at, size);
    });
    return out;
  }

  void scatter(const Array& a, const View& v) {
    PlanBuffer::Kind kind = variant_.buffers.at(v.buffer).kind;
    ASSERT_NE(kind, PlanBuffer::Kind::weight);
    std::span<std::byte> to = memory(v.buffer);
    auto size = static_cast<std::size_t>(byte_size(v.dtype));
    each_element(v, [&](std::size_t dense, std::size_t at) {
      ASSERT_LE(at + size, to.size()) << "write outside buffer " << v.buffer;
      std::memcpy(to.data() + at, a.bytes().data() + dense, size);
    });
  }

  void run_steps(const std::vector<Step>& steps) {
    for (const Step& s : steps) run_step(s);
  }

  void run_step(const Step& s) {
    switch (s.kind) {
      case Step::Kind::launch:
        return run_group(s);
      case Step::Kind::copy: {
        const Array moved = gather(s.operands[0]);
        if (!are_one_place(s.operands[0], s.operands[1])) {
          ++copies;
          bytes += 2 * static_cast<std::int64_t>(moved.bytes().size());
        }
        return scatter(moved, s.operands[1]);
      }
      case Step::Kind::branch:
        return run_steps(gather(s.operands[0]).integer(0) ? s.body : s.otherwise);
      case Step::Kind::loop:
        for (int i = 0; i < 1000; ++i) {
          run_steps(s.otherwise);
          if (!gather(s.operands[0]).integer(0)) return;
          run_steps(s.body);
        }
        throw UserError("loop does not end");
      case Step::Kind::refuse:
        if (s.scalars.empty() || number(s.scalars[0]) != number(s.scalars[1]))
          throw UserError(s.name);
        return;
      case Step::Kind::require:
        if (gather(s.operands[0]).integer(0) != 0) throw UserError(s.name);
        return;
      default:
        FAIL() << "step of kind " << static_cast<int>(s.kind);
    }
  }

  void run_group(const Step& s) {
    ++launches;
    bytes += number(variant_.groups.at(s.group).bytes);
    const Function& f = schedule_.specs.at(schedule_.groups.at(s.group).spec).spec.function;
    std::vector<Wide> inputs;
    for (std::size_t i = 0; i < f.params().size(); ++i)
      inputs.push_back(widen(gather(s.operands[i])));
    std::vector<Wide> results = evaluate_in(f, std::move(inputs), sizes_, Mode::strict);
    for (std::size_t i = 0; i < results.size(); ++i) {
      EXPECT_TRUE(s.written[f.params().size() + i]);
      scatter(narrow(results[i]), s.operands[f.params().size() + i]);
    }
  }

  const Plan& plan_;
  const Variant& variant_;
  const Schedule& schedule_;
  Sizing sizes_;
  std::vector<std::byte> arena_;
  std::vector<std::vector<std::byte>> prepared_, params_, results_;
};

struct Simulated {
  Plan plan;
  Variant variant;
  Schedule schedule;
  std::int64_t launches = 0, copies = 0, bytes = 0;
};

inline Array random_array(const Type& t, const Sizing& sizes, std::mt19937& rng) {
  std::vector<std::int64_t> dims;
  for (const Dim& d : t.shape.dims) dims.push_back(size_of(d, sizes));
  Array a = Array::zeros(t.dtype, dims);
  for (std::int64_t i = 0; i < a.count(); ++i)
    if (is_float(t.dtype))
      a.set_real(i, std::uniform_real_distribution<double>(-2, 2)(rng));
    else
      a.set_integer(i, static_cast<std::int64_t>(rng() % (t.dtype == DType::b1 ? 2 : 5)));
  return a;
}

// Schedules, builds and runs f in the given sizing; fails the test where a result differs from the
// reference in any bit.
inline Simulated simulate(const Function& f, const ScheduleOptions& options = {},
                          const Sizing& sizes = {}, unsigned seed = 1) {
  Simulated out;
  out.schedule = schedule(f, options);
  PlanBuilder builder(out.plan);
  out.variant = builder.add(out.schedule, whole_groups(out.schedule));
  std::mt19937 rng(seed);
  std::vector<Array> inputs;
  for (const Type& t : f.param_types()) inputs.push_back(random_array(t, sizes, rng));
  std::vector<Array> want = evaluate(f, inputs, Mode::strict);
  Simulator simulator(out.plan, out.variant, out.schedule, sizes);
  std::vector<Array> got = simulator.run(inputs);
  for (const Function::Param& p : f.params())
    out.plan.main().params.push_back({p.name, p.value.type(), p.donated});
  // Mark them as prepared; the audit does not read their contents.
  for (PreparedBuffer& p : out.plan.prepared) p.data = Storage::from(std::vector<std::byte>(1));
  audit(out.plan, out.plan.main(), out.variant, [&](const Dim& d) { return size_of(d, sizes); });
  EXPECT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_TRUE(got[i] == want[i]) << "result " << i << " of\n" << print(f);
  out.launches = simulator.launches;
  out.copies = simulator.copies;
  out.bytes = simulator.bytes;
  return out;
}

}  // namespace hone
