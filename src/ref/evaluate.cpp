#include "ref/evaluate.h"

#include <algorithm>
#include <cmath>

#include "host/function.h"
#include "ir/measured.h"
#include "ir/refusal.h"
#include "ops/expand.h"
#include "ops/host.h"
#include "ops/ops.h"
#include "ops/update.h"

namespace hone {

namespace {

// A function of core ops in evaluation order, with the position after which a node's results are no
// longer read.
struct Program {
  Function function;
  std::vector<NodeId> order;
  std::vector<std::size_t> last_use;           // by node
  std::unordered_map<NodeId, Wide> constants;  // cached in wide form
};

Program make_program(const Function& f) {
  Program p{expand_composites(f), {}, {}, {}};
  p.order = live_nodes(p.function);
  p.last_use.assign(p.function.graph().node_count(), 0);
  for (std::size_t i = 0; i < p.order.size(); ++i)
    for (const Value& v : p.function.graph().operands(p.order[i])) p.last_use[v.node()] = i;
  for (const Function::Result& r : p.function.results())
    p.last_use[r.value.node()] = p.order.size();
  return p;
}

}  // namespace

std::vector<Wide> host_results(const Op& op, const Attrs& attrs,
                               std::span<const Wide* const> inputs,
                               std::span<const Type> result_types,
                               const std::function<std::int64_t(const Dim&)>& size) {
  const HostFunction* function = find_host_function(op.name);
  HONE_ASSERT(function, op.name, " has neither eval nor expand");
  HostCall call{{}, host_settings(op, attrs)};
  std::vector<Array> arrays;
  for (const Wide* w : inputs) arrays.push_back(narrow(*w));
  for (const Type& t : result_types) {
    std::vector<std::int64_t> dims;
    for (const Dim& d : t.shape.dims) dims.push_back(size(d));
    arrays.push_back(Array::zeros(t.dtype, std::move(dims)));
  }
  for (Array& a : arrays) {
    const bool is_read = call.operands.size() < inputs.size();
    void* data = is_read ? const_cast<std::byte*>(a.bytes().data()) : a.writable_bytes().data();
    call.operands.push_back({a.dtype(), a.dims(), data});
  }
  check(*function, call);
  try {
    function->compute(call);
  } catch (const OutOfMemory&) {
    throw;
  } catch (const UserError& e) {
    throw InputRefusal(0, e.what());
  }
  std::vector<Wide> results;
  for (std::size_t i = inputs.size(); i < arrays.size(); ++i) results.push_back(widen(arrays[i]));
  return results;
}

namespace {

// Data prepared once for evaluating a function and the bodies in it.
class Programs {
 public:
  // Bodies are attributes of program nodes, so their addresses are stable.
  Program& of(const Function& f) {
    auto [it, fresh] = programs_.try_emplace(&f);
    if (fresh) it->second = std::make_unique<Program>(make_program(f));
    return *it->second;
  }

  // A constant in doubles, cached; null once the cached constants take too much memory.
  const Wide* constant(Program& p, NodeId n) {
    if (const auto at = p.constants.find(n); at != p.constants.end()) return &at->second;
    const Array& a = p.function.graph().attrs(n).get<Array>("value");
    if (a.count() > free_elements_) return nullptr;
    free_elements_ -= a.count();
    return &p.constants.emplace(n, widen(a)).first->second;
  }

 private:
  std::unordered_map<const Function*, std::unique_ptr<Program>> programs_;
  std::int64_t free_elements_ = 1 << 20;
};

class Interpreter {
 public:
  Interpreter(Mode mode, Programs& programs) : mode_(mode), programs_(programs) {}

  // Takes inputs that it may change, then others that outlive the call.
  std::vector<Wide> call(const Function& f, std::vector<Wide> inputs, const Sizing& outer,
                         std::span<const Wide* const> borrowed = {}) {
    if (++depth_ > deepest)
      throw UserError("evaluate: functions are nested more than ", deepest, " levels deep");
    std::vector<std::vector<std::int64_t>> dims;
    for (const Wide& w : inputs) dims.push_back(w.dims);
    for (const Wide* w : borrowed) dims.push_back(w->dims);
    Sizing sizing = bind_sizes(f, dims, outer);
    std::vector<Wide> results = run(programs_.of(f), std::move(inputs), borrowed, sizing);
    --depth_;
    return results;
  }

 private:
  static constexpr int deepest = 64;

  // Results of a node: its own, or a constant or a borrowed input.
  struct Done {
    std::vector<Wide> own;
    const Wide* kept = nullptr;
    const Wide& operator[](std::size_t i) const { return kept ? *kept : own[i]; }
  };

  std::vector<Wide> run(Program& p, std::vector<Wide> inputs, std::span<const Wide* const> borrowed,
                        Sizing& sizing) {
    std::vector<Done> done(p.function.graph().node_count());
    std::size_t place = 0;
    try {
      check_sizes(p.function, sizing);
      for (; place < p.order.size(); ++place) step(p, place, inputs, borrowed, sizing, done);
    } catch (InputRefusal& r) {
      r.place = place;
      throw;
    }
    return results_of(p.function, done);
  }

  // Evaluates the node at position i of the order.
  void step(Program& p, std::size_t i, std::vector<Wide>& inputs,
            std::span<const Wide* const> borrowed, Sizing& sizing, std::vector<Done>& done) {
    const Graph& graph = p.function.graph();
    const NodeId n = p.order[i];
    if (&graph.op(n) == &ops::param) {
      const auto index = static_cast<std::size_t>(graph.attrs(n).integer("index"));
      if (index < inputs.size())
        done[n].own.push_back(std::move(inputs[index]));
      else
        done[n].kept = borrowed[index - inputs.size()];
    } else if (&graph.op(n) == &ops::constant) {
      done[n].kept = programs_.constant(p, n);
    } else if (Wide* x = changed_in_place(p, i, done)) {
      const std::span<const Value> operands = graph.operands(n);
      update_box(*x, done[operands[1].node()][operands[1].index()],
                 done[operands[2].node()][operands[2].index()]);
      done[n].own.push_back(std::move(*x));
    }
    if (done[n].own.empty() && !done[n].kept) done[n].own = evaluate_node(graph, n, done, sizing);
    if (&graph.op(n) == &ops::measure)
      bind_measured(p.function, n, done[n][0].integers.at(0), sizing);
    for (const Value& v : graph.operands(n))
      if (p.last_use[v.node()] == i) done[v.node()].own.clear();
  }

  static std::vector<Wide> results_of(const Function& f, std::vector<Done>& done) {
    const std::vector<Function::Result>& all = f.results();
    std::vector<Wide> out;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Value v = all[i].value;
      const bool is_last = std::none_of(all.begin() + static_cast<std::ptrdiff_t>(i) + 1, all.end(),
                                        [&](const Function::Result& r) { return r.value == v; });
      if (is_last && !done[v.node()].kept)
        out.push_back(std::move(done[v.node()].own[v.index()]));
      else
        out.push_back(done[v.node()][v.index()]);
    }
    return out;
  }

  // The operand that a dynamic_update at position i of the order may change in place, since nothing
  // reads it afterwards; otherwise a loop that fills a tensor would copy it in each iteration.
  static Wide* changed_in_place(const Program& p, std::size_t i, std::vector<Done>& done) {
    const Graph& graph = p.function.graph();
    if (&graph.op(p.order[i]) != &ops::dynamic_update) return nullptr;
    const std::span<const Value> operands = graph.operands(p.order[i]);
    const Value x = operands[0];
    const bool is_read = p.last_use[x.node()] != i || x == operands[1] || x == operands[2];
    return is_read || done[x.node()].kept ? nullptr : &done[x.node()].own[x.index()];
  }

  // Same as ops::while_loop.eval, without copying values that an iteration does not change.
  std::vector<Wide> loop(const Attrs& attrs, std::span<const Wide* const> inputs,
                         std::size_t carried, const Sizing& sizing) {
    const Function &condition = *attrs.get<FunctionRef>("condition"),
                   &body = *attrs.get<FunctionRef>("body");
    std::vector<Wide> values;
    for (const Wide* w : inputs.first(carried)) values.push_back(*w);
    const auto goes_on = [&] {
      std::vector<const Wide*> all(inputs.begin(), inputs.end());
      for (std::size_t i = 0; i < carried; ++i) all[i] = &values[i];
      return call(condition, {}, sizing, all).at(0).integers.at(0) != 0;
    };
    while (goes_on()) values = call(body, std::move(values), sizing, inputs.subspan(carried));
    return values;
  }

  std::vector<Wide> evaluate_node(const Graph& graph, NodeId n, const std::vector<Done>& done,
                                  const Sizing& sizing) {
    std::vector<const Wide*> inputs;
    for (const Value& v : graph.operands(n)) inputs.push_back(&done[v.node()][v.index()]);
    std::vector<Wide> results = computed(graph, n, inputs, sizing);
    if (mode_ != Mode::wide && rounds(graph.op(n)))
      for (Wide& w : results)
        if (w.is_real()) round_to_dtype(w);
    return results;
  }

  // Movement and control ops return values that are already rounded.
  static bool rounds(const Op& op) {
    return op.kind != OpKind::movement && op.kind != OpKind::control;
  }

  std::vector<Wide> computed(const Graph& graph, NodeId n, std::span<const Wide* const> inputs,
                             const Sizing& sizing) {
    const Op& op = graph.op(n);
    std::vector<Type> types = graph.result_types(n);
    const std::function<std::int64_t(const Dim&)> size = [&](const Dim& d) {
      return size_of(d, sizing);
    };
    const std::function<std::vector<Wide>(const Function&, std::vector<Wide>)> body =
        [&](const Function& f, std::vector<Wide> in) { return call(f, std::move(in), sizing); };
    std::vector<Wide> results;
    try {
      results = &op == &ops::while_loop ? loop(graph.attrs(n), inputs, types.size(), sizing)
                : op.eval
                    ? op.eval({graph.attrs(n), inputs, types, size, body, mode_ == Mode::stepwise})
                    : host_results(op, graph.attrs(n), inputs, types, size);
    } catch (const InputRefusal& r) {
      if (&op != &ops::require || graph.origins(n).empty()) throw;
      std::string where;
      for (const Origin& o : graph.origins(n)) where += cat(where.empty() ? "" : ", ", o);
      throw InputRefusal(r.excess, where, ": ", r.what());
    }
    HONE_ASSERT(results.size() == types.size(), op.name, " gave ", results.size(), " results");
    for (std::size_t i = 0; i < results.size(); ++i) check_result(op, results[i], types[i], size);
    return results;
  }

  static void check_result(const Op& op, const Wide& w, const Type& t,
                           const std::function<std::int64_t(const Dim&)>& size) {
    bool fits = w.dtype == t.dtype && static_cast<int>(w.dims.size()) == t.rank();
    for (std::size_t i = 0; fits && i < w.dims.size(); ++i)
      fits = w.dims[i] == size(t.shape.dims[i]);
    HONE_ASSERT(fits, op.name, " evaluated to ", w.dtype, Shape(dims_of(w.dims)), ", inferred ", t);
  }

  Mode mode_;
  int depth_ = 0;
  Programs& programs_;
};

void expect_size(const Function& f, std::size_t param, int axis, std::int64_t have,
                 std::int64_t want, const std::string& why) {
  if (have != want)
    throw UserError("input '", f.params()[param].name, "': axis ", axis, " of ",
                    f.param(param).type(), " is ", have, ", but ", why, want,
                    "; give inputs of consistent sizes");
}

// Whether the check depends on a data-dependent size that is not known yet.
bool waits(const DimCheck& c, std::span<const DimBound> measured, const Sizing& sizing) {
  return std::any_of(measured.begin(), measured.end(), [&](const DimBound& m) {
    const std::string& name = m.symbol.name();
    return !sizing.contains(name) && (holds_symbol(c.a, name) || holds_symbol(c.b, name));
  });
}

void check_size(const DimCheck& c, const Sizing& sizing) {
  std::int64_t a = size_of(c.a, sizing), b = size_of(c.b, sizing);
  if (a != b)
    throw InputRefusal(std::abs(static_cast<double>(a) - static_cast<double>(b)), c.message,
                       " (here ", c.a, " = ", a, ", ", c.b, " = ", b, ")");
}

void check_contents(const Function::Param& p, const Array& given) {
  if (p.required && !(*p.required == given))
    throw UserError(
        "input '", p.name,
        "' has other values than those that the model was imported for; import it for these");
}

}  // namespace

std::int64_t size_of(const Dim& d, const Sizing& sizing) {
  if (auto n = d.as_number()) return *n;
  return d.eval([&](std::string_view name) -> std::int64_t {
    auto it = sizing.find(std::string(name));
    if (it == sizing.end())
      throw UserError("size '", d, "': symbol '", name,
                      "' is not a size of an input; name it in the shape of an input");
    return it->second;
  });
}

Sizing bind_sizes(const Function& f, std::span<const std::vector<std::int64_t>> input_dims,
                  const Sizing& outer) {
  if (input_dims.size() != f.params().size())
    throw UserError("evaluate: got ", input_dims.size(), " inputs, expected ", f.params().size());
  Sizing sizing = outer;
  std::unordered_map<std::string, std::string> bound_by;
  for (std::size_t i = 0; i < input_dims.size(); ++i) {
    const Shape& shape = f.param(i).shape();
    if (static_cast<int>(input_dims[i].size()) != shape.rank())
      throw UserError("input '", f.params()[i].name, "' is ", Shape(dims_of(input_dims[i])),
                      ", expected ", f.param(i).type(), "; reshape it");
    for (int k = 0; k < shape.rank(); ++k) {
      const Dim& d = shape[k];
      std::int64_t have = input_dims[i][static_cast<std::size_t>(k)];
      if (!d.is_symbol()) continue;
      auto [it, fresh] = bound_by.try_emplace(d.name(), f.params()[i].name);
      if (fresh) sizing[d.name()] = have;
      expect_size(f, i, k, have, sizing[d.name()],
                  cat("symbol '", d.name(), "' is, by input '", it->second, "', "));
      if (have < d.low() || have > d.high())
        throw UserError(
            "input '", f.params()[i].name, "': axis ", k, " is ", have, ", expected ", d.low(),
            " to ", d.high(), " for size '", d.name(),
            "'; give such an input, or read the model for a wider range, as with --dim ", d.name(),
            "=", std::min(have, d.low()), "..", std::max(have, d.high()));
    }
  }
  for (std::size_t i = 0; i < input_dims.size(); ++i)
    for (int k = 0; k < f.param(i).rank(); ++k) {
      const Dim& d = f.param(i).shape()[k];
      if (!d.is_symbol())
        expect_size(f, i, k, input_dims[i][static_cast<std::size_t>(k)], size_of(d, sizing),
                    d.is_number() ? "it must be " : cat(d, " is "));
    }
  return sizing;
}

void check_sizes(const Function& f, const Sizing& sizing) {
  const std::vector<DimBound> measured = measured_sizes(f.graph());
  for (const DimCheck& c : f.graph().checks())
    if (!waits(c, measured, sizing)) check_size(c, sizing);
}

void bind_measured(const Function& f, NodeId measure, std::int64_t n, Sizing& sizing) {
  const Attrs& attrs = f.graph().attrs(measure);
  const Dim& symbol = attrs.dims("symbol")[0];
  check_measured(symbol, n, size_of(attrs.dims("high")[0], sizing));
  if (!symbol.is_symbol()) return;
  sizing[symbol.name()] = n;
  const std::vector<DimBound> measured = measured_sizes(f.graph());
  for (const DimCheck& c : f.graph().checks())
    if ((holds_symbol(c.a, symbol.name()) || holds_symbol(c.b, symbol.name())) &&
        !waits(c, measured, sizing))
      check_size(c, sizing);
}

std::vector<Wide> evaluate_in(const Function& f, std::vector<Wide> inputs, const Sizing& outer,
                              Mode mode) {
  Programs programs;
  return Interpreter(mode, programs).call(f, std::move(inputs), outer);
}

namespace {

std::vector<Wide> widened(const Function& f, std::span<const Array> inputs) {
  std::vector<Wide> wide;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (i < f.params().size() && inputs[i].dtype() != f.param(i).dtype())
      throw UserError("input '", f.params()[i].name, "' is ", inputs[i].type(), ", expected ",
                      f.param(i).type(), "; convert it");
    if (i < f.params().size()) check_contents(f.params()[i], inputs[i]);
    wide.push_back(widen(inputs[i]));
  }
  return wide;
}

}  // namespace

std::vector<Wide> evaluate_wide(const Function& f, std::span<const Array> inputs, Mode mode) {
  return evaluate_in(f, widened(f, inputs), {}, mode);
}

struct Evaluator::Kept {
  Programs programs;
};

Evaluator::Evaluator(const Function& f) : function_(f), kept_(std::make_unique<Kept>()) {}
Evaluator::~Evaluator() = default;

std::vector<Wide> Evaluator::in(Mode mode, std::span<const Array> inputs) {
  return Interpreter(mode, kept_->programs).call(function_, widened(function_, inputs), {});
}

std::vector<Array> evaluate(const Function& f, std::span<const Array> inputs, Mode mode) {
  std::vector<Array> out;
  for (const Wide& w : evaluate_wide(f, inputs, mode)) out.push_back(narrow(w));
  return out;
}

}  // namespace hone
