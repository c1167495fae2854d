#include "verify/model/whole.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <sstream>

#include "ir/measured.h"
#include "ops/ops.h"
#include "runtime/session.h"
#include "schedule/cost.h"
#include "schedule/views.h"
#include "verify/masks.h"
#include "verify/model/explanation.h"
#include "verify/model/repeat.h"
#include "verify/sizes.h"

namespace hone {

namespace {

std::int64_t bytes_of(const Type& t, const Sizing& sizes) {
  return t.is_tensor() ? size_of(byte_count(t), sizes) : 0;
}

// Writes a size and the ranges of its symbols, which its text omits.
void write_size(const Dim& d, std::ostream& out) {
  out << " " << d;
  for (const Dim& s : d.symbols()) out << " " << s << "=" << s.low() << ".." << s.high();
}

void write_type(const Type& t, std::ostream& out) {
  out << " " << t;
  for (const Dim& d : t.shape.dims) write_size(d, out);
}

// Writes all parts of a step that a run reads.
void write_steps(const std::vector<Step>& steps, const Plan& plan, std::ostream& out) {
  for (const Step& s : steps) {
    out << static_cast<int>(s.kind) << " " << s.device << " " << s.stream << " " << s.name;
    if (s.kind == Step::Kind::record || s.kind == Step::Kind::wait) out << " " << s.index;
    if (s.kind == Step::Kind::launch) out << " " << to_hex(plan.kernels[s.index].hash);
    for (std::size_t i = 0; i < s.operands.size(); ++i) {
      const View& v = s.operands[i];
      out << " " << v.buffer << "+" << v.offset << " " << v.dtype << Shape(v.dims)
          << Shape(v.strides) << (s.written[i] ? "w" : "r");
    }
    out << Shape(s.scalars) << s.chunks << " " << s.scratch_bytes;
    for (const auto& [name, value] : s.settings) out << " " << name << "=" << value;
    out << "{";
    write_steps(s.body, plan, out);
    out << "}{";
    write_steps(s.otherwise, plan, out);
    out << "}\n";
  }
}

void write_variant(const Variant& v, const Plan& plan, std::ostream& out) {
  for (const PlanDevice& d : v.devices)
    out << d.name << " " << d.target << " " << d.streams << " " << d.arena_bytes << " "
        << d.arena_lower_bound << "\n";
  for (const Guard& g : v.guards) out << static_cast<int>(g.kind) << g.a << "," << g.b << " ";
  for (const PlanBuffer& b : v.buffers)
    out << static_cast<int>(b.kind) << "," << b.index << "," << b.offset << "," << b.bytes << ","
        << b.device << " ";
  out << v.events << " " << Shape(v.result_bytes) << "\n";
  for (const Type& t : v.results) write_type(t, out);
  for (const DimBound& b : v.measured) {
    write_size(b.symbol, out);
    write_size(b.most, out);
  }
  write_steps(v.steps, plan, out);
  out << "prepare\n";
  write_steps(v.prepare, plan, out);
}

std::vector<Array> sample_inputs(const Function& f, const Sizing& sizes, Fill reals, Fill integers,
                                 std::int64_t draw) {
  std::vector<bool> masks(f.params().size());
  if (reals == Fill::hiding) masks = masks_of_params(f);
  std::vector<Array> out;
  for (const Function::Param& p : f.params()) {
    const Type t = p.value.type();
    const std::size_t i = out.size();
    if (p.required) {
      out.push_back(*p.required);
      continue;
    }
    const std::uint64_t seed = seed_of_draw(i + 1, draw, size_of(t.shape.count(), sizes), t.dtype);
    out.push_back(sample_array(t, sizes, is_float(t.dtype) ? reals : integers, seed));
    if (masks[i]) hide_rows(out[i].writable_bytes(), t.dtype, out[i].dims(), seed);
  }
  return out;
}

struct Inputs {
  std::vector<Array> arrays;
  Expected expected;
};

// Integers may be indices, and the function may refuse extreme or negative ones: it then gets
// milder integers, while the reals stay extreme. Empty if it refuses all.
std::optional<Inputs> accepted_inputs(const Function& f, Evaluator& evaluate, const Sizing& sizes,
                                      Fill fill, std::int64_t draw) {
  for (const Fill integers : {fill, Fill::negative, Fill::random}) {
    if (integers != fill && !is_extreme(fill) && fill != Fill::wide) break;
    try {
      std::vector<Array> arrays = sample_inputs(f, sizes, fill, integers, draw);
      Expected expected(evaluate, arrays, Mode::stepwise);
      return Inputs{std::move(arrays), std::move(expected)};
    } catch (const UserError&) {
    }
  }
  return std::nullopt;
}

// Number of draws of extreme contents for a small function, because small inputs hold few special
// numbers at once. Fewer if that is much work.
std::int64_t extreme_draws_of(const Function& f, const Sizing& sizes) {
  constexpr std::int64_t least = 512, most = 24, most_flops = 60'000;
  std::int64_t wanted = 1;
  for (const Function::Param& p : f.params()) {
    if (p.required) continue;
    // More than one pass through the special numbers, so that more of them meet.
    const Type t = p.value.type();
    const std::int64_t count = size_of(t.shape.count(), sizes);
    wanted =
        std::max({wanted, extreme_draws(count, t.dtype), least / std::max<std::int64_t>(count, 1)});
  }
  const std::int64_t affordable =
      most_flops / std::max<std::int64_t>(1, flops_at(flops_of(f), sizes));
  return std::clamp<std::int64_t>(std::min(wanted, affordable), 1, most);
}

void compare(const Function& f, Inputs& given, const std::vector<Array>& got, Fill fill,
             const Blame& blame) {
  // Or a product may be zero, which decides as much.
  const bool may_overflow =
      fill == Fill::wide || fill == Fill::rare || fill == Fill::tiny || is_extreme(fill);
  Explanation rounding(f, given.arrays, given.expected, may_overflow);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const Comparison c = given.expected.accept(i, widen(got[i]));
    if (c.ok) continue;
    const bool is_other_form = !c.problem.empty();
    if (is_other_form ? !rounding.explains_sizes(i) : !rounding.explains(i, got[i]))
      throw UserError("refused: result ", i, " differs from the reference: ", c,
                      blame ? blame(given.arrays) : "");
  }
}

// Scratch for data-dependent sizes is planned for the upper bounds.
bool fits(const Step& s, const Kernel& k, bool has_open_sizes) {
  if (s.operands.size() != k.params.size() || s.scalars != k.sizes || s.chunks != k.chunks ||
      (s.scratch_bytes != k.scratch_bytes && !has_open_sizes))
    return false;
  for (std::size_t i = 0; i < k.params.size(); ++i) {
    const View& v = s.operands[i];
    const KernelParam& p = k.params[i];
    if (v.dtype != p.dtype || v.dims != p.dims || s.written[i] != p.written ||
        normal_strides(v) != p.strides)
      return false;
  }
  return true;
}

}  // namespace

Dim flops_of(const Function& f) try {
  return largest(ideal_flops(f), measured_sizes(f.graph()));
} catch (const UserError&) {
  // The product of the bounds of data-dependent sizes exceeds 64 bits.
  return std::numeric_limits<std::int64_t>::max();
}

std::int64_t flops_at(const Dim& flops, const Sizing& given) {
  try {
    return size_of(flops, given);
  } catch (const UserError&) {
    return flops.high();  // a body measures a size of its own
  }
}

namespace {

// False for a function with a loop, because its iteration count is unknown.
bool is_within(const Function& f, const Sizing& given, std::int64_t most_flops,
               std::int64_t most_bytes) try {
  const Sizing sizes = with_measured(given, measured_sizes(f.graph()), f.graph().checks());
  const Graph& graph = f.graph();
  std::int64_t bytes = 0;
  for (NodeId n : live_nodes(f)) {
    if (&graph.op(n) == &ops::while_loop) return false;
    for (std::size_t i = 0; i < graph.result_count(n); ++i)
      bytes += bytes_of(graph.type(n, i), sizes);
    if (bytes > most_bytes) return false;
  }
  return flops_at(flops_of(f), given) <= most_flops;
} catch (const UserError&) {
  return false;  // a body measures a size of its own
}

}  // namespace

std::int64_t bytes_to_evaluate(const Function& f, const Sizing& given) try {
  const Sizing sizes = with_measured(given, measured_sizes(f.graph()), f.graph().checks());
  const auto elements = [&](const Type& t) {
    return t.is_tensor() ? size_of(t.shape.count(), sizes) : 0;
  };
  // Parameters, constants and results, and the results of the largest node.
  std::int64_t all = 0, most = 0;
  for (const Function::Param& p : f.params()) all += elements(p.value.type());
  for (const Function::Result& r : f.results()) all += elements(r.value.type());
  for (NodeId n : live_nodes(f)) {
    std::int64_t made = 0;
    for (std::size_t i = 0; i < f.graph().result_count(n); ++i)
      made += elements(f.graph().type(n, i));
    if (&f.graph().op(n) == &ops::constant) all += made;
    most = std::max(most, made);
  }
  return (all + most) * byte_size(DType::f64);
} catch (const UserError&) {
  return 0;  // a body measures a size of its own, so nothing is known
}

bool is_small(const Function& f, const Sizing& sizes) {
  return is_within(f, sizes, 200'000, 256 << 10);
}

bool is_medium(const Function& f, const Sizing& sizes) {
  return is_within(f, sizes, 20'000'000, 16 << 20);
}

bool has_steps(const Function& f) {
  const Graph& graph = f.graph();
  return std::ranges::any_of(live_nodes(f), [&](NodeId n) {
    const Op& op = graph.op(n);
    const bool is_cast = &op == &ops::cast && !is_float(graph.type(n, 0).dtype) &&
                         is_float(graph.operands(n)[0].dtype());
    return is_cast || &op == &ops::round || &op == &ops::floor || &op == &ops::ceil ||
           &op == &ops::trunc;
  });
}

bool is_explainable(const Function& f, const Sizing& sizes) {
  return is_medium(f, sizes) ||
         (has_steps(f) && is_within(f, sizes, 1'000'000'000, std::int64_t{1} << 30));
}

Hash128 contents_of(const Plan& plan) {
  std::ostringstream out;
  for (const PlanParam& p : plan.main().params) {
    out << p.name << (p.donated ? " donated" : "");
    if (p.capacity) out << " capacity " << p.capacity->axis << " " << p.capacity->size;
    write_type(p.type, out);
    if (p.required) out << " " << p.required->type() << " " << to_hex(hash128(p.required->bytes()));
    out << "\n";
  }
  for (const PlanParam& r : plan.main().results) {
    out << r.name;
    write_type(r.type, out);
    out << "\n";
  }
  for (const PlanCheck& c : plan.main().checks)
    out << c.a << "," << c.b << "," << c.message << "\n";
  for (const Variant& v : plan.main().variants) write_variant(v, plan, out);
  for (const PlanKernel& k : plan.kernels)
    out << to_hex(k.hash) << " " << k.binary << " " << k.entry << " " << k.group_threads << " "
        << k.group_bytes << "\n";
  for (const Binary& b : plan.binaries) out << to_hex(content_hash(b)) << "\n";
  for (const PlanWeight& w : plan.weights) out << w.data.type() << to_hex(hash128(w.data.bytes()));
  for (const PreparedBuffer& p : plan.prepared) out << to_hex(hash128(p.content().bytes()));
  for (std::int32_t alias : plan.main().result_alias) out << alias << " ";
  return hash128(out.view());
}

bool check_whole(const Function& f, const Sizing& sizes, const OtherSizes& others, const Plan& plan,
                 const Executable::Devices& devices, const std::shared_ptr<ThreadPool>& pool,
                 const Blame& blame) {
  const auto unowned = std::shared_ptr<const Plan>(std::shared_ptr<void>(), &plan);
  const std::shared_ptr<const Executable> executable = Executable::load(unowned, devices);
  Session session(executable, {.pool = pool});
  std::vector<Repeat> runs;
  Evaluator evaluate(f);
  // Only functions of very many nodes take as long.
  constexpr std::chrono::seconds most_time{5};
  const auto end = std::chrono::steady_clock::now() + most_time;
  const auto check = [&](const Sizing& at, Fill fill, std::int64_t draw = 0) {
    if (!runs.empty() && std::chrono::steady_clock::now() > end) return;
    std::optional<Inputs> inputs = accepted_inputs(f, evaluate, at, fill, draw);
    if (!inputs) return;
    std::vector<Array> got;
    try {
      got = session.run(inputs->arrays);
    } catch (const UserError&) {
      if (inputs->expected.may_be_refused()) return;
      throw;
    }
    compare(f, *inputs, got, fill, blame);
    if (draw == 0) runs.push_back({std::move(inputs->arrays), std::move(got)});
  };
  const bool keeps_denormals =
      std::ranges::all_of(devices, [](const auto& d) { return d->limits().keeps_denormals; });
  check(sizes, Fill::wide);
  if (is_small(f, sizes))
    for (Fill fill : {Fill::spread, Fill::negative}) check(sizes, fill);
  constexpr std::size_t apart = 3;  // a third of the sizes, the smallest among them
  for (std::size_t i = 0; i < others.of_kernels.size(); i += apart)
    if (const Sizing& at = others.of_kernels[i]; at != sizes && is_small(f, at))
      check(at, Fill::spread);
  for (const Sizing& at : others.of_plans)
    if (is_medium(f, at)) check(at, Fill::spread);
  // Rules that mishandle special numbers fail at any size.
  const Sizing& few = is_small(f, sizes) || others.of_plans.empty() ? sizes : others.of_plans[0];
  check(few, Fill::rare);
  check(few, Fill::tiny);
  if (std::ranges::count(masks_of_params(f), true) > 0) check(few, Fill::hiding);
  if (is_small(f, few))
    for (std::int64_t draw = 0; draw < extreme_draws_of(f, few); ++draw)
      check(few, extreme_of(keeps_denormals), draw);
  if (is_small(f, sizes)) check_repeats(executable, runs, most_time);
  return !runs.empty();
}

bool has_loop(const Function& f) {
  const Graph& graph = f.graph();
  return std::ranges::any_of(live_nodes(f), [&](NodeId n) {
    return &graph.op(n) == &ops::while_loop ||
           std::ranges::any_of(graph.attrs(n).entries(), [](const Attrs::Entry& e) {
             const auto* body = std::get_if<FunctionRef>(&e.second);
             return body && has_loop(**body);
           });
  });
}

std::optional<std::vector<Array>> special_like(const Function& f, const std::vector<Array>& inputs,
                                               Fill fill) {
  bool has_reals = false;
  std::vector<Array> out = inputs;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!is_float(out[i].dtype()) || f.params()[i].required) continue;
    has_reals = true;
    out[i] = Array::zeros(inputs[i].dtype(), inputs[i].dims());
    sample(out[i].writable_bytes(), out[i].dtype(), fill, i + 1);
  }
  return has_reals && !has_loop(f) ? std::optional(std::move(out)) : std::nullopt;
}

void check_operands(const Plan& plan, const Variant& variant, std::span<const Kernel> kernels) {
  for_each_step(variant.steps, [&](const Step& s) {
    if (s.kind != Step::Kind::launch) return;
    HONE_ASSERT(s.index < kernels.size() && fits(s, kernels[s.index], !variant.measured.empty()),
                plan.name, ": step '", s.name,
                "' launches a kernel that was compiled for other operands");
  });
}

}  // namespace hone
